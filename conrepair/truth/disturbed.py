"""How far right computations of a network are from the exact one, by trying: runs disturbed at every operator.

A running bound (`conrepair.truth.bound`) takes the worst of every rounding, and forgets what two operands have in
common: behind some twenty layers it's larger than the numbers themselves. Here every result of every node is changed
at random by as much as the node's own rounding likely comes to, and the network runs on with that: what the outputs
then do is what rounding does to them (Monte Carlo arithmetic: Parker, "Monte Carlo arithmetic: exploiting
round-off error in numerical software", UCLA CSD-970002, 1997). It's an estimate, no bound: it is to be said.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from conrepair.operators.record import Array
from conrepair.truth.bound import Accuracy, Analysis
from conrepair.truth.judging import distances

__all__ = ["disturbed"]

_RUNS = 16
_NUMBERS = "biuf"
_TIMES = 4.0  # a node's own rounding, so that steps which are near are met, too; no more than its bound
_MARGIN = 2.0  # for errors of one sign, which random ones aren't


def disturbed(analysis: Analysis, feeds: Mapping[str, Array], accuracy: Accuracy) -> dict[str, Array]:
    """Estimate the largest error of a right computation, element by element.

    Args:
        analysis: Of the network.
        feeds: In its own types.
        accuracy: As of `Analysis.at`.

    Returns:
        By output of numbers; infinite where a node's own rounding may come to anything, or what isn't finite changes.
    """
    generator = np.random.default_rng(0)
    exact = analysis.given(feeds)
    own = [analysis.rounding(step, accuracy, _TIMES) for step in analysis.steps(exact)]
    names = [
        name
        for name in analysis.outputs
        if isinstance(exact[name], np.ndarray) and exact[name].dtype.kind in _NUMBERS
    ]
    worst = {name: np.zeros(exact[name].shape) for name in names}
    for _ in range(_RUNS):
        values = analysis.given(feeds)
        for step, bounds in zip(analysis.steps(values), own, strict=True):
            for place, bound in enumerate(bounds):
                output = step.outputs[place]
                if isinstance(output, np.ndarray) and output.dtype.kind in "fiu" and output.shape == np.shape(bound):
                    step.outputs[place] = _moved(output, bound, generator)
        for name in names:
            there = np.shape(values[name]) == exact[name].shape  # else it has another size now
            worst[name] = np.maximum(worst[name], distances(values[name], exact[name]) if there else np.inf)
    return {name: _MARGIN * found for name, found in worst.items()}


def _moved(output: Array, bound: Array, generator: np.random.Generator) -> Array:
    """A result off by what its own rounding comes to; a whole number stays one, of its type."""
    if output.dtype.kind == "f":
        return np.asarray(output + generator.uniform(-1, 1, output.shape) * bound)
    if not bound.any():
        return output
    ends = np.iinfo(output.dtype)
    low, high = float(ends.min), np.nextafter(float(ends.max), 0)
    steps = np.rint(generator.uniform(-1, 1, output.shape) * np.minimum(bound, high - low))
    return np.where(bound > 0, np.clip(output + steps, low, high).astype(output.dtype), output)
