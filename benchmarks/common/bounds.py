"""What shares of few cases can be taken for."""

from __future__ import annotations

from scipy.stats import beta

__all__ = ["at_least", "at_most", "interval"]

_CONFIDENCE = 0.95


def interval(count: int, cases: int) -> tuple[float, float]:
    """The 95 % interval of a share by Clopper and Pearson (Biometrika 26, 1934), exact for few cases."""
    if not cases:
        return 0.0, 1.0
    tail = (1 - _CONFIDENCE) / 2
    low = float(beta.ppf(tail, count, cases - count + 1)) if count else 0.0
    high = float(beta.ppf(1 - tail, count + 1, cases - count)) if count < cases else 1.0
    return low, high


def at_least(share: float | None, cases: int) -> str:
    """The lower bound of a share, with 97.5 % confidence, in words; "" where there's none."""
    return "" if share is None or not cases else f"{100 * interval(round(share * cases), cases)[0]:.1f} %"


def at_most(count: int, cases: int) -> str:
    """The upper bound of a share, with 97.5 % confidence, in words; "" where there's none."""
    return f"{100 * interval(count, cases)[1]:.1f} %" if cases else ""
