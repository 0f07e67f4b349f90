"""NNSmith's networks as a campaign's: made when their round comes, so that making them takes the campaign's time."""

from __future__ import annotations

import collections
import itertools
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import onnx

from benchmarks.generate.nnsmith_process import NNSmith
from conrepair.ground.runtime.files.whole import write_json
from conrepair.ground.runtime.processes.executor import Executor
from conrepair.ground.runtime.shown.progress import ProgressDisplay
from conrepair_lab.campaigns.fuzz_networks import FuzzNetwork, parts
from conrepair_lab.generate.generated import ABOUT, INPUTS, MODEL
from conrepair_lab.options.fuzz import Fuzz

__all__ = ["NNSmithNetworks"]

_NODES = (5, 10)
"""Operators of its networks, by turns: its default, and that of its authors' paper."""

_PART = 10
_ROUND = 400
"""Networks of a round, at most."""

_MANY = 1_000_000


class NNSmithNetworks:
    """Where a campaign has NNSmith's networks from.

    Args:
        peer: Its process, which has found out what it can export.

    Attributes:
        failed: Networks that it couldn't make or export.
    """

    def __init__(self, peer: NNSmith) -> None:
        self._peer, self.failed = peer, 0

    def __call__(
        self,
        asked: Fuzz,
        root: Path,
        own: Sequence[tuple[Path, str]],
        display: ProgressDisplay,
        within: tuple[Executor, Path],
    ) -> Iterator[list[FuzzNetwork]]:
        """Rounds that grow, as those of our own generator do."""
        sizes = itertools.cycle(_NODES)
        for begin, end in parts(_MANY, _ROUND):
            yield [
                network
                for first in range(begin, end, _PART)
                for network in self._part(root / "nnsmith", next(sizes), range(first, min(first + _PART, end)), asked)
            ]

    def _part(self, root: Path, nodes: int, places: range, asked: Fuzz) -> Iterator[FuzzNetwork]:
        with tempfile.TemporaryDirectory() as name:
            made, seeds = Path(name), [asked.seed + place for place in places]
            self.failed += sum("failed" in row for row in self._peer.made(nodes, seeds, folder=made))
            for place, seed in zip(places, seeds, strict=True):
                if (made / f"{seed}.npz").is_file():
                    folder = root / f"{place:05}"
                    _put(made / f"{seed}.onnx", made / f"{seed}.npz", folder)
                    source = f"NNSmith, seed {seed}, {nodes} nodes"
                    yield FuzzNetwork(f"nnsmith/{folder.name}", place, folder, False, source)


def _put(model: Path, inputs: Path, folder: Path) -> None:
    """Where a campaign looks for a network."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MODEL).write_bytes(model.read_bytes())
    (folder / INPUTS).write_bytes(inputs.read_bytes())
    operators = collections.Counter(node.op_type for node in onnx.load(model).graph.node)
    write_json(folder / ABOUT, {"operators": operators})
