"""Measurements of a reference's rounding error, and whether a candidate's difference is within it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from conrepair.ground.metrics.running_error import relative_l2
from conrepair.ground.runtime.words import percent, times
from conrepair.verdicts.evaluate.own_tests import for_tests
from conrepair.verdicts.evaluate.slices import wrong_slices
from conrepair.verdicts.evaluate.tolerance import Tolerance
from conrepair.verdicts.evaluate.verdict import Verdict
from conrepair.verdicts.judging import numbers
from conrepair.verdicts.judging.arithmetic import ARITHMETICS, arithmetic_of
from conrepair.verdicts.judging.floor import By, Explained, Floor, Rounding
from conrepair.verdicts.judging.recognition import Fit, fit, recognized, told_apart
from conrepair.verdicts.truth.judging import Side, beside, is_sharp

if TYPE_CHECKING:
    from conrepair.verdicts.evaluate.compare import OutputComparison
    from conrepair.verdicts.evaluate.run import Run

Array = npt.NDArray[Any]
Kept = TypeVar("Kept")
Other = TypeVar("Other")
_NAMED = 4


@dataclass(frozen=True, kw_only=True)
class Evidence(Generic[Kept]):
    """Runs of a reference's network by other means, or arrays of one output; None and {} where there are none.

    Attributes:
        second_opinion: In another arithmetic, or by other kernels, over the first samples.
        rounded: With each tensor on the way rounded a little more, over the first samples.
        exact: In float64, with nothing rounded on the way.
        bounds: How far each element of a right computation may be from that.
        own: By its own runtime, in the batches of those two.
        simulated: In arithmetics that a device may have, by their names, over the first samples.
        kernel: In words, which of the reference's kernels is off beyond rounding error.
        wide: Whether the second opinion is in float64.
    """

    second_opinion: Kept | None = None
    rounded: Kept | None = None
    exact: Kept | None = None
    bounds: Kept | None = None
    own: Kept | None = None
    simulated: Mapping[str, Kept] = field(default_factory=dict)
    kernel: str = ""
    wide: bool = False

    @property
    def by_other_means(self) -> Mapping[str, Kept]:
        """What shows the reference's rounding, by the names of `Rounding.floor`; exact values where there are."""
        second = self.second_opinion if self.exact is None else self.exact
        both = (("second", second), ("disturbed", self.rounded))
        return {name: item for name, item in both if item is not None}

    @property
    def in_float64(self) -> bool:
        """Whether the second computation is in float64."""
        return self.wide or self.exact is not None

    def each(self, change: Callable[[Kept], Other | None]) -> Evidence[Other]:
        """The evidence with each of its runs or arrays changed.

        Args:
            change: Gives it for each; None where there's none.
        """
        kept = {name: getattr(self, name) for name in ("second_opinion", "rounded", "exact", "bounds", "own")}
        found: dict[str, Any] = {name: None if item is None else change(item) for name, item in kept.items()}
        simulated = {name: made for name, item in self.simulated.items() if (made := change(item)) is not None}
        return Evidence(simulated=simulated, kernel=self.kernel, wide=self.wide, **found)


def evidence_of(runs: Mapping[str, Run | None], kernel: str) -> dict[str, Any]:
    """Runs of a reference by other means, as fields of `Evidence`.

    Args:
        runs: By the names of `conrepair.verdicts.judging.measured.Measured`.
        kernel: As that has it.
    """
    simulated = {name: run for name, run in runs.items() if name in ARITHMETICS and run is not None}
    others = {name: run for name, run in runs.items() if name not in ARITHMETICS}
    return {**others, "simulated": simulated, "kernel": kernel}


