"""Statistics of a row: its spread, its shares."""

from __future__ import annotations

from collections.abc import Iterator

from conrepair.ground.forms.form import Form, Writing

_VARIANCE = "ReduceMean(Square(x)) - Square(ReduceMean(x))"
_DEVIATION = "c = x - ReduceMean(x); d = c - ReduceMean(c)"  # the second mean is what the first was rounded by
_PLAIN = "m = ReduceMean(x); d = x - m; v = ReduceMean(Square(d))"
# Normalizations: what is done with the normalized value, and what is divided by, of a variance.
_NORMALIZATIONS = {
    "LayerNormalization(x, scale, shift, axis=axis, epsilon=epsilon)": ("{} * scale + shift", "Sqrt({} + epsilon)"),
    "LayerNormalization(x, scale, axis=axis, epsilon=epsilon)": ("{} * scale", "Sqrt({} + epsilon)"),
    "InstanceNormalization(x, scale, shift, epsilon=epsilon)": (
        "{} * PerChannel(scale) + PerChannel(shift)",
        "Sqrt({} + epsilon)",
    ),
    "MeanVarianceNormalization(x)": ("{}", "(Sqrt({}) + 1e-9)"),
}
_SUMMED, _SHARED = "Log(ReduceSum(Exp(x)))", "Exp(x) / ReduceSum(Exp(x))"
_SHIFTED = "m = ReduceMax(x); e = Exp(x - m)"
_LOG_SUM = f"{_SHIFTED}; m + Log(ReduceSum(e))"
_SHARES = f"{_SHIFTED}; e / ReduceSum(e)"
# The largest, k of them, are 1 each: what the others add to them may be far below the last place of 1.
_LOG_SHARES = (
    f"{_SHIFTED}; r = ReduceSum(Where(x < m, e, 0)); k = ReduceSum(Where(x < m, 0, 1)); "
    "(x - m) - (Log(k) + Log1p(r / k))"
)
_LOG_OF_SHARES = f"{_SHIFTED}; Log(e / ReduceSum(e)) | {_SHIFTED}; (x - m) - Log(ReduceSum(e))"


def _normalizations(naive: str, sizes: str) -> Iterator[Writing]:
    """Of a variance `v` and deviations `d` that are computed so, and with the rounding errors of so many spreads."""
    for pattern, (scaled, spread) in _NORMALIZATIONS.items():
        own, right = spread.format("v"), spread.format("ReduceMean(Square(d))")
        yield Writing(
            pattern,
            f"{_DEVIATION}; {scaled.format(f'd / {right}')}",
            f"{naive}; {scaled.format(f'd / {own}')}" if naive else "",
            f"{_PLAIN}; s = {own}; {scaled.format(f'({sizes})')}",
        )


STATISTICS: tuple[Form, ...] = (
    Form(
        "E[x^2] - E[x]^2",
        "The variance is the difference of two numbers of the size of the squared mean: where the mean is k times "
        "the spread, k^2 units in the last place are lost, and it may come out negative.",
        "the variance in two passes, E[(x - E[x])^2]",
        (
            Writing(_VARIANCE, f"{_DEVIATION}; ReduceMean(Square(d))", _VARIANCE, _VARIANCE.replace("-", "+")),
            *_normalizations(
                "m = ReduceMean(x); d = x - m; v = ReduceMean(Square(x)) - Square(m)",
                "Abs(d) / s * Square(m) / (v + 1e-30)",
            ),
        ),
    ),
    Form(
        "x - E[x]",
        "What the mean is rounded by is in every difference from it: where the mean is k times the spread, the "
        "normalized values are off by k units in the last place of 1, in a long sum of one order by more.",
        "the mean of the differences subtracted once more",
        tuple(_normalizations("", "Abs(m) / s")),
    ),
    Form(
        "e^x without the largest taken out",
        "The exponentials of a row are summed as they are: one above 89 is infinite, a row below -104 is "
        "0 (float32), and the quotient or logarithm is NaN or infinite; near that, digits go to subnormal numbers.",
        "the largest of the row subtracted first",
        (
            *(Writing(text.replace("(x)", "(x - ReduceMax(x))"), safe=True) for text in (_SUMMED, _SHARED)),
            Writing(_SUMMED, _LOG_SUM),
            Writing("ReduceLogSum(Exp(x))", _LOG_SUM, _SUMMED),
            Writing("ReduceLogSumExp(x)", _LOG_SUM, _SUMMED),
            Writing(_SHARED, _SHARES),
            Writing("Softmax(x, axis=axis)", _SHARES, _SHARED),
            Writing("Log(Softmax(x, axis=axis))", _LOG_SHARES, f"Log({_SHARED}) | {_LOG_OF_SHARES}"),
            Writing("LogSoftmax(x, axis=axis)", _LOG_SHARES, f"x - {_SUMMED} | {_LOG_OF_SHARES}"),
        ),
    ),
)
