"""What jobs of a trace are asked for and what they return, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from conrepair.formats.models.model import Model
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.runtime.files.whole import HashedPath
from conrepair_lab.tracing.judging import read_judged
from conrepair_lab.tracing.result import Formed, Kernels, Side
from conrepair_lab.tracing.search.names import ObjectiveName


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A model and the two sides of a trace.

    Attributes:
        model: An ONNX file.
        one: The side in question.
        two: What it's compared with.
        accuracy: Of operators whose errors are known, in units in the last place.
    """

    model: Model
    one: Side
    two: Side
    accuracy: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Search:
    """How inputs are searched.

    Attributes:
        method: Its name.
        objective: What it makes as large as it can.
        evaluations: That are made.
        seconds: After which no more are begun.
        low: Lower bound of inputs.
        high: Upper bound of inputs.
        seed: Of what's drawn.
        given: An .npz file of samples; None for none.
        starts: Whether it searches around them; else they are for inputs that it keeps.
        weights: Inputs among them that are searched around in any case.
    """

    method: str
    objective: ObjectiveName
    evaluations: int
    seconds: float
    low: float
    high: float
    seed: int
    given: HashedPath | None = None
    starts: bool = False
    weights: tuple[str, ...] = ()


@dataclass(frozen=True)
class JudgedSample:
    """One of the samples of a search.

    Attributes:
        judged: Their file.
        place: Its place among them.
    """

    judged: HashedPath
    place: int

    @property
    def feeds(self) -> Mapping[str, Array]:
        """What it feeds, by input."""
        return read_judged(Path(self.judged.path).parent).feeds[self.place]


@dataclass(frozen=True)
class Refereed:
    """What all referees say of a sample.

    Attributes:
        agreed: Who says the same.
        doubts: Where others say otherwise by more than rounding in the network's own type, in words.
        doubted: By output, how many bounds a side must be off to be wrong whoever is right.
    """

    agreed: tuple[str, ...]
    doubts: tuple[str, ...]
    doubted: Mapping[str, float]


@dataclass(frozen=True)
class Followed:
    """An error that was followed through kernels.

    Attributes:
        kernels: Of both sides.
        doubts: What can't be looked into, and why.
        forms: That may be why, each with the file of the network with a stable one; "" where there's none.
        stable: Where no side at fault can be looked into: operators that have a stable form.
        float64: The same of those that can be computed in float64.
    """

    kernels: Kernels
    doubts: tuple[str, ...]
    forms: tuple[tuple[Formed, str], ...]
    stable: tuple[str, ...] = ()
    float64: tuple[str, ...] = ()
