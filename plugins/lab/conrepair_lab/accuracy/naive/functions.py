"""Unstable formulas of functions of one or two numbers."""

from __future__ import annotations

import math

from conrepair_lab.accuracy.naive.form import LOG_2, Form, computing, forms_of

_RATIONAL = "a rational function whose last product is subnormal below 1e-36"
_TINY, _BELOW, _GROWS = "loses its digits for tiny x", "loses its digits from -5 down", "the error grows with |x|"
_NEGATIVE, _LEFT = "e^x - 1: loses its digits for tiny negative x", "loses its digits below -2"
_SHIFTED = "e^(x - log 2)"
_SIGMOID = {
    "sigmoid by p(x)/q(x) + 1/2, a rational function with |x| held below 18: loses its digits from -8 down": (
        "RationalSigmoid(x)"
    ),
    "sigmoid by (1 + tanh(x/2)) / 2: loses its digits from -8 down": "0.5 + 0.5 * Tanh(x / 2)",
    "sigmoid by e^x / (1 + e^x): NaN from 89 on": "Exp(x) / (1 + Exp(x))",
    "sigmoid by 1 / (1 + e^-x): 0 below -88.7": "1 / (1 + Exp(-x))",
    "sigmoid by 1 / (1 + e^-x) with a fast e^x": "1 / (1 + FastExp(-x))",
}
_SOFTPLUS = {
    f"softplus by log(1 + e^x): {_BELOW}, infinite from 89 on": "Log(1 + Exp(x))",
    f"softplus by max(x, 0) + log(1 + e^-|x|): {_BELOW}": "Max(x, 0) + Log(1 + Exp(-Abs(x)))",
}
_WHOLE = {**_SOFTPLUS, "softplus with subnormal values, whose last digits are missing": "Softplus(x)"}

