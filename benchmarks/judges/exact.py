"""What exact values and what rounding explains say of answers: the law of `trace`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx

from benchmarks.common.plain_graph import Array
from conrepair.verdicts.evaluate.pairing import fit, pair_outputs
from conrepair.verdicts.truth.bound import ACCURACY, Analysis
from conrepair.verdicts.truth.disturbed import disturbed
from conrepair.verdicts.truth.judging import judge

__all__ = ["BOUND", "ESTIMATE", "Exact", "exact_of"]

BOUND, ESTIMATE = "bound", "estimate"


@dataclass(frozen=True)
class Exact:
    """A network on its inputs.

    Attributes:
        truth: float64 values, by output.
        allowed: What rounding explains, element by element.
        road: `BOUND`, or `ESTIMATE` where bounds are larger than the numbers themselves.
    """

    truth: Mapping[str, Array]
    allowed: Mapping[str, Array]
    road: str

    def over(self, answers: Mapping[str, Array]) -> float:
        """The worst error of answers, in what's allowed; infinite where they have no partner or another shape.

        Args:
            answers: By output, samples first; names and layouts may be others.
        """
        pairs, unpaired = pair_outputs(self.truth, answers)
        worst = np.inf if unpaired else 0.0
        for pair in pairs:
            answer = answers[pair.candidate]
            exact, given = fit(pair, self.truth[pair.reference], answer)
            allowed, _ = fit(pair, self.allowed[pair.reference], answer)
            if exact.shape != given.shape:
                return float("inf")
            side = judge(given, given, exact, allowed).one
            worst = max(worst, side.bounds if side.beyond else min(side.bounds, 1.0))
        return float(worst)


def exact_of(model: onnx.ModelProto, feeds: Mapping[str, Array], dtype: str = "float32") -> Exact:
    """Compute exact values, and what rounding explains.

    Args:
        model: In its own types.
        feeds: In the same.
        dtype: A type that is meant in place of float32.

    Raises:
        Exception: whatever ONNX's reference raises for what it doesn't know.
    """
    analysis = Analysis(model, dtype)
    names = [item.name for item in model.graph.output]
    found = analysis.at(feeds, ACCURACY)
    truth, bound = ({name: part[name] for name in names} for part in (found.truth, found.bound))
    if all(_tells(truth[name], bound[name]) for name in names):
        return Exact(truth, bound, BOUND)
    estimates = disturbed(analysis, feeds, ACCURACY)
    allowed = {name: np.minimum(bound[name], estimates.get(name, np.inf)) for name in names}
    return Exact(truth, allowed, ESTIMATE)


def _tells(truth: Array, bound: Array) -> bool:
    """Whether a bound is less than the numbers themselves, as behind many layers it isn't."""
    finite = truth[np.isfinite(truth)]
    return not truth.size or bool(np.median(bound) < (np.sqrt(np.mean(np.square(finite))) if finite.size else 0.0))
