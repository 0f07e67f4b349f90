"""Activations that hold less than the source's values: by calibrated ranges, or as float16 ends at 65504."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.faces.steps.functions import compute
from conrepair.diagnosis.localization.judge.judgement import Judged
from conrepair.diagnosis.localization.judge.quantization import ranges_of
from conrepair.diagnosis.localization.judge.quantized_rules import (
    CLIPPING,
    OVERFLOWS,
    SATURATES,
    SHIFTED,
    ZERO_POINTS,
)
from conrepair.diagnosis.localization.located import Guilty
from conrepair.diagnosis.localization.numbers import judging
from conrepair.diagnosis.localization.result import MEASURED, LocatedFault
from conrepair.diagnosis.localization.run.activations import Activations
from conrepair.diagnosis.localization.run.pieces import Pieces
from conrepair.ground.graph.input_ranges import Interval, intervals
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Array, LayerGraph, Node
from conrepair.ground.graph.operators import QUANTIZING
from conrepair.ground.metrics.running_error import relative_l2
from conrepair.ground.runtime.words import percent

_CUTTING = {"Relu", "Clip"} | QUANTIZING
_NOT_SHOWN = "Libraries that compute float16 models in float32 don't show it; devices with float16 arithmetic do"


@dataclass(frozen=True)
class _Saturated:
    """A tensor that holds less than its values.

    Attributes:
        held: Smallest and largest number that it holds.
        values: Smallest and largest that it should.
        share: Of the values, those that it doesn't hold; None where only their range is known.
        lost: Relative L2 of what's cut off; 0 where that isn't known.
    """

    held: Interval
    values: Interval
    share: float | None = None
    lost: float = 0.0

    @property
    def shifted(self) -> bool:
        """Whether the range is wide enough, and in another place."""
        (low, high), (least, most) = self.held, self.values
        return max(most, 0.0) - min(least, 0.0) <= high - low

    def is_much(self, beyond: float, *, given: bool = False) -> bool:
        """Whether more is cut off than other samples, or outliers, explain; of what's given, as by a zero point."""
        small = is_small(self.held, *self.values, beyond)
        if self.share is None:
            return small
        return small and ((self.share >= judging.CUT_OFF and self.lost >= judging.LOST) or (given and self.shifted))

    @property
    def words(self) -> str:
        """For a person, after its name."""
        (low, high), (least, most) = self.held, self.values
        cut = "" if self.share is None else f", and {percent(self.share)} of them are clipped"
        why = " by a shifted range, as by another zero point" if self.shifted else ""
        reach = f"the original's values there are {least:.4g} to {most:.4g}{cut}"
        return f"clips{why}: its quantization range is {low:.4g} to {high:.4g}, {reach}"


def is_small(held: Interval, low: float, high: float, beyond: float) -> bool:
    """Whether a range is much too small for some values: more than other samples explain.

    Args:
        held: Of the range.
        low: Smallest value.
        high: Largest.
        beyond: How many times the range they may be.
    """
    step = (held[1] - held[0]) / 2**8
    return high > beyond * max(held[1], 0.0) + step or (not begins_at_zero(held) and low < beyond * held[0] - step)


def begins_at_zero(held: Interval) -> bool:
    """Whether a range is a ReLU, too, which quantizers take into the scale."""
    return held[0] >= -(held[1] - held[0]) / 2**8


