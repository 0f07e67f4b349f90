"""Pieces that certain edits fix, without a model: what searches for repairs is tried on."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import localizations
import numpy as np

from conrepair.diagnosis.localization.align.layout import layouts
from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.judge.judgement import Judged
from conrepair.diagnosis.localization.localize import Found
from conrepair.diagnosis.localization.located import Guilty
from conrepair.diagnosis.localization.run.measurement import Cut
from conrepair.diagnosis.repairs.bench import Alone
from conrepair.diagnosis.repairs.criteria import reach
from conrepair.diagnosis.repairs.edits import SetParameter
from conrepair.diagnosis.repairs.state import Candidate, RepairState, Taken
from conrepair.formats.models.model import Model
from conrepair.ground.graph.layer_graph import LayerGraph, Node, Parameter
from conrepair.verdicts.evaluate.verdict import Verdict

LAYOUT = layouts((2, 3), (2, 3))[0]


def edit(node: str) -> SetParameter:
    """The edit of a node."""
    return SetParameter(node, "kernel", np.ones(1, np.float32))


def piece(
    name: str, introduced: float = 0.5, *, inside: Sequence[str] = (), parameters: Sequence[str] = ()
) -> Guilty:
    """A guilty piece that ends in a tensor of the source, with others inside, and parameters of the target."""
    numbers = {text: Parameter(text, (1,), "float32", lambda: np.ones(1)) for text in parameters}
    nodes = [Node(text, text, "Tanh", "Tanh", (), (text,)) for text in inside]
    ours = SimpleNamespace(nodes=nodes, graph=LayerGraph((), (), {}, ()))
    theirs = SimpleNamespace(nodes=[Node("n", "n", "", "", (), (), {}, numbers)])
    judged = Judged(Cut(Pair(name, name, LAYOUT, 1.0, "")), introduced, introduced, 1e-6, guilty=True)
    return Guilty(cast(Any, SimpleNamespace(source=ours, target=theirs, name=name)), judged)


def found(
    pieces: Sequence[Guilty] = (), error: float = 0.3, *, more: int = 0, rows: Mapping[str, float] | None = None
) -> Found:
    """What a localization comes to: guilty pieces, and faults that no piece explains.

    Args:
        pieces: At fault.
        error: Of the outputs.
        more: Faults that no piece explains.
        rows: Of tensors that aren't guilty, what is introduced there.
    """
    measured = dict(rows or {}) | {item.judged.cut.pair.source: item.judged.introduced for item in pieces}
    result = localizations.made(
        len(pieces) + more,
        dict.fromkeys(range(len(pieces) + more), 0.5),
        output_error=error,
        layers=tuple(
            localizations.row(place, value, source_tensor=name)
            for place, (name, value) in enumerate(measured.items())
        ),
    )
    if not result.faults:
        result = dataclasses.replace(result, verdict=Verdict.EQUIVALENT)
    return Found(result, cast(Any, None), LayerGraph((), (), {}, ()), tuple(pieces))


class World:
    """A target whose pieces are repaired by the right edits, each piece by its own.

    Attributes:
        judged: The nodes that each candidate edited.
    """

    def __init__(
        self,
        folder: Path,
        needed: Mapping[str, Collection[str]],
        *,
        broken: Collection[str] = (),
        shared: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Nothing is repaired.

        Args:
            folder: Receives a folder for each candidate.
            needed: For each piece the nodes that must be edited.
            broken: Nodes without which there's no model: what edits them can't be written.
            shared: Parameters of the target that pieces read.
        """
        self._folder, self._needed, self._broken, self._shared = folder, needed, set(broken), shared or {}
        self.judged: list[list[str]] = []

    def state(self, taken: Sequence[Taken]) -> RepairState:
        """With some proposals."""
        edited = [item.node for one in taken for item in one.edits if isinstance(item, SetParameter)]
        pieces = [
            piece(name, 0.5 + place / 10, parameters=self._shared.get(name, ()))
            for place, (name, nodes) in enumerate(self._needed.items())
            if not set(nodes) <= set(edited)
        ]
        rows = {name: 1e-7 for name in self._needed if name not in {item.judged.cut.pair.source for item in pieces}}
        folder = self._folder / f"{len(list(self._folder.iterdir()))}-{len(self.judged)}"
        folder.mkdir()
        model = Model("onnx", str(folder / "repaired.onnx"), "")
        return RepairState(tuple(taken), model, found(pieces, 0.1 * len(pieces), rows=rows))

    def judge(self, taken: tuple[Taken, ...]) -> RepairState | None:
        """The target with proposals; None where it can't be written."""
        candidate = self.make(taken)
        return None if candidate is None else self.localize(candidate)

    def make(self, taken: tuple[Taken, ...]) -> Candidate | None:
        """The same, not judged yet."""
        edited = [item.node for one in taken for item in one.edits if isinstance(item, SetParameter)]
        self.judged.append(edited)
        return None if self._broken.intersection(edited) else Candidate(taken, self.state(taken).model)

    def localize(self, candidate: Candidate) -> RepairState:
        """What's made of it."""
        candidate.remove()
        return self.state(candidate.taken)

    def alone(self, candidate: Candidate, pieces: Sequence[Guilty]) -> dict[str, Alone]:
        """What pieces say that are run alone: those whose names begin with "alone" tell something."""
        edited = nodes_of(candidate)
        names = [item.judged.cut.pair.source for item in pieces]
        right = {name: set(self._needed[name]) <= set(edited) for name in names if name.startswith("alone")}
        return {name: Alone(0.0 if is_right else 0.4, is_right, nearer=True) for name, is_right in right.items()}

    def taken(self, name: str, *nodes: str) -> Taken:
        """A proposal for a piece."""
        return Taken(tuple(map(edit, nodes)), "", reach=reach(piece(name, parameters=self._shared.get(name, ()))))

    @property
    def kept(self) -> int:
        """How many candidates' files are there."""
        return len(list(self._folder.iterdir()))


def nodes_of(state: RepairState | Candidate) -> list[str]:
    """Which are edited."""
    return [item.node for one in state.taken for item in one.edits if isinstance(item, SetParameter)]
