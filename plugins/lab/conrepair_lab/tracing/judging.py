"""Judge both sides on some inputs by exact values: within rounding error or not, and which side is wrong."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.intake.data import write_arrays
from conrepair.ground.metrics.ulps import ulps
from conrepair.verdicts.truth.judging import beside, distances, judge, worst_of
from conrepair_lab.tracing.result import Deviation, Errors
from conrepair_lab.tracing.search.objectives import relative_to

JUDGED, REWRITTEN = "judged.npz", "rewritten.onnx"
"""In a job's folder: samples, and a network with operators in another form."""

_LEFT = 0.02  # of a difference that rounding explains, below which it's healed


@dataclass(frozen=True)
class Judged:
    """Samples on which both sides were run.

    Attributes:
        feeds: Of each sample.
        setting: What the setting in question gives for each.
        against: What the other side gives.
        exact: float64 values of each; {} where nobody computes them.
        bound: Of the errors that rounding explains, of each.
        estimated: For which elements that's an estimate, of each.
    """

    feeds: list[Mapping[str, Array]] = field(default_factory=list)
    setting: list[Mapping[str, Array]] = field(default_factory=list)
    against: list[Mapping[str, Array]] = field(default_factory=list)
    exact: list[Mapping[str, Array]] = field(default_factory=list)
    bound: list[Mapping[str, Array]] = field(default_factory=list)
    estimated: list[Mapping[str, Array]] = field(default_factory=list)


def write_judged(judged: Judged, folder: Path) -> None:
    """Write samples to a file of a folder."""
    arrays = {
        f"{part}/{place}/{name}": array
        for part, samples in vars(judged).items()
        for place, sample in enumerate(samples)
        for name, array in sample.items()
    }
    write_arrays(folder / JUDGED, arrays)


def read_judged(folder: Path) -> Judged:
    """Read what `write_judged` wrote."""
    with np.load(folder / JUDGED) as file:
        places = {key: key.split("/", 2) for key in file.files}
        count = max((int(place) for _, place, _ in places.values()), default=-1) + 1
        samples: list[list[Any]] = [[{} for _ in range(count)] for _ in dataclasses.fields(Judged)]
        judged = Judged(*samples)
        for key, (part, place, name) in places.items():
            getattr(judged, part)[int(place)][name] = file[key]
    return judged


def deviation_of(
    output: str,
    sample: int,
    one: Array,
    two: Array,
    exact: Array | None,
    bound: Array | None,
    estimated: Array | None = None,
) -> Deviation:
    """Judge one output of one sample.

    Args:
        output: Its name.
        sample: Which sample.
        one: What the setting gives.
        two: What the other side gives.
        exact: float64 values; None where nobody computes them.
        bound: Absolute error that rounding explains, of each element.
        estimated: For which elements that's an estimate.
    """
    optimization = _errors(one, two.astype(np.float64))
    if exact is None or bound is None:
        place = worst_of(_relative(one, two))
        values = {"setting": float(one[place]), "against": float(two[place]), "exact": float("nan")}
        return Deviation(output, sample, "not judged", "", place, values, float("nan"), None, optimization, None)
    found = judge(one, two, exact, bound)
    wrong = [name for name, side in (("setting", found.one), ("against", found.two)) if side.beyond]
    blamed = "both" if len(wrong) > 1 else next(iter(wrong), "")
    place = _worst(one, two, exact, bound) if wrong else found.index
    values = {"setting": float(one[place]), "against": float(two[place]), "exact": float(exact[place])}
    framework, total = _errors(two, exact, found.two.bounds), _errors(one, exact, found.one.bounds)
    seen = output, sample, found.kind, blamed, place, values, float(bound[place])
    return Deviation(*seen, framework, optimization, total, estimated is not None and bool(estimated[place]))


def _relative(one: Array, two: Array) -> Array:
    return relative_to(distances(one, two), np.where(np.isfinite(two), two, 0.0))


def _errors(given: Array, other: Array, over: float | None = None) -> Errors:
    relative = _relative(given, other)
    finite = relative[np.isfinite(relative)]
    mean = float(finite.mean()) if finite.size else float("inf")
    units = float(ulps(given, other).max()) if given.dtype.kind == "f" else 0.0
    return Errors(float(relative.max()), mean, units, over)


def _worst(one: Array, two: Array, exact: Array, bound: Array) -> tuple[int, ...]:
    """Of the elements that rounding doesn't explain, the one whose error is largest beside its size."""
    sides = [np.where(distances(side, exact) > bound, _relative(side, exact), -1.0) for side in (one, two)]
    return worst_of(np.maximum(*sides))


def deviates(judged: Judged, deviation: Deviation, given: Mapping[str, Array], sample: int | None = None) -> bool:
    """Whether outputs still deviate as those of a known deviation.

    Args:
        judged: Where the deviation was seen.
        deviation: What was seen.
        given: Answers of another setting.
        sample: Which sample they're for; default: the one on which it was seen.

    Returns:
        For what's wrong, whether any element lies beyond its bound; for what rounding explains, whether the worst
        element's difference is still there.
    """
    place = deviation.sample if sample is None else sample
    name = deviation.output
    one = given[name]
    if deviation.kind == "wrong":
        return bool(beside(one, judged.exact[place][name], judged.bound[place][name]).beyond)
    there, other = judged.setting[place][name], judged.against[place][name]
    left, was = (float(distances(array, other)[deviation.place]) for array in (one, there))
    return bool(left) and (np.isinf(left) or left > _LEFT * was)
