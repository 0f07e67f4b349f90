"""Which systematic faults are put into which networks."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.common.cases import REPORTING_SEEDS, ROUTES, Case
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
    """All cases of some seeds: each fault in all its places, in all formats, and in one place of an ONNX file.

    Development and reporting have the same pretrained networks, others of the other sorts.
    """
    seed = next((item for item in seeds if item in REPORTING_SEEDS), seeds[0])
    networks = [(name, network, fault.unfolded) for name, fault in FAULTS.items() for network in fault.networks]
    networks += [(name, network, False) for network in BY_HAND for name in ATTENTION[network]]
    cases = []
    for name, network, unfolded in networks:
        side = KEPT if unfolded else FOLDED
        cases += [Case(group, network, side, side, (name,), 1, seed, group) for group in (EVERYWHERE, ONCE)]
        for target, route in ROUTES.items():
            cases.append(
                Case(EVERYWHERE, network, side, side, (name,), 1, seed, EVERYWHERE, route=route, format=target)
            )
    return cases