_TABLE = f"""
Tanh: tanh by (e^2x - 1) / (e^2x + 1): {_TINY} := (Exp(2 * x) - 1) / (Exp(2 * x) + 1)
Tanh: tanh by (1 - e^-2|x|) / (1 + e^-2|x|): {_TINY}
  := e = Exp(-2 * Abs(x)); r = (1 - e) / (1 + e); Where(x < 0, -r, r)
Tanh: tanh by 2 / (1 + e^-2x) - 1: {_TINY} := 2 / (1 + Exp(-2 * x)) - 1
Tanh: tanh by {_RATIONAL} := RationalTanh(x)
Atanh: atanh by log((1 + x) / (1 - x)) / 2: {_TINY} := Log((1 + x) / (1 - x)) / 2
Atanh: atanh by (log(1 + x) - log(1 - x)) / 2: {_TINY} := (Log(1 + x) - Log(1 - x)) / 2
Asinh: asinh by log(x + sqrt(x^2 + 1)): loses its digits for tiny and for negative x := Log(x + Sqrt(x * x + 1))
Asinh: asinh by log(|x| + sqrt(x^2 + 1)) with the sign of x: {_TINY}
  := r = Log(Abs(x) + Sqrt(x * x + 1)); Where(x < 0, -r, r)
Acosh: acosh by log(x + sqrt(x^2 - 1)): loses its digits near 1, infinite where x^2 is := Log(x + Sqrt(x * x - 1))
Acosh: acosh with x^2 on the way: infinite from 1.8e19 on := Where(IsInf(x * x), 1e999, Acosh(x))
Acos: acos by pi/2 - asin(x): loses its digits near 1 := {math.pi / 2} - Asin(x)
Acos: acos by sqrt(1 - x^2): loses digits near 1 := Atan2(Sqrt(1 - x * x), x)
Asin: asin by sqrt(1 - x^2): loses digits near 1 := Atan2(x, Sqrt(1 - x * x))
Elu: {_NEGATIVE} := Where(x < 0, Exp(x) - 1, x)
Celu: {_NEGATIVE} := Where(x < 0, 1.5 * (Exp(x / 1.5) - 1), x)
Selu: {_NEGATIVE} := 1.050701 * Where(x < 0, 1.6732632 * (Exp(x) - 1), x)
Erf: erf by {_RATIONAL} := RationalErf(x)
Erf: erf by 1 - p(t) e^-x^2 (Abramowitz and Stegun 7.1.26): {_TINY} := Erf1964(x)
Gelu: x (1 + erf(x/sqrt 2)) / 2: 1 + erf {_LEFT} := x / 2 * (1 + Erf(x / {2**0.5}))
Gelu: x (1 + erf) / 2 with erf by 1 - p(t) e^-x^2 (Abramowitz and Stegun 7.1.26): {_LEFT}
  := x / 2 * (1 + Erf1964(x / {2**0.5}))
Gelu: x erfc(-x/sqrt 2) / 2: the rounding of the argument counts x^2 times := x / 2 * Erfc(-x * {0.5**0.5})
Gelu (tanh): x (1 + tanh u) / 2: 1 + tanh {_LEFT} := x / 2 * (1 + Tanh(GeluInner(x)))
Gelu (tanh): x sigmoid(2u), sigmoid by a rational function + 1/2: {_LEFT} := x * RationalSigmoid(2 * GeluInner(x))
Exp: e^x by 2^n p(x - n log 2) with log 2 in one constant: {_GROWS} := FastExp(x)
Exp: e^x with 2^n made of its bits, n up to 128: infinite from 88.4 on := Where(x > {127.5 * LOG_2}, 1e999, Exp(x))
Exp: e^x by 2^(x / log 2), the exponent rounded: {_GROWS} := Exp2(x * {1 / LOG_2})
2 to the x: e^(x log 2), the exponent rounded: {_GROWS} := Exp(x * Log(y))
Log: log with a mantissa between 1 and 2: loses its digits just below 1 := LogUpwards(x)
Sinh: sinh by (e^x - e^-x) / 2: {_TINY} := (Exp(x) - Exp(-x)) / 2
Sinh: sinh by (e^|x| - e^-|x|) / 2 above 1: infinite from 88.8 on
  := Where(Abs(x) < 1, Sinh(x), (Exp(x) - Exp(-x)) / 2)
Sinh: sinh by {_SHIFTED} - e^(-x - log 2): {_GROWS}, and it {_TINY} := Exp(x - {LOG_2}) - Exp(-x - {LOG_2})
Sinh: sinh by {_SHIFTED} above 1: {_GROWS} := Where(Abs(x) < 1, Sinh(x), Exp(x - {LOG_2}) - Exp(-x - {LOG_2}))
Cosh: cosh by (e^x + e^-x) / 2: infinite from 88.8 on := (Exp(x) + Exp(-x)) / 2
Cosh: cosh by {_SHIFTED} + e^(-x - log 2): {_GROWS} := Exp(x - {LOG_2}) + Exp(-x - {LOG_2})
Sin: sin with 2 pi in one constant: {_GROWS} := Sin(Turned(x))
Cos: cos with 2 pi in one constant: {_GROWS} := Cos(Turned(x))
Tan: tan with 2 pi in one constant: {_GROWS} := Tan(Turned(x))
Silu: x times sigmoid with subnormal values, whose last digits are missing := x * Sigmoid(x)
Mish: x tanh(softplus x), the rational function of tanh with a subnormal last product
  := x * RationalTanh(Softplus(x))
Mean: (a + b) / 2: infinite where a + b is := (x + y) / 2
Div: a (1/b): 1/b is 0 or infinite before a/b is := x * (1 / y)
Pow: e^(b log a): the error grows with |b log a| := Power(x, y)
Pow 0.5, Pow 2, Pow 3: e^(y log x): the error grows with |log x| := Power(x, y)
Mod (fmod): a - b trunc(a/b): loses its digits where a is many times b := x - y * Trunc(x / y)
Mod (fmod): by the quotient: NaN where a/b is infinite := q = x / y; Where(IsInf(q), q - q, Fmod(x, y))
"""

_COMPOSED = (
    *(("Sigmoid", words, text) for words, text in _SIGMOID.items()),
    *(("Silu", f"x times {words}", f"x * ({text})") for words, text in _SIGMOID.items()),
    *(("Softplus", words, text) for words, text in _SOFTPLUS.items()),
    *(("LogSigmoid", f"minus {words}", f"x = -x; -({text})") for words, text in _SOFTPLUS.items()),
    *(("Mish", f"x tanh of {words}", f"x * Tanh({text})") for words, text in _WHOLE.items()),
)
FUNCTIONS: tuple[Form, ...] = (
    *(Form(operator, words, computing(text)) for operator, words, text in _COMPOSED),
    *forms_of(_TABLE),
)
