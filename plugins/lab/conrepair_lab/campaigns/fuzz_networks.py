"""The networks of a campaign, and which system tries which of them."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import onnx

from conrepair.formats.onnx.load.file import nodes_of
from conrepair.ground.runtime.processes.executor import Executor
from conrepair.ground.runtime.shown.progress import ProgressDisplay
from conrepair_lab.campaigns.generate_functions import FunctionFile, function_files
from conrepair_lab.campaigns.generate_material import material_files
from conrepair_lab.campaigns.generating import GenerationRequest, generate
from conrepair_lab.campaigns.network_folder import name_of, read_about
from conrepair_lab.generate.functions import FINDING
from conrepair_lab.generate.generated import MODEL
from conrepair_lab.options.fuzz import Fuzz
from conrepair_lab.systems.registry import entry

ROUND, _MOST = 100, 800
"""Networks behind which suspicions are looked into for the first time. Each round has twice as many of several
operators as the last, up to a limit, and as many of one operator."""

_NETWORKS, _ALONE = "networks", "alone"


@dataclass(frozen=True)
class FuzzNetwork:
    """A network of a campaign.

    Attributes:
        name: By which it's known: its sort and number, or the hash of a person's file with the number of its inputs.
        place: Its number among those of its sort.
        folder: With the model, inputs, and ONNX Runtime's answers where it was generated.
        alone: Whether it has one operator.
        source: Where it comes from, for people.
        causes: Of one that the screen suspects, which optimizations it's suspected for; None for others.
    """

    name: str
    place: int
    folder: Path
    alone: bool
    source: str
    causes: tuple[str, ...] | None = None

    @cached_property
    def operators(self) -> Mapping[str, int]:
        """How often it has which."""
        told = read_about(self.folder).get("operators")
        if told is None:  # a person's own
            return Counter(node.op_type for node in nodes_of(onnx.load_model(self.folder / MODEL).graph))
        return dict(told)


Source = Callable[
    [Fuzz, Path, Sequence[tuple[Path, str]], ProgressDisplay, tuple[Executor, Path]], Iterator[list[FuzzNetwork]]
]
"""What gives a campaign its networks, as `rounds` does."""


def rounds(
    asked: Fuzz,
    root: Path,
    own: Sequence[tuple[Path, str]],
    display: ProgressDisplay,
    within: tuple[Executor, Path] | None = None,
) -> Iterator[list[FuzzNetwork]]:
    """Networks, some at a time: a person's own, or generated ones; those of one operator come first each time.

    Args:
        asked: What's wanted.
        root: Of the campaign.
        own: Folders of a person's networks, and where each comes from.
        display: Shows progress.
        within: Workers that make them, and a folder that they write in; others are started where there are none.
    """
    if own:
        yield [FuzzNetwork(folder.name, place, folder, False, source) for place, (folder, source) in enumerate(own)]
        return
    sorts = ((_ALONE, 1, asked.alone, ROUND), (_NETWORKS, asked.nodes, asked.count, _MOST))
    for bounds in itertools.zip_longest(*(parts(count, most) for _, _, count, most in sorts)):
        found = []
        for (sort, nodes, *_), ends in zip(sorts, bounds, strict=True):
            if ends is not None:
                generate(_request(asked, nodes, ends[1]), root / sort, display, within=within)
                found += _made(asked, root / sort, nodes, range(*ends))
        yield found


def _made(asked: Fuzz, folder: Path, nodes: int, places: Iterable[int]) -> list[FuzzNetwork]:
    return [
        FuzzNetwork(
            f"{folder.name}/{name_of(place)}",
            place,
            folder / name_of(place),
            folder.name == _ALONE,
            f"seed {asked.seed}, {nodes} nodes, number {place}",
        )
        for place in places
        if (folder / name_of(place) / MODEL).is_file()
    ]


def parts(count: int, most: int) -> Iterator[tuple[int, int]]:
    """Rounds of a number of networks: where each begins and ends.

    Args:
        count: Of all of them.
        most: Of a round.
    """
    begin, size = 0, ROUND
    while begin < count:
        yield begin, min(begin + size, count)
        begin, size = begin + size, min(2 * size, most)


def functions_of(asked: Fuzz) -> tuple[FunctionFile, ...]:
    """The user's own functions: those of networks and settings narrow what's made, others what is kept of it.

    Raises:
        UsageError: if one isn't there.
        ModelLoadError: if they may not be run.
    """
    return function_files(asked.functions, Path.cwd(), trust=asked.trust, findings=True)


def _request(asked: Fuzz, nodes: int, count: int) -> GenerationRequest:
    return GenerationRequest(
        wishes=dataclasses.replace(asked.wishes, nodes=nodes),
        count=count,
        seed=asked.seed,
        material=material_files(asked.learn, asked.grown_from, Path.cwd()),
        functions=tuple(item for item in functions_of(asked) if item.kind != FINDING),
        support=asked.support,
        workers=asked.workers,
        timeout=asked.network_seconds,
    )


def dealt(asked: Fuzz, networks: Sequence[FuzzNetwork]) -> dict[str, list[FuzzNetwork]]:
    """By entry, the networks that it tries: of generated ones as many fewer as it's slower than the fastest entry.

    Args:
        asked: With the systems.
        networks: Of a round.
    """
    if asked.models:
        return {name: list(networks) for name in asked.entries}
    costs = {name: entry(name).runs.cost(entry(name).chosen) for name in asked.entries}
    least = min(costs.values())
    found: dict[str, list[FuzzNetwork]] = {}
    for name, cost in costs.items():
        share = max(1, cost // least)
        # One operator is tried by everybody more often: it's small, and what's found on it is nearly reduced.
        found[name] = [item for item in networks if not item.place % (max(1, share // 4) if item.alone else share)]
    return found
