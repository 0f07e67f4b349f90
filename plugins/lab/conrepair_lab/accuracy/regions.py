"""The ranges of inputs in which errors occur, in words."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from conrepair.ground.operators.record import Array
from conrepair_lab.accuracy.samples import CONDITIONS

_NEARLY_ALL = 0.98


def region(inputs: Array, wrong: Array, ordinary: Array) -> str:
    """The range of inputs that holds the wrong results, and few others.

    Args:
        inputs: Any shape.
        wrong: Which of them have a wrong answer.
        ordinary: Which of them have one that was compared.
    """
    x, bad = inputs[ordinary], wrong[ordinary]
    size = np.abs(x)
    worst, sizes = x[bad], size[bad]
    low, high, small, large = worst.min(), worst.max(), sizes.min(), sizes.max()
    sign = "x > 0, " if low > 0 else "x < 0, " if high < 0 else ""
    side = (x > 0) if low > 0 else (x < 0) if high < 0 else np.ones_like(bad)
    ranges = {
        f"x < {high:.3g}": x <= high,
        f"x > {low:.3g}": x >= low,
        f"{sign}|x| < {large:.3g}": side & (size <= large),
        f"{sign}|x| > {small:.3g}": side & (size >= small),
        f"{low:.3g} < x < {high:.3g}": (x >= low) & (x <= high),
        f"{sign}{small:.3g} < |x| < {large:.3g}": side & (size >= small) & (size <= large),
    }
    # Of a range that is said with two numbers more must be wrong than of one with one.
    shares = {words: bad[inside].mean() - 0.1 * (words.count("<") > 1) for words, inside in ranges.items()}
    best = max(shares, key=lambda words: shares[words])
    if ranges[best].mean() > _NEARLY_ALL:
        return "everywhere"
    return best if bad[ranges[best]].mean() > 0.5 else f"at some {best}"


def region_of_pairs(left: Array, right: Array, wrong: Array, ordinary: Array) -> str:
    """The range of two inputs: of the left one, the right one, or their quotient, whichever says most."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        named = {"a": left, "b": right, "a/b": left / right}
    words = {name: region(array, wrong, ordinary).replace("x", name) for name, array in named.items()}
    return min(words.values(), key=lambda text: (text.startswith("at some"), len(text)))


def region_of_sizes(wrong: Mapping[int, Array]) -> str:
    """The sizes of sums, and the signs of their terms, that give wrong results.

    Args:
        wrong: By size, which of the conditions have a wrong answer.
    """
    sizes = sorted(wrong)
    bad = [size for size in sizes if wrong[size].any()]
    kinds = np.logical_or.reduce(list(wrong.values()))
    terms = "" if kinds.all() else " or ".join(np.array(list(CONDITIONS))[kinds])
    if bad == sizes[-len(bad) :]:
        sized = "" if len(bad) == len(sizes) else f"sizes from {bad[0]} on"
    else:
        sized = f"sizes {', '.join(map(str, bad))}"
    return ": ".join(filter(None, (sized, terms and f"terms {terms}"))) or "everywhere"
