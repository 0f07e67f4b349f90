"""Another training state of the same network: all its numbers are a little off, which is one thing to say."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

from conrepair.graph.layer_graph import LayerGraph
from conrepair.localization.diagnosis.diagnose import Diagnosis
from conrepair.runtime.words import number

__all__ = ["as_one_training"]

_LEAST = 3  # layers that are off alike by no chance
_MOST_OF = 0.75  # of the layers with weights: some may be frozen, or too little off to be at fault
_ALIKE = 10.0  # times the usual: what's further off than all others is at fault by itself
_WEIGHTS = ("weight", "W")


def as_one_training(found: Sequence[Diagnosis], target: LayerGraph) -> list[Diagnosis]:
    """Tell of layers whose numbers are all off alike as one fault, so that others are seen beside it.

    Args:
        found: What's wrong, by regions.
        target: The target's graph, which says how many layers have weights.

    Returns:
        The same, where that's so: the others, then the one. It's measured where only the numbers differ.
    """
    usual = statistics.median([item.disturbed for item in found if item.disturbed] or [0.0])
    off = [item for item in found if 0 < item.disturbed <= _ALIKE * usual]
    weighted = {node.layer for node in target.nodes if any(role in node.parameters for role in _WEIGHTS)}
    layers = list(dict.fromkeys(item.fault.target_layers[0] for item in off if item.fault.target_layers))
    among = sum(name in weighted for name in layers)
    if among < max(_LEAST, _MOST_OF * len(weighted)):
        return list(found)
    least, most = (bound(item.disturbed for item in off) for bound in (min, max))
    first = max((item for item in off if item.alone), key=lambda item: item.fault.introduced_error, default=off[0])
    size = " to ".join(dict.fromkeys(map(number, (least, most))))
    words = (
        f"another training state: the numbers of {among} of {len(weighted)} layers with weights are off by {size} "
        "(relative L2), as if disturbed by noise"
    )
    fault = replace(
        first.fault,
        source_layers=tuple(dict.fromkeys(item.fault.source_layers[0] for item in off)),
        target_layers=tuple(layers),
        evidence=(words, *first.fault.evidence[-1:]),
        differences=(("another training state", layers[0]),),
    )
    return [*(item for item in found if item not in off), replace(first, fault=fault, cause="training")]