def with_saturation(
    faults: Sequence[LocatedFault],
    judged: Sequence[Judged],
    right: Activations,
    target: LayerGraph,
    pairs: Sequence[Pair],
    *,
    drawn: bool = False,
) -> list[LocatedFault]:
    """Say once of all that ranges which are too small explain that it's these, with the tensors under it.

    What lies behind a tensor that saturates gets the right values, cut off: nothing that its result is like tells of
    its own operators or weights.

    Args:
        faults: Of a quantized target, diagnosed.
        judged: All cuts.
        right: A batch through the source.
        target: The target's graph.
        pairs: All cuts, the inputs' among them.
        drawn: Whether inputs are drawn at random.
    """
    beyond = 1.0 if drawn else judging.BEYOND  # of what drawn inputs cut off, all explains what a piece is wrong by
    ranges = ranges_of(target)
    measured = {pair.target: pair for pair in (*pairs, *(item.cut.pair for item in judged))}
    read = {pair.source: _as_read(pair.source, right.network.graph) for pair in measured.values()}
    right.compute([*read, *read.values()])
    clipped = {
        name: item
        for name, pair in measured.items()
        if name in ranges and (item := _saturated(ranges[name], right[read[pair.source]])) is not None
    }
    # Of what's computed more batches than the first one are known, before it's clipped.
    for cut in (item.cut for item in judged):
        off, name = cut.cut_off, cut.pair.target
        if off is not None and off.relative_l2 > 0 and read[cut.pair.source] == cut.pair.source:
            clipped[name] = _Saturated((off.low, off.high), (off.least, off.most), off.share, off.relative_l2)
    given = target.inputs if drawn else ()
    found = {name: item for name, item in clipped.items() if item.is_much(beyond, given=name in given)}
    if not faults and found.keys().isdisjoint(target.inputs):
        return []  # what drawn inputs cut off inside is excused
    places = {fault: _places_of(fault, clipped, right, target, measured, beyond) for fault in faults}
    others = [fault for fault in faults if not places[fault]]
    spoken = {layer for fault in others for words, layer in fault.differences if words in ZERO_POINTS}
    told = {name: item for name, item in found.items() if target.layer_of(name) not in spoken}
    groups = defaultdict(_Clipping, {"": _Clipping()})  # what is too small, then what lies elsewhere, by its name
    for fault, explaining in places.items():
        worst = max(explaining, key=lambda name: explaining[name].lost, default="")
        shifted = bool(worst) and explaining[worst].shifted
        if worst:
            groups[worst if shifted else ""].faults.append(fault)
            told |= {worst: explaining[worst]} if shifted else explaining
    for name, item in told.items():
        # What lies elsewhere beside ranges that are too small is of the same calibration.
        apart = name in groups or (item.shifted and not groups[""].faults)
        groups[name if apart else ""].places[name] = item
    clipping = [group.told(measured, target) for group in groups.values() if group.places]
    return sorted([*others, *clipping], key=lambda fault: -fault.introduced_error)


def with_overflows(
    faults: Sequence[LocatedFault], guilty: Sequence[Guilty], right: Activations, given: Activations
) -> tuple[list[LocatedFault], list[Guilty]]:
    """Say what is beyond float16's largest number, where its operator reads finite numbers alone.

    ONNX Runtime computes float16 in float32 on processors without it, from one operator to the next: outputs are
    right there, and infinite or NaN where each result is stored as the file says. What reads these, and gives such
    numbers, isn't judged before that is repaired.

    Args:
        faults: Diagnosed.
        guilty: Their pieces.
        right: A batch through the source.
        given: The same through the target.
    """
    found = [*_overflowing(right, given)]
    ends = {fault.target_tensor for fault in faults} | {piece.judged.cut.pair.target for piece in guilty}
    ends &= given.network.graph.tensors.keys() if found else set()
    given.compute(sorted(ends))
    lost = {name for name in ends if not _is_finite(given[name])}
    kept = [fault for fault in faults if fault.target_tensor not in lost]
    return [*kept, *found], [piece for piece in guilty if piece.judged.cut.pair.target not in lost]