def beside_exact(
    one: Array,
    two: Array,
    known: Evidence[Array],
    tolerance: Tolerance,
    judged: Callable[[Array, Array, Evidence[Array]], Any],
) -> tuple[Verdict, str, list[str], Explained] | None:
    """Judge a candidate by exact values, where these tell more than the reference does.

    Args:
        one: The reference's values, samples first.
        two: The candidate's.
        known: With exact values, and their bounds.
        tolerance: What counts as equal.
        judged: Judges two arrays by what is known: gives `verdict` and `reason`.

    Returns:
        The verdict, its reason, notes, and what explains it; None where the reference is as good.
    """
    right, bound = known.exact, known.bounds
    if right is None or bound is None or not right.shape == bound.shape == one.shape == two.shape:
        return None
    own = one if known.own is None else known.own
    if own.shape != one.shape or not np.allclose(own, one, numbers.SAME_RUN, numbers.SAME_RUN, equal_nan=True):
        return None  # outputs depend on what else is in their batch
    right = np.where(np.isinf(bound), one, right)
    bound = np.where(np.isinf(bound), 0.0, bound)
    ours, theirs = (beside(array, right, bound) for array in (one, two))
    sharp = is_sharp(right, bound, tolerance.relative_l2 or numbers.SHARP)
    told = [_off(ours, known.kernel)] if ours.beyond else []
    error = relative_l2(right, two)
    if sharp and not theirs.beyond:
        size = float(np.linalg.norm(bound)) / (float(np.linalg.norm(right)) or 1.0)
        by = Explained(by=By.BOUND, error=error, allowed=size)
        words = f"relative error {percent(relative_l2(one, two))}, but each element is within rounding error of its "
        words += f"exact value, in float64 (at most {theirs.bounds:.2g} of its bound)"
        return Verdict.NOISE, f"{words}{'; the original model is not' if told else ''}", told, by
    if not ours.beyond and not (sharp and theirs.bounds > numbers.BOUNDS):
        return None
    alone = Evidence(rounded=None if sharp else known.rounded)  # which is of the runtime that's off
    found = judged(right.astype(one.dtype), two, alone)
    if not found.verdict.is_right:
        by = Explained(by=By.NOTHING, error=error, allowed=found.floor.relative_l2)
        return found.verdict, f"compared with exact values, in float64: {found.reason}", told, by
    if not ours.beyond:
        return None
    by = explained_by(Verdict.NOISE, error, found.floor, tolerance)
    words = "compared with exact values, in float64, from which the original model is further off"
    return Verdict.NOISE, f"{words}: {found.reason}", told, by


def explained_by(verdict: Verdict, error: float, floor: Floor, tolerance: Tolerance) -> Explained:
    """By which evidence a difference was judged.

    Args:
        verdict: Of it.
        error: Relative L2.
        floor: Of rounding errors.
        tolerance: What counts as equal.
    """
    known = {Verdict.EQUIVALENT: By.TOLERANCE, Verdict.NOISE: floor.by, Verdict.QUANTIZED: By.BUDGET}
    allowed = tolerance.noise_margin * floor.relative_l2
    return Explained(by=known.get(verdict, By.NOTHING), error=error, allowed=allowed, arithmetic=floor.precision)


def _off(side: Side, kernel: str) -> str:
    words = f"{side.beyond} elements are further from their exact values than rounding error allows, up to "
    words += f"{times(side.bounds)} that bound"
    return f"the original model's own runtime is inaccurate{f': {kernel}' if kernel else ''}; {words}"


def _as_others(one: Array, two: Array, count: int) -> bool:
    """Whether samples that weren't computed otherwise differ by no more than those that were."""
    parts = [(array[:count], array[count:]) for array in (one, two)]
    first, rest = (relative_l2(*pair) if len(pair[0]) else 0.0 for pair in zip(*parts, strict=True))
    return rest <= numbers.OTHERS * first


