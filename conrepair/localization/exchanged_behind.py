"""Weights that were changed as all that lies behind them: whoever fixes some of them makes the rest wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conrepair.graph.kinds import Kind
from conrepair.localization.matching import Pair
from conrepair.localization.result import LocatedFault

__all__ = ["exchanged_behind"]


def exchanged_behind(ends: Sequence[Pair], faults: Sequence[LocatedFault]) -> Iterator[str]:
    """Say where all behind changed weights stands with axes exchanged, and fits.

    Args:
        ends: Of the guilty pieces, in the target's order.
        faults: Of all of them.
    """
    changed = {fault.target_tensor for fault in faults if fault.kind is Kind.PARAMETERS}
    for pair in ends:
        if pair.target in changed and pair.layout.exchanges:
            yield (
                f"behind `{pair.target}` all stands with axes exchanged (the source's {pair.layout}), and is right "
                "so: who changes the weights in front of it alone makes that wrong; change all, or put one Transpose "
                "in"
            )
            return