def _overflowing(right: Activations, given: Activations) -> Iterator[LocatedFault]:
    if any(tensor.dtype == "float16" for tensor in right.network.graph.tensors.values()):
        return  # whose own overflows are no fault of the target's
    for name, layer in ((node.outputs[0], node.layer) for node in _overflows(given, right)):
        source, reach = right.network.graph.producers.get(name), ""
        if source is not None:
            right.compute([name])
            reach = f" (in the original they are {np.nanmin(right[name]):.6g} to {np.nanmax(right[name]):.6g})"
        words = f"`{layer}` overflows: {OVERFLOWS}{reach}. Keep this layer in float32, between Casts. {_NOT_SHOWN}"
        ours = (name, (source.layer,)) if source else (right.network.graph.outputs[0], ())
        fault = LocatedFault.of_error(Kind.PRECISION, ours, (name, (layer,)), (words,), np.inf)
        yield replace(fault, differences=((OVERFLOWS, layer),))


def _overflows(run: Activations, right: Activations) -> Iterator[Node]:
    """Nodes with infinite results from finite numbers, which change what the network gives."""
    network, graph = run.network, run.network.graph
    half = [name for name, tensor in graph.tensors.items() if tensor.dtype == "float16" and tensor.observable]
    half = [name for name in half if name in graph.producers and name not in graph.unfed]
    run.compute([*half, *graph.outputs] if half else [])
    odd = {name for name in half if not np.isfinite(run[name]).all()}
    right.compute(ends := right.network.graph.outputs if odd else ())
    # Outputs of numbers that are all finite in the source don't become infinite: observed, both runs may be.
    finite = all(_is_finite(right[name]) for name in ends)
    begins = [node for node in graph.nodes if not odd.isdisjoint(node.outputs) and odd.isdisjoint(node.inputs)]
    for node in (node for node in begins if not _is_infinite_anyway(node, run)):
        stored = list(Pieces.between(network, [*graph.inputs, *node.outputs], graph.outputs).run(run.__getitem__))
        # A sigmoid's 1 / (1 + infinity) is 0 as it should be, and so are what a mask takes from a softmax.
        lost = [array for name, array in stored if not relative_l2(run[name], array) < judging.SAME_ANSWERS]
        if len(node.outputs) == 1 and (lost or (finite and not all(np.isfinite(array).all() for _, array in stored))):
            yield node


def _is_finite(array: Array) -> bool:
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())


def _is_infinite_anyway(node: Node, run: Activations) -> bool:
    """Whether a result would be infinite in any type: by a constant that is, or as the logarithm of 0 is."""
    if not all(_is_finite(item.numpy()) for item in node.parameters.values()):
        return True
    run.compute(list(filter(None, node.inputs)))
    known = {name: run[name].astype(np.float64) for name in filter(None, node.inputs)}
    with np.errstate(all="ignore"):
        values = compute([node], known, run.network.graph)
    return values is not None and not np.isfinite(values[node.outputs[0]]).all()


def told_by_drawn(faults: Sequence[LocatedFault], inputs: Sequence[str]) -> tuple[list[LocatedFault], str]:
    """Ignore values clipped only as random inputs are outside of the calibrated range.

    They're drawn within the ranges that the files state, so an input that saturates contradicts its source. Tensors
    inside were calibrated on other inputs, which noise needn't be like: nothing tells a range that's too small, or
    that lies elsewhere, from that.

    Args:
        faults: With what saturates.
        inputs: Of the target.

    Returns:
        What remains, and in words what doesn't: "" for nothing.
    """
    ranges = [
        fault for fault in faults if fault.differences and all(words in CLIPPING for words, _ in fault.differences)
    ]
    inner = [fault for fault in ranges if set(inputs).isdisjoint(fault.target_layers)]
    beyond = "; ".join(fault.evidence[0] for fault in inner) if inner == ranges else ""
    return [fault for fault in faults if fault not in inner], beyond


def _saturated(held: Interval, values: Array) -> _Saturated | None:
    """What a range doesn't hold of some values; None where it's nothing."""
    exact = np.asarray(values, np.float64)
    exact = exact[np.isfinite(exact)]
    if begins_at_zero(held):
        exact = np.maximum(exact, 0.0)
    cut = np.abs(exact - exact.clip(*held))
    if not np.any(cut):
        return None
    share = float(np.mean(cut > (held[1] - held[0]) / 2**8))
    lost = float(np.linalg.norm(cut)) / (float(np.linalg.norm(exact)) or 1.0)
    return _Saturated(held, (float(exact.min()), float(exact.max())), share, lost)


