"""Functions of one number."""

from __future__ import annotations

import onnx_ir

from conrepair.ground.forms.form import Form, Writing

_SOFTPLUS = "Max(x, 0) + Log1p(Exp(-Abs(x)))"
# e^(2 softplus) is (1 + e^x)^2; both sides of tanh's fraction are divided by its larger power.
_MISH = "t = Exp(-Abs(x)); n = t * (t + 2); m = 1 + 2 * t; x * Where(x < 0, n / (n + 2), m / (m + 2 * Square(t)))"
_TANH = "e = Expm1(-Abs(x + x)); r = e / (e + 2); Where(x < 0, r, -r)"
_SINH = (
    "s = Abs(x); e = Expm1(Min(s, 1)); h = Exp(s * 0.5); "
    "r = Where(s < 1, (e + e / (e + 1)) * 0.5, h * 0.5 * h - 0.5 / Square(h)); Where(x < 0, -r, r)"
)
_ATANH = "s = Abs(x); r = Log1p(2 * s / (1 - s)) * 0.5; Where(x < 0, -r, r)"
_ELU = "Where(x < 0, alpha * Expm1(Min(x, 0)), x)"
_CELU = "Where(x < 0, alpha * Expm1(Min(x, 0) / alpha), x)"

_SINGLE = frozenset({onnx_ir.DataType.FLOAT})  # for which constants below have digits enough
_HALF_ROOT = 0.5**0.5


def _tail(root: float) -> str:
    """`c` = erfc(root |x|), with a relative error of 1e-7: Chebyshev's polynomial, as in Numerical Recipes.

    x^2 is taken in two parts, of which the first is exact: its rounding would become a relative error.
    """
    factors = "1.00002368 0.37409196 0.09678418 -0.18628806 0.27886807 -1.13520398 1.48851587 -0.82215223 0.17087277"
    inner = " + t * (".join(factors.split()) + ")" * factors.count(" ")
    return (
        f"s = Min(Abs(x), 40); h = Floor(s * 16) * 0.0625; t = 1 / (1 + s * {root / 2!r}); "
        f"c = t * Exp(h * h * {-(root**2)!r}) * Exp((h - s) * (h + s) * {root**2!r} - 1.26551223 + t * ({inner}))"
    )


_GELU = f"{_tail(_HALF_ROOT)}; g = s * 0.5 * c; Where(x < 0, -g, x - g)"
_NORMAL = [f"Erf({inner}) + 1" for inner in (f"x / {2**0.5!r}", f"x * {_HALF_ROOT!r}")]

