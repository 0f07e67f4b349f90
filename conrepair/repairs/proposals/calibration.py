"""Calibrate a piece anew, whose activations are in ranges that are too small for the source's values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from conrepair.graph.intervals import intervals
from conrepair.localization.saturation import begins_at_zero, is_small
from conrepair.repairs.edits import SetRange
from conrepair.repairs.proposals.proposal import Proposal, Setting

__all__ = ["calibration_proposals"]

_BEYOND = 1.0  # times a range: what's at fault may be so by a little of it
_MORE = 1.1  # times the largest values of the samples: others may have larger ones


def calibration_proposals(setting: Setting) -> Iterator[Proposal]:
    """Ranges for all activations of a piece at once that hold less than the source's values.

    What cuts stand for is known; what elementwise operators with constants make of it follows from that.
    """
    region = setting.region
    graph = region.target.graph
    paired = [name for name in region.target.begins if name in region.partners]
    cuts = {name: setting.range_of(region.partners[name]) for name in paired}
    known = intervals(region.target.nodes, cuts | {region.target.end: setting.range_of(region.source.end)})
    # An input's samples are inputs: what's calibrated on them is what a quantizer would be.
    exact = intervals(region.target.nodes, {name: known[name] for name in paired if name in graph.inputs})
    edits = []
    for name, (low, high) in known.items():
        tensor = graph.tensors[name]
        if tensor.stored is None or not tensor.observable or not np.isfinite((low, high)).all() or low >= high:
            continue
        if is_small(tensor.stored, low, high, _BEYOND) and setting.places.tensor(name) is not None:
            more = _MORE if name not in exact or name == region.target.end else 1.0
            least = 0.0 if begins_at_zero(tensor.stored) else min(low, 0.0)
            edits.append(SetRange(name, least * more, max(high, 0.0) * more))
    if edits:
        yield tuple(edits)
