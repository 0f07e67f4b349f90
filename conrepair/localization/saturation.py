"""Activations in few bits whose ranges were calibrated on smaller values than the source has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from conrepair.graph.intervals import Interval, intervals
from conrepair.graph.kinds import Kind
from conrepair.graph.layer_graph import Array, LayerGraph
from conrepair.localization.activations import Activations
from conrepair.localization.judgement import Judged
from conrepair.localization.matching import Pair
from conrepair.localization.quantization import ranges_of
from conrepair.localization.quantized_rules import SATURATES, SHIFTED, ZERO_POINTS
from conrepair.localization.result import LocatedFault

__all__ = ["begins_at_zero", "is_small", "told_by_drawn", "with_saturation"]

_LEAST = 0.02  # share of the values that are cut off: outliers are, on purpose
_BEYOND = 1.5  # times the range: samples may have somewhat larger values than those of calibration
_LOST = 0.1  # relative L2 of what's cut off: less of it isn't what a piece is wrong by


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

    @property
    def rule(self) -> str:
        """What is wrong, without names."""
        return SHIFTED if self.shifted else SATURATES

    @property
    def words(self) -> str:
        """For a person, after its name."""
        (low, high), (least, most) = self.held, self.values
        cut = "" if self.share is None else f": {self.share:.0%} of them are cut off"
        why = (
            "its range lies elsewhere, as by another zero point" if self.shifted else "calibrated on a smaller range"
        )
        return (
            f"saturates: {why}. It holds {low:.4g} to {high:.4g}, the source's values are "
            f"{least:.4g} to {most:.4g}{cut}"
        )


def is_small(held: Interval, low: float, high: float, beyond: float = _BEYOND) -> bool:
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
    """Say of faults that a range which is too small explains what it is; beside them, of other tensors, too.

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
    if not faults:
        return []
    beyond = 1.0 if drawn else _BEYOND  # of what drawn inputs cut off, all explains what a piece is wrong by
    ranges = ranges_of(target)
    measured = {pair.target: pair for pair in (*pairs, *(item.cut.pair for item in judged))}
    right.compute([pair.source for pair in measured.values()])
    found = {
        name: item
        for name, pair in measured.items()
        if name in ranges and (item := _saturated(ranges[name], right[pair.source], beyond)) is not None
    }
    cuts = frozenset(measured)
    result = [_explained(fault, found, right, target, measured, cuts, beyond) for fault in faults]
    told = {SATURATES, SHIFTED, *ZERO_POINTS}
    spoken = {layer for fault in result for words, layer in fault.differences if words in told}
    added = [
        _fault_of(measured[name], item, target) for name, item in found.items() if _layer(name, target) not in spoken
    ]
    return sorted([*result, *added], key=lambda fault: -fault.introduced_error)


def told_by_drawn(faults: Sequence[LocatedFault], inputs: Sequence[str]) -> tuple[list[LocatedFault], str]:
    """Leave out what only says that drawn inputs aren't those of calibration.

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
        fault
        for fault in faults
        if fault.differences and {words for words, _ in fault.differences} <= {SATURATES, SHIFTED}
    ]
    layers = dict.fromkeys(layer for fault in ranges for _, layer in fault.differences)
    if not ranges or not layers.keys().isdisjoint(inputs):
        return list(faults), ""
    others = f", and {len(layers) - 1} layers more do" if len(layers) > 1 else ""
    return [fault for fault in faults if fault not in ranges], f"{ranges[0].evidence[0]}{others}"


def _saturated(held: Interval, values: Array, beyond: float) -> _Saturated | None:
    exact = np.asarray(values, np.float64)
    exact = exact[np.isfinite(exact)]
    if not exact.size or not is_small(held, float(exact.min()), float(exact.max()), beyond):
        return None
    if begins_at_zero(held):
        exact = np.maximum(exact, 0.0)
    inside = exact.clip(*held)
    share = float(np.mean(np.abs(exact - inside) > (held[1] - held[0]) / 2**8))
    lost = float(np.linalg.norm(exact - inside)) / (float(np.linalg.norm(exact)) or 1.0)
    if share < _LEAST or lost < _LOST:
        return None
    return _Saturated(held, (float(exact.min()), float(exact.max())), share, lost)


def _explained(
    fault: LocatedFault,
    found: Mapping[str, _Saturated],
    right: Activations,
    target: LayerGraph,
    measured: Mapping[str, Pair],
    cuts: frozenset[str],
    beyond: float,
) -> LocatedFault:
    """A fault as what it is: of a tensor that saturates, or of what's computed from such a one."""
    nodes = target.between(cuts | frozenset(target.inputs), [fault.target_tensor])
    read = [name for node in nodes for name in node.inputs if name in measured]
    known = {name: _ends(right[measured[name].source]) for name in read}
    inner = {
        name: _Saturated(held, values)
        for name, values in intervals(nodes, known).items()
        if name not in measured and (held := target.tensors[name].stored) and is_small(held, *values, beyond)
    }
    named = {name: found[name] for name in (*read, fault.target_tensor) if name in found} | inner
    told = any(words in ZERO_POINTS for words, _ in fault.differences)
    if not named or told or fault.kind is Kind.HYPERPARAMETERS:
        return fault
    layers = {name: _layer(name, target) for name in named}
    return replace(
        fault,
        kind=Kind.PRECISION,
        target_layers=tuple(dict.fromkeys([*layers.values(), *fault.target_layers])),
        evidence=(
            *(f"`{layers[name]}` {item.words}" for name, item in named.items()),
            *(text for text in fault.evidence if text.startswith("introduced")),
        ),
        differences=tuple(dict.fromkeys((item.rule, layers[name]) for name, item in named.items())),
    )


def _ends(values: Array) -> Interval:
    return float(np.min(values)), float(np.max(values))


def _fault_of(pair: Pair, item: _Saturated, target: LayerGraph) -> LocatedFault:
    layer = _layer(pair.target, target)
    return LocatedFault(
        kind=Kind.PRECISION,
        source_layers=(pair.source,),
        target_layers=(layer,),
        step="",
        introduced_error=item.lost,
        full_run_error=item.lost,
        noise_floor=0.0,
        confidence=1.0,
        evidence=(f"`{layer}` {item.words}",),
        source_tensor=pair.source,
        target_tensor=pair.target,
        differences=((item.rule, layer),),
    )


def _layer(name: str, graph: LayerGraph) -> str:
    producer = graph.producers.get(name)
    return name if producer is None else producer.layer