def _as_read(name: str, graph: LayerGraph) -> str:
    """The tensor that's needed of one: of values that are clipped next, by a grid, too, what's left counts."""
    behind = name
    while graph.read_once(behind) and (reader := graph.consumers[behind][0]).op in _CUTTING:
        behind = reader.outputs[0]
        name = behind if graph.tensors[behind].is_float else name
    return name


def _places_of(
    fault: LocatedFault,
    clipped: Mapping[str, _Saturated],
    right: Activations,
    target: LayerGraph,
    measured: Mapping[str, Pair],
    beyond: float,
) -> dict[str, _Saturated]:
    """The tensors whose ranges explain a fault, as they hold less than the source's values; none for others."""
    if any(words in ZERO_POINTS for words, _ in fault.differences) or fault.kind is Kind.HYPERPARAMETERS:
        return {}
    nodes = target.between(measured.keys() | frozenset(target.inputs), [fault.target_tensor])
    read = [name for node in nodes for name in node.inputs if name in measured]
    ends_of = [name for name in (*read, fault.target_tensor) if name in measured]
    values = intervals(nodes, {name: _ends(right[measured[name].source]) for name in ends_of})
    inner = {
        name: item
        for name, ends in values.items()
        if name not in measured
        and (held := target.tensors[name].stored)
        and (item := _Saturated(held, ends)).is_much(beyond)
    }
    least = judging.MADE_BY_RANGE * fault.introduced_error
    near = {name: clipped[name] for name in (*read, fault.target_tensor) if name in clipped}
    return {name: item for name, item in near.items() if item.lost >= least or item.is_much(beyond)} | inner


def _ends(values: Array) -> Interval:
    return float(np.min(values)), float(np.max(values))


@dataclass
class _Clipping:
    """Tensors of one cause that hold less than their values.

    Attributes:
        faults: What they explain.
        places: The tensors, by their names.
    """

    faults: list[LocatedFault] = field(default_factory=list)
    places: dict[str, _Saturated] = field(default_factory=dict)

    def told(self, measured: Mapping[str, Pair], target: LayerGraph) -> LocatedFault:
        """One finding: of the worst tensor, with the others under it."""
        names = sorted(self.places, key=lambda name: (self.places[name].shifted, -self.places[name].lost))
        layers = {name: target.layer_of(name) for name in names}
        shifted = self.places[names[0]].shifted
        rule = SHIFTED if shifted else SATURATES
        words = [f"`{layers[name]}` {self.places[name].words}" for name in names]
        if not shifted:
            count = len(set(layers.values()))
            words.insert(0, f"{SATURATES}: {f'{count} tensors clip, the worst: ' if count > 1 else ''}{words.pop(0)}")
        of_ranges = [
            _fault_of(measured[name].source, name, self.places[name].lost) for name in names if name in measured
        ]
        faults = self.faults or of_ranges
        guiltiest = max(faults, key=lambda fault: fault.introduced_error)
        introduced = (text for text in guiltiest.evidence if text.startswith(MEASURED))
        return replace(
            guiltiest,
            kind=Kind.PRECISION,
            source_layers=tuple(dict.fromkeys(name for fault in faults for name in fault.source_layers)),
            target_layers=tuple(dict.fromkeys(layers.values())),
            full_run_error=max(fault.full_run_error for fault in faults),
            evidence=tuple(dict.fromkeys((*words, *introduced))),
            differences=tuple((rule, layer) for layer in dict.fromkeys(layers.values())),
        )


def _fault_of(source: str, target: str, lost: float) -> LocatedFault:
    """Of a tensor alone, whose piece isn't at fault by what it introduces."""
    return LocatedFault.of_error(Kind.PRECISION, (source, (source,)), (target, ()), (), lost)
