"""The most that can be asked for: what's beyond is a slip, and would fill the memory or never end."""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from conrepair.ground.runtime.errors import ModelLoadError

MOST_GIGABYTES = 1_000_000
"""Of a limit of space: more than a disk has."""

MOST_OPERATORS = 1 << 20
"""Of a network whose functions are written out where they're called: the largest known have a tenth of that."""

MOST_SAMPLES = 1_000_000
"""Inputs that are drawn: each runs through every model, and its name, times and answers are held in memory."""

MOST_SECONDS = 1e7
"""Of a limit: 116 days; timers of the system end somewhere behind it."""

MOST_SEED = 2**63 - 1


def check_expansion(path: str | Path, sizes: Mapping[str, int], calls: Mapping[str, Mapping[str, int]]) -> None:
    """Refuse a file that's small only as long as nobody writes its functions out where they're called.

    Libraries do that while they load or optimize a file, and don't count: thirty functions that call the next one
    twice come to 2^30 operators.

    Args:
        path: Of the file.
        sizes: How many operators a graph, function or nested model has itself, by a name of its own.
        calls: How often each calls others; those that `sizes` lacks are no functions.

    Raises:
        ModelLoadError: if one would be larger than `MOST_OPERATORS`, or calls itself.
    """
    try:
        order = [name for name in TopologicalSorter(calls).static_order() if name in sizes]
    except CycleError as error:
        around = ", ".join(dict.fromkeys(str(name)[:40] for name in error.args[1][:4]))
        raise ModelLoadError(
            f"{path} isn't loaded: a function in it calls itself ({around}), so that it would never end. Export the "
            "model again, with a loop in its place."
        ) from error
    whole: dict[str, int] = {}
    for name in order:
        called = calls.get(name, {}).items()
        whole[name] = sizes[name] + sum(times * whole[inner] for inner, times in called if inner in whole)
        if whole[name] > MOST_OPERATORS:
            raise ModelLoadError(
                f"{path} isn't loaded: its functions call one another so often that {name[:60]} alone comes to "
                f"{min(whole[name], 10**12):,} operators where they're written out, as libraries do, and "
                f"{MOST_OPERATORS:,} is the most that's read. Export the model without such functions."
            )