def fits_of(one: Array, two: Array, known: Evidence[Array], least: float) -> tuple[Fit, ...]:
    """How well each simulated arithmetic accounts for a difference, in all slices.

    Args:
        one: The reference's values, samples first.
        two: The candidate's.
        known: With simulations, over the first samples.
        least: Relative L2 that is within rounding error anyway.
    """
    found = []
    items = known.simulated.items()
    fits = told_apart({name: fit(name, one[: len(made)], two[: len(made)], made, least) for name, made in items})
    lengths = {len(made) for _, made in items}
    apart = {count: (relative_l2(one[:count], two[:count]), _as_others(one, two, count)) for count in lengths}
    for name, made in items:
        item, (first, alike) = fits[name], apart[len(made)]
        explains = item.explains and alike
        if explains and not item.close:
            usual = relative_l2(one[: len(made)], made)
            explains = numbers.LEAST * usual <= first <= max(numbers.TIMES * usual, least)
        if explains and one.dtype.kind == "f" and one.ndim > 1:
            own = {"disturbed": made}
            explains = wrong_slices(one, two, own, Rounding(operators=1), margin=numbers.SLICES) is None
        found.append(replace(item, explains=explains))
    return tuple(found)


def by_arithmetic(
    outputs: Sequence[OutputComparison], tried: Sequence[str], stored: frozenset[str] = frozenset()
) -> tuple[tuple[OutputComparison, ...], str]:
    """Excuse differences where one arithmetic accounts for all of them.

    As large a difference may come of a fault. So it's noise where the arithmetic is known, where outputs are numbers
    of its type, or mostly those of the simulation, and else undecided.

    Args:
        outputs: As float32 explains them.
        tried: Names of arithmetics that the candidate may have been computed in; one alone is known.
        stored: Those whose numbers the outputs are; none where they don't tell.

    Returns:
        The outputs, and the arithmetic's name; "" where none does.
    """
    wrong = [output for output in outputs if not output.verdict.is_right]
    if not tried or not wrong or any(not output.fits for output in wrong):
        return tuple(outputs), ""
    few = {name: numbers.OF_FUNCTIONS / 2 * arithmetic_of(name).unit for name in tried if len(tried) == 1}
    within = {name for name, most in few.items() if all(output.error.relative_l2 <= most for output in wrong)}
    fits = [
        {item.arithmetic: replace(item, explains=item.explains or item.arithmetic in within) for item in output.fits}
        for output in wrong
    ]
    others = [item for output in outputs if output not in wrong for item in output.fits]
    unmoved = {item.arithmetic for item in others if item.error < numbers.LEAST * item.expected}
    able = [item for item in tried if item in within or item not in unmoved]
    name = recognized(fits, [item for item in able if item in stored] or able)
    certain = len(tried) == 1 or name in stored or all(item[name].close for item in fits if name)
    found = []
    for output in outputs:
        if output in wrong and not name:
            output = replace(output, reason=f"{output.reason}; {_unexplained(output.fits)}")
        elif output in wrong:
            of = next(item for item in output.fits if item.arithmetic == name)
            by: Explained | None = Explained(
                by=By.SIMULATION, error=of.error, allowed=numbers.TIMES * of.expected, arithmetic=name
            )
            tests = for_tests(output.error, of.expected, numbers.TIMES)
            proof = arithmetic_of(name).proof
            verdict, reason = Verdict.NOISE, f"{of}. To check that: {proof}" if proof else str(of)
            if not certain:
                by, tests, verdict = None, None, Verdict.UNDECIDED
                reason = f"{reason}. A fault may make as large an error: record more tensors, or give the arithmetic "
                reason += f"({name}) if you know it"
            notes = (*output.notes, reason)
            output = replace(output, verdict=verdict, reason=reason, explained=by, tests=tests, notes=notes)
        found.append(output)
    return tuple(found), name


def _unexplained(fits: Sequence[Fit]) -> str:
    """The errors that the nearest arithmetics would make, where none accounts for all differences."""
    alone = [arithmetic_of(item.arithmetic).words for item in fits if item.explains]
    if alone:
        return f"computing in {alone[0]} would make this error, but not those of all outputs"
    made = sorted((item for item in fits if item.expected), key=lambda item: abs(np.log(item.error / item.expected)))
    words = [f"{arithmetic_of(item.arithmetic).words} would make {percent(item.expected)}" for item in made[:_NAMED]]
    return "no simulated arithmetic makes this error" + (f" ({', '.join(words)})" if words else "")