FUNCTIONS: tuple[Form, ...] = (
    Form(
        "log(1 + e^x)",
        "A small t is rounded off in the sum 1 + t whose logarithm is taken: from -5 down the result has fewer and "
        "fewer digits, below -17 none (float32). Without max(x, 0) taken out it's infinite from 89 on.",
        "max(x, 0) + log1p(e^-|x|), log1p by its series",
        (
            Writing("Log(Exp(x) + 1)", _SOFTPLUS),
            Writing("Softplus(x)", _SOFTPLUS),
            Writing("Mish(x)", _MISH),
            Writing("x * Tanh(Softplus(x))", _MISH),
            Writing("Log(Sigmoid(x))", "Min(x, 0) - Log1p(Exp(-Abs(x)))"),
            Writing("Log(x + 1)", "Log1p(x)"),
        ),
    ),
    Form(
        "e^x - 1",
        "For small |x| the exponential is rounded to a number near 1, and its difference from 1 is what it was "
        "rounded by: the relative error is the unit in the last place of 1, divided by x.",
        "its series where |x| is below 0.5",
        (
            Writing("Exp(x) - 1", "Expm1(x)"),
            Writing("Elu(x, alpha=alpha)", _ELU, _ELU.replace("Expm1(Min(x, 0))", "(Exp(x) - 1)")),
            Writing(
                "Selu(x, alpha=alpha, gamma=gamma)",
                f"gamma * {_ELU}",
                "gamma * " + _ELU.replace("Expm1(Min(x, 0))", "(Exp(x) - 1)"),
            ),
            Writing("Celu(x, alpha=alpha)", _CELU, _CELU.replace("Expm1(Min(x, 0) / alpha)", "(Exp(x / alpha) - 1)")),
            *(Writing(text, _SINH) for text in ("Sinh(x)", "(Exp(x) - Exp(-x)) * 0.5", "(Exp(x) - Exp(-x)) / 2")),
        ),
    ),
    Form(
        "tanh by e^x",
        "The numerator, a difference of two numbers near 1 or of two exponentials, cancels for small |x|: no digits "
        "are left below 6e-8 (float32). Without a bound the exponentials are infinite for large |x|, their quotient "
        "NaN.",
        "e^-2|x| - 1 by its series, with the sign of x",
        (
            Writing("Tanh(x)", _TANH),
            Writing("(Exp(x) - Exp(-x)) / (Exp(x) + Exp(-x))", _TANH),
            *(Writing(f"(Exp({two}) - 1) / (Exp({two}) + 1)", _TANH) for two in ("x * 2", "x + x")),
            *(Writing(f"1 - 2 / (Exp({two}) + 1)", _TANH) for two in ("x * 2", "x + x")),
        ),
    ),
    Form(
        "log of a ratio near 1",
        "(1 + x) / (1 - x) is rounded to a number near 1 for small |x|, and its logarithm is what it was rounded by: "
        "no digits are left below 6e-8 (float32).",
        "log1p(2|x| / (1 - |x|)) / 2 with the sign of x, log1p by its series",
        (
            Writing("Atanh(x)", _ATANH),
            Writing("Log((x + 1) / (1 - x)) * 0.5", _ATANH),
            Writing("Log((x + 1) / (1 - x)) / 2", _ATANH),
        ),
    ),
    Form(
        "bounded argument",
        "The kernel's approximation holds the argument within bounds, or its absolute error below one that is small "
        "beside 1: where the function itself is small, the relative error grows until no digit is right.",
        "e^x / (1 + e^x) below 0 for the sigmoid; the series of erf where |x| is below 0.5",
        (
            Writing("Sigmoid(x)", "e = Exp(-Abs(x)); d = 1 + e; Where(x < 0, e / d, 1 / d)", kernels="from -8 down"),
            Writing("Erf(x)", "Where(Abs(x) < 0.5, SmallErf(x), Erf(x))"),
        ),
    ),
    Form(
        "1 + erf(x)",
        "Below -2 the error function is near -1, and its sum with 1 cancels: no digits are left below -4 (float32).",
        "erfc(|x|) by a polynomial times e^-x^2",
        (
            Writing('Gelu(x, approximate="none")', _GELU),
            *(Writing(f"x * ({normal}) * 0.5", _GELU) for normal in _NORMAL),
            *(Writing(f"x * 0.5 * ({normal})", _GELU) for normal in _NORMAL),
            Writing("Erf(x) + 1", f"{_tail(1.0)}; Where(x < 0, c, 2 - c)"),
        ),
        _SINGLE,
    ),
    Form(
        "fast e^x",
        "n log 2 is subtracted from x, n = round(x / log 2), with log 2 in one constant: what that is rounded by is "
        "multiplied by n and becomes a relative error, which grows with |x|.",
        "2^n times the series of e^r, log 2 in two constants",
        (
            Writing("Exp(x)", "TwoPartExp(x)"),
            Writing(
                "Softmax(x, axis=axis)",
                "e = TwoPartExp(x - ReduceMax(x)); e / ReduceSum(e)",
                "e = OneConstantExp(x - ReduceMax(x)); e / ReduceSum(e)",
            ),
            Writing("Sigmoid(x)", "1 / (1 + TwoPartExp(-x))", kernels="fast"),
        ),
        _SINGLE,
    ),
    Form(
        "e^(y log x)",
        "The exponent is rounded before it is raised: the relative error is y log x units in the last place.",
        "",
        (Writing("Pow(x, y)"), Writing("Exp(Log(x) * y)")),
    ),
    Form(
        "argument reduced in few bits",
        "Multiples of 2 pi are subtracted with 2 pi in one constant: the error of the angle grows with |x|, and near "
        "a zero of the function it is all that is left.",
        "",
        (Writing("Sin(x)"), Writing("Cos(x)"), Writing("Tan(x)")),
    ),
    Form(
        "1/sqrt",
        "The reciprocal of a root is a processor's approximation in about 12 bits, with or without a step of "
        "Newton's, or x / sqrt(x) is x times it: 0 times infinity at 0.",
        "",
        (
            Writing("Reciprocal(Sqrt(x))", naive="Rough(1 / Sqrt(x))"),
            Writing("1 / Sqrt(x)", naive="Rough(1 / Sqrt(x))"),
            Writing("y / Sqrt(x)", naive="y * Rough(1 / Sqrt(x))"),
        ),
    ),
)
