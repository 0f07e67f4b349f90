"""Calibrate a piece anew, whose activations are in ranges that are too small for the source's values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from conrepair.graph.intervals import intervals
from conrepair.graph.layer_graph import Tensor
from conrepair.localization.saturation import begins_at_zero, is_small
from conrepair.repairs.edits import SetRange
from conrepair.repairs.proposals.proposal import Proposal, ProposalSetting

__all__ = ["calibration_proposals"]

_BEYOND = 1.0  # times a range: what's at fault may be so by a little of it


def calibration_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """Ranges for all activations of a piece at once that hold less than the source's values.

    What cuts stand for is known, and what steps between them are read as; what elementwise operators with constants
    make of it follows from that.
    """
    region = setting.region
    graph, ours = region.target.graph, region.source.graph
    cuts = {name: region.partners[name] for name in region.target.begins if name in region.partners}
    cuts[region.target.end] = region.source.end
    for one, two in setting.reading.pairs:
        if one is not None and two is not None and one.op == two.op and ours.tensors[one.outputs[0]].observable:
            cuts.setdefault(two.outputs[0], one.outputs[0])
    likely = {name: setting.range_of(source, of_others=True) for name, source in cuts.items()}
    edits = []
    for name, ends in intervals(region.target.nodes, likely).items():
        tensor = graph.tensors[name]
        # What has one grid, as where values are only moved or joined, needs one for all of it.
        shared = {item for other, item in region.partners.items() if _of_one_grid(graph.tensors[other], tensor)}
        ranges = np.array([ends, *(setting.range_of(source, of_others=True) for source in shared)])
        low, high = float(ranges[:, 0].min()), float(ranges[:, 1].max())
        if tensor.stored is None or not tensor.observable or not np.isfinite((low, high)).all() or low >= high:
            continue
        if is_small(tensor.stored, low, high, _BEYOND) and setting.in_editor.tensor(name) is not None:
            least = 0.0 if begins_at_zero(tensor.stored) else min(low, 0.0)
            edits.append(SetRange(name, least, max(high, 0.0)))
    if edits:
        yield tuple(edits)


def _of_one_grid(one: Tensor, other: Tensor) -> bool:
    return one.quantization is not None and one.quantization == other.quantization
