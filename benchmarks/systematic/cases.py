"""Which systematic faults are put into which networks."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.common.cases import REPORTING_SEEDS, Case
from benchmarks.common.making import FOLDED, KEPT
from benchmarks.systematic.faults import FAULTS
from benchmarks.systematic.networks import BY_HAND

__all__ = ["ATTENTION", "EVERYWHERE", "ONCE", "plan"]

EVERYWHERE, ONCE = "everywhere", "once"

ATTENTION = {
    "decoder": (
        *("rotation-of-the-other-sort", "rotation-backwards", "key-heads-tiled", "gate-and-up-exchanged"),
        *("epsilon-outside-the-root", "norm-weight-plus-one", "scale-missing", "layer-norm-for-rms-norm"),
        *("heads-merged-otherwise", "mask-after-softmax"),
    ),
    "encoder": (
        *("scale-without-root", "square-weight-transposed", "projection-bias-dropped", "mask-not-applied"),
        *("residual-from-elsewhere", "softmax-of-another-axis", "heads-not-turned-back", "keys-for-values"),
    ),
}
"""Faults of attention that are put into all blocks, too."""


def plan(seeds: Sequence[int]) -> list[Case]:
    """All cases of some seeds: each fault in all its places, and in one of them.

    Development and reporting have the same pretrained networks, others of the other sorts.
    """
    seed = next((item for item in seeds if item in REPORTING_SEEDS), seeds[0])
    cases = []
    for group in (EVERYWHERE, ONCE):
        for name, fault in FAULTS.items():
            side = KEPT if fault.unfolded else FOLDED
            cases += [Case(group, network, side, side, (name,), 1, seed, group) for network in fault.networks]
        for network in BY_HAND:
            names = ATTENTION[network]
            cases += [Case(group, network, FOLDED, FOLDED, (name,), 1, seed, group) for name in names]
    return cases
