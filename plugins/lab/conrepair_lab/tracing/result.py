"""The result of a trace, as values."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from conrepair.formats.backends.base import Switch
from conrepair_lab.systems.system import Chosen, Setting
from conrepair_lab.tracing.propagation import KernelError, KernelPair

_RANK = {"wrong": 3, "ill-conditioned": 2, "not judged": 2, "within": 1, "equal": 0}


@dataclass(frozen=True)
class Side:
    """A setting of a system.

    Attributes:
        name: As it was asked for ("tvm-O3"), with what was left out besides; "exact" for float64.
        system: A key of `conrepair_lab.systems.registry.SYSTEMS`; "" for float64.
        setting: How it runs; None for float64.
        seconds: That opening it took.
        run_seconds: That a run takes, the median of several.
    """

    name: str
    system: str = ""
    setting: Setting | None = None
    seconds: float = 0.0
    run_seconds: float = 0.0

    @property
    def runs(self) -> Setting:
        """How it runs, where it isn't float64."""
        if self.setting is None:
            raise ValueError("float64 is no setting of a system")
        return self.setting

    @property
    def chosen(self) -> Chosen:
        """The system with its setting, as jobs take it."""
        return Chosen(self.system, self.runs)


@dataclass(frozen=True)
class Errors:
    """How far one array is from another.

    Attributes:
        largest: Relative error of the worst element: its difference, by the other one's magnitude plus 1e-8.
        mean: Of relative errors.
        ulps: Of the worst element in units in the last place of the other one.
        over: The worst difference in bounds: above 1 no rounding explains it. None where there's no bound.
    """

    largest: float
    mean: float
    ulps: float
    over: float | None = None


@dataclass(frozen=True)
class Deviation:
    """The errors of an output on the inputs that were found, and the verdict.

    Attributes:
        output: Its name.
        sample: Of the inputs that are kept.
        kind: "wrong" (above the bound), "ill-conditioned" (a large error that rounding explains), "within", "equal",
            or "not judged" where nobody computes it in float64.
        blamed: Which side is further from exact values where it's wrong: "setting", "against", "both"; else "".
        place: Of the worst element.
        values: Of that element: "setting", "against", "exact".
        bound: Of its error by rounding.
        framework: The side that it's compared with, beside exact values; None where there are none.
        optimization: The setting beside the other side.
        total: The setting beside exact values; None where there are none.
        estimated: Whether `bound` is an estimate, as the analysis says nothing there
            (`conrepair.verdicts.truth.disturbed`).
    """

    output: str
    sample: int
    kind: str
    blamed: str
    place: tuple[int, ...]
    values: Mapping[str, float]
    bound: float
    framework: Errors | None
    optimization: Errors
    total: Errors | None
    estimated: bool = False

    @property
    def severity(self) -> tuple[float, ...]:
        """A key to sort by: the worse the deviation, the larger."""
        blamed = {"setting": [self.total], "against": [self.framework], "both": [self.total, self.framework]}
        wrong = max((side.largest for side in blamed.get(self.blamed, ()) if side is not None), default=0.0)
        return (_RANK[self.kind], wrong, self.optimization.largest)

    def unless(self, bounds: float) -> Deviation:
        """A copy whose verdict is "not judged" where no side is off by more than so many times the rounding error."""
        over = max((side.over or 0.0 for side in (self.total, self.framework) if side), default=0.0)
        return self if over > bounds else dataclasses.replace(self, kind="not judged", blamed="")


def worst_first(deviations: Iterable[Deviation]) -> list[Deviation]:
    """Deviations by their severity."""
    return sorted(deviations, key=lambda item: item.severity, reverse=True)


@dataclass(frozen=True)
class Kernels:
    """The run on the worst inputs, kernel by kernel.

    Attributes:
        setting: Of the setting in question, in the order of the graph.
        against: Of the other side.
        pairs: Which of both compute the same.
    """

    setting: tuple[KernelError, ...] = ()
    against: tuple[KernelError, ...] = ()
    pairs: tuple[KernelPair, ...] = ()


@dataclass(frozen=True)
class Culprits:
    """The passes and options that cause a deviation.

    Attributes:
        asked: How many switches there are.
        causes: Smallest sets that cause it; two names in one only do so together.
        heals: Smallest sets to switch off, the smallest first.
        mends: Where the other side is the wrong one: smallest sets without which this one would be wrong, too.
        builds: That were made.
        failed: Of these, such as failed, which say nothing.
        exact: Whether these are all.
        verified: Whether the first of `heals` also heals on inputs that it wasn't found on; None: nothing to verify.
        cost: Times as long as a run takes with that; None where it wasn't measured.
        setting: With the first of `heals` left out, as a configuration has a backend and its options.
    """

    asked: int = 0
    causes: tuple[tuple[Switch, ...], ...] = ()
    heals: tuple[tuple[Switch, ...], ...] = ()
    mends: tuple[tuple[Switch, ...], ...] = ()
    builds: int = 0
    failed: int = 0
    exact: bool = True
    verified: bool | None = None
    cost: float | None = None
    setting: Setting | None = None


@dataclass(frozen=True)
class Formed:
    """An unstable form that explains a deviation.

    Attributes:
        form: Its name.
        place: The node.
        words: What is computed there, and what helps.
        explained: How well its errors are those that were seen, 0 to 1; None where the values don't show it.
        healed: Whether the stable form was tried and heals; None where there's none, or it wasn't tried.
    """

    form: str
    place: str
    words: str
    explained: float | None = None
    healed: bool | None = None


@dataclass(frozen=True)
class Traced:
    """The result of a trace of a model.

    Attributes:
        model: Path of the file.
        sha256: Of it.
        setting: The side in question.
        against: What it's compared with.
        method: Of the search.
        objective: Of it.
        seed: Of it.
        evaluations: That were made.
        failed: Of these, such as a side couldn't be run on.
        seconds: The search took.
        history: After how many evaluations the best score rose, and to what.
        changed: The share of the given samples whose answer changes; None where none were given.
        referees: Who computed exact values.
        doubts: Where they differ, or can't judge, in words.
        deviations: The worst of each output, the worst first.
        kernels: The run on the worst inputs.
        culprits: Switches.
        forms: Why, in words.
        versions: Of libraries.
    """

    model: str
    sha256: str
    setting: Side
    against: Side
    method: str
    objective: str
    seed: int
    evaluations: int = 0
    failed: int = 0
    seconds: float = 0.0
    history: tuple[tuple[int, float], ...] = ()
    changed: float | None = None
    referees: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    deviations: tuple[Deviation, ...] = ()
    kernels: Kernels = Kernels()
    culprits: Culprits = Culprits()
    forms: tuple[Formed, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def wrong(self) -> tuple[Deviation, ...]:
        """Deviations beyond rounding error."""
        return tuple(item for item in self.deviations if item.kind == "wrong")
