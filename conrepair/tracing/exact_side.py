"""Exact values as a side that can be searched against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from conrepair.data.tensor_spec import TensorSpec
from conrepair.frameworks.arithmetic import settled
from conrepair.frameworks.runnable import Array, Runnable
from conrepair.metrics.ulps import grid_of
from conrepair.operators.all_operators import ROUNDED
from conrepair.runtime.errors import InferenceError
from conrepair.truth.bound import Accuracy, Analysis
from conrepair.truth.disturbed import disturbed
from conrepair.truth.judging import LARGE, distances

__all__ = ["ACCURACY", "ExactSide", "over_bound"]

ACCURACY = dict.fromkeys(ROUNDED, 16.0)
"""Units in the last place that a right kernel of a function may be off; what's further off is a fault of its own."""

_NUMBERS = "biuf"
_MOST = 1e300  # where nothing may differ
_LEAST = 1e-3  # bounds: errors below look alike


class ExactSide(Runnable):
    """A network in float64.

    Attributes:
        bound: Of the last run, by output.
    """

    def __init__(
        self,
        analysis: Analysis,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[TensorSpec],
        accuracy: Accuracy = ACCURACY,
    ) -> None:
        """Take what analyses the network.

        Args:
            analysis: Of it.
            inputs: The network's.
            outputs: The network's.
            accuracy: As of `Analysis.at`.
        """
        self._accuracy = accuracy
        self._analysis, self.inputs, self.outputs = analysis, tuple(inputs), tuple(outputs)
        self.bound: Mapping[str, Array] = {}
        self._last: dict[str, Array] = {}

    def run(self, feeds: Mapping[str, Array], *, fresh: bool = True) -> dict[str, Array]:
        """See `Runnable.run`."""
        settled()  # the other side may have left it otherwise
        try:
            found = self._analysis.at(feeds, self._accuracy)
        # ONNX's reference raises a dozen types of its own.
        except Exception as error:
            raise InferenceError(f"ONNX's reference can't run it: {type(error).__name__}: {error}") from error
        names = [spec.name for spec in self.outputs]
        self.bound = {name: found.bound[name] for name in names}
        self._last = {name: found.truth[name] for name in names}
        return self._last

    @property
    def tells(self) -> bool:
        """Whether the bound of the last run is less than the numbers themselves, as behind many layers it isn't."""
        return all(np.median(self.bound[name]) < _size(array) for name, array in self._last.items() if array.size)

    def estimated(
        self, feeds: Mapping[str, Array], *answers: Mapping[str, Array], ulps: float | None = None
    ) -> dict[str, Array]:
        """Take an estimate in place of the last run's bound, where that explains what no rounding should.

        Args:
            feeds: Of the last run.
            answers: That are judged.
            ulps: What answers may be off by without one, in their type's last place; a relative `LARGE` if None.

        Returns:
            By output, for which elements `bound` is an estimate now: answers are off by much there, and less than
            the bound.
        """
        masks = {name: np.zeros(truth.shape, bool) for name, truth in self._last.items()}
        for name, truth in self._last.items():
            for given in (answer[name] for answer in answers):
                if truth.dtype.kind in _NUMBERS and given.shape == truth.shape:
                    error = distances(given, truth)
                    masks[name] |= (error > _usual(given, truth, ulps)) & (error <= self.bound[name])
        if any(mask.any() for mask in masks.values()):
            found = {**self.bound, **disturbed(self._analysis, feeds, self._accuracy)}
            masks = {name: mask & (found[name] < self.bound[name]) for name, mask in masks.items()}
            self.bound = {name: np.where(mask, found[name], self.bound[name]) for name, mask in masks.items()}
        return masks

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        return self.run(feeds)


def _usual(given: Array, truth: Array, ulps: float | None) -> Array:
    """What no estimate is made for."""
    if ulps is None or given.dtype.kind != "f":
        return LARGE * np.abs(truth)
    grid = grid_of(given.dtype)
    return ulps * grid.ulp(np.asarray(truth, np.float64)) + 2.0**grid.lowest


def _size(array: Array) -> float:
    finite = array[np.isfinite(array)]
    return float(np.sqrt(np.mean(np.square(finite)))) if finite.size else 0.0


def over_bound(side: ExactSide, one: Sequence[Array], two: Sequence[Array], distance: float = 0.0) -> float:
    """How many times its bound the worst error is, as a power of ten; what's infinite on one side is another's say.

    Args:
        side: That gave the exact values just now.
        one: Answers.
        two: Exact ones.
        distance: As objectives are told it.
    """
    worst = _LEAST
    for given, exact, bound in zip(one, two, side.bound.values(), strict=True):
        if given.shape != exact.shape or given.dtype.kind not in "biuf":
            continue
        with np.errstate(all="ignore"):
            error = np.abs(given.astype(np.float64) - exact)
            ratio = np.where(error == 0, 0.0, np.where(bound == 0, _MOST, error / bound))
        finite = ratio[np.isfinite(error) & np.isfinite(ratio)]
        worst = max(worst, float(finite.max())) if finite.size else worst
    return float(np.log10(worst))
