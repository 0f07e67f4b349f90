"""All faults of attention, and putting one in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.attention.faults import blocks, masking, rotating, scores
from benchmarks.attention.faults.site import AttentionFault, Site
from benchmarks.attention.spec import Spec, Writing
from benchmarks.common.plain_graph import PlainGraph

__all__ = ["FAULTS", "put_in"]

FAULTS: dict[str, AttentionFault] = {
    fault.name: fault for fault in (*scores.FAULTS, *masking.FAULTS, *rotating.FAULTS, *blocks.FAULTS)
}


def put_in(
    fault: AttentionFault, graph: PlainGraph, spec: Spec, writing: Writing, chosen: Sequence[int], seed: int
) -> PlainGraph | None:
    """A graph with a fault.

    Args:
        fault: Which.
        graph: The right one; it stays as it is.
        spec: What that computes.
        writing: How it's written.
        chosen: Numbers of blocks; a fault of what blocks share is put in once, where all are chosen.
        seed: For what's drawn, the same for all blocks.

    Returns:
        The wrong graph; None where there's no place for the fault.
    """
    shared = fault.shared or (fault.mask and writing.shared)
    if shared and len(chosen) < spec.blocks:
        return None
    wrong = graph.copy()
    sites = [Site(wrong, spec, writing, block, np.random.default_rng(seed)) for block in chosen]
    return wrong if all(fault.apply(site) for site in (sites[:1] if shared else sites)) else None
