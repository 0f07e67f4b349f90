"""Give activations the scale and zero point that the file says elsewhere, or that a ReLU or the source asks for."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from conrepair.diagnosis.localization.faces.numbers.zero_points import contradicted
from conrepair.diagnosis.localization.judge.quantization import same_values
from conrepair.diagnosis.localization.judge.saturation import begins_at_zero, is_small
from conrepair.diagnosis.repairs.edits import SetRange
from conrepair.diagnosis.repairs.proposals.proposal import Proposal, ProposalSetting
from conrepair.ground.data.tensor_spec import Quantization
from conrepair.ground.graph.input_ranges import intervals
from conrepair.ground.graph.layer_graph import Tensor

_WIDER = 1.1  # times what calibration has met, that the samples' values may be

Range = tuple[float, float]


def zero_point_proposals(setting: ProposalSetting) -> Iterator[Proposal]:
    """The grid of a tensor that's contradicted; then the same scale, and a zero point that holds the source's values.

    Of several grids that stand in the file, the one first that cuts the least off the source's values, and whose
    range is nearest to theirs.
    """
    region = setting.region
    graph, known = region.target.graph, {**region.partners, region.target.end: region.source.end}
    stored = {same: partner for name, partner in known.items() for same in same_values(graph, name)}
    for grids in contradicted(region):
        tensor, partner = graph.tensors[grids.tensor], stored.get(grids.tensor)
        right = grids.right
        if partner is not None:
            right = tuple(sorted(right, key=functools.partial(_off, tensor, setting.range_of(partner))))
        for item in right:
            yield (_set(tensor, item),)
    for name, partner in stored.items():
        tensor = graph.tensors[name]
        moved = None if tensor.others else _moved(tensor, setting.range_of(partner))
        if moved is not None:
            yield (_set(tensor, moved),)


def _set(tensor: Tensor, grid: Quantization) -> SetRange:
    """The range that takes such a scale and zero point."""
    return SetRange(tensor.name, *tensor.held_by(grid))


def _off(tensor: Tensor, values: Range, grid: Quantization) -> tuple[float, float]:
    low, high = tensor.held_by(grid)
    cut = max(low - values[0], 0.0) + max(values[1] - high, 0.0)
    return (cut if cut > grid.scale else 0.0), abs(low - values[0]) + abs(high - values[1])


def _moved(tensor: Tensor, values: Range) -> Quantization | None:
    """The same steps, begun elsewhere, for values that lie beyond one end and leave as much room at the other.

    A zero point alone is wrong then: calibration has met a range of this width.
    """
    held, grid = tensor.stored, tensor.quantization
    if held is None or grid is None or not np.isfinite(values).all() or not values[0] < values[1]:
        return None
    low, high = min(values[0], 0.0), max(values[1], 0.0)
    below, above = held[0] - low, high - held[1]
    if max(below, above) <= grid.scale or high - low > _WIDER * (held[1] - held[0]):
        return None
    share = (held[1] - held[0]) - (high - low)  # of room that no sample takes, or too little, at both ends alike
    lowest = int(np.iinfo(tensor.dtype).min)
    zero = round(lowest - (low - share * -low / (high - low)) / grid.scale)
    return replace(grid, zero_point=int(np.clip(zero, lowest, np.iinfo(tensor.dtype).max)))


# Calibrate a piece anew, whose activations are in ranges that are too small for the source's values.


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
    for one, two in setting.paired:
        if one.op == two.op and ours.tensors[one.outputs[0]].observable:
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
