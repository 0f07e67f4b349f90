"""Judge outputs that are random by their distributions: repeated runs on the same inputs, each one observation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.ground.metrics.statistics import mann_whitney
from conrepair.verdicts.evaluate.verdict import Verdict

Array = npt.NDArray[Any]

_CHANCE = 1e-5  # of the probability that runs of one distribution differ so; an output has three statistics
_ERRORS = 5.0  # standard errors, from which on a difference is as improbable
_TINY = 1e-300
_SEEN = 1.5  # a ratio of spreads that runs must be able to show, else it says nothing that they agree
# Generators that are seeded by consecutive numbers draw some values anew in each session only: a difference counts
# that's larger than those make, in relation to the spread.
_LARGE, _LARGE_PATTERN = 0.1, 0.5


def judge_draws(one: Array, two: Array, allowed: float) -> tuple[Verdict, str]:
    """Judge whether two models draw their outputs from one distribution, by its means and spread.

    Args:
        one: The original's, a row for each run.
        two: The converted model's, likewise.
        allowed: By how much means and spreads may differ, in relation to the values of the original.

    Returns:
        The verdict and its reason in words.
    """
    one, two = one.astype(np.float64), two.astype(np.float64)
    runs = f"over {len(one)} runs of each model on the same inputs"
    if not (np.isfinite(one).all() and np.isfinite(two).all()):
        return Verdict.UNDECIDED, f"outputs of both models are random, and {runs} some values are NaN or infinite"
    size, errors = np.sqrt((one**2).mean()) or 1.0, dict[str, float]()
    for name, ours, theirs, unit, least in _statistics(one, two):
        apart = float(theirs.mean() - ours.mean())
        errors[name] = float(np.sqrt(ours.var() / len(ours) + theirs.var() / len(theirs)))
        _, chance = mann_whitney(ours, theirs)
        if chance < _CHANCE and abs(apart) * unit > max(least, allowed * size):
            ratio = f"{np.exp(apart):.3g} times" if name == "spread" else f"{abs(apart) * unit:.2g} off"
            return Verdict.FAULTY, (
                f"outputs have another distribution: {runs} the {name} is {ratio} the original's (p-value "
                f"{chance:.0e})"
            )
    seen = float(np.exp(max(_LARGE, _ERRORS * errors["spread"])))
    if seen > _SEEN:
        return Verdict.UNDECIDED, (
            f"outputs of both models are random, and can't be told apart {runs}: only a spread of {seen:.2g} times "
            "the original's or more would show. Give more samples"
        )
    return Verdict.NOISE, (
        f"outputs of both models are random, and their distributions agree in mean and spread {runs} (a spread of "
        f"{seen:.3g} times the original's would show)"
    )


def _statistics(one: Array, two: Array) -> Iterator[tuple[str, Array, Array, float, float]]:
    """What's compared: its name, each observation of it, what a difference of 1 is of values, and how much counts."""
    half = len(one) // 2
    apart = [(runs[:half] - runs[half : 2 * half]) / np.sqrt(2) for runs in (one, two)]
    spread = [np.sqrt((runs**2).mean(axis=1)) + _TINY for runs in apart]
    usual = float(np.mean(spread[0]))
    yield "spread", np.log(spread[0]), np.log(spread[1]), usual, _LARGE * usual
    yield "mean", one.mean(axis=1), two.mean(axis=1), 1.0, _LARGE * usual
    # Where means differ is looked for in some of the runs, and whether they differ there in the others.
    where = two[:half].mean(axis=0) - one[:half].mean(axis=0)
    where /= (np.linalg.norm(where) or 1.0) * np.sqrt(where.size)
    yield "mean of each value", one[half:] @ where, two[half:] @ where, 1.0, _LARGE_PATTERN * usual
