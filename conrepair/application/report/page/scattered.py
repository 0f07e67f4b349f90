"""What a scatter of the values of both models says, in words: a slope is a factor, an offset a shift."""

from __future__ import annotations

import math

from conrepair.diagnosis.localization.run.kept import Scatter
from conrepair.ground.runtime.words import number, percent, telling

_LINE = 0.999  # correlation from which points lie on a line
_CLOUD = 0.3  # up to which they don't lie along one
_APART = 0.002  # of 1, and of the values' spread: from here on a factor or an offset is one
_ALL = 0.9999


def scatter_words(scatter: Scatter) -> str:
    """A sentence of what is seen, and the line with its figures.

    Args:
        scatter: Of a layer.
    """
    share = percent(scatter.same) if scatter.same else "none"
    same = f"{share} of the values are the same within 1 %"
    if math.isnan(scatter.correlation):
        return f"All values of a model are equal here, so that no line can be fitted; {same}."
    spread = (scatter.source[-1] - scatter.source[0]) / 2
    beside = abs(scatter.offset) / spread if spread else math.inf
    offset = f" {'-' if scatter.offset < 0 else '+'} {number(abs(scatter.offset))}" if beside > _APART else ""
    loose = math.sqrt(max(1 - scatter.correlation**2, 0.0))  # an offset within what points lie off their line is none
    line = f"fitted line: converted = {telling(scatter.factor, digits=4)} x original{offset}"
    seen = _seen(scatter, beside > max(_APART, loose))
    return f"{seen} The {line}; correlation {telling(scatter.correlation)}; {same}."


def _seen(scatter: Scatter, shifted: bool) -> str:
    factor, correlation = scatter.factor, scatter.correlation
    scaled = abs(factor - 1) > _APART
    if scatter.same >= _ALL:
        return "All points lie on the diagonal: the values hardly differ."
    if abs(correlation) <= _CLOUD:
        return "The points are a cloud: values stand at other places (a permutation, another layout), or are others."
    if abs(correlation) < _LINE:
        return (
            "The points lie along a line, but not on it: no single factor or offset fits them. Some values are "
            "right and others aren't, or each channel differs in its own way."
        )
    if correlation < 0:
        return "The points lie on a falling line: the sign is another."
    if scaled and shifted:
        return "The points lie on a line of another slope beside the diagonal: a factor and an offset."
    if scaled:
        times = telling(factor, digits=4)
        return f"The points lie on a line of another slope: all values are {times} times as large, a factor."
    if shifted:
        return f"The points lie beside the diagonal: all values are off by {number(scatter.offset)}, an offset."
    return "The points lie on the diagonal: the values hardly differ."
