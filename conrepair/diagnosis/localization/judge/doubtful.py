"""Quantized segments whose error quantization could make, while their layers differ in an attribute or weight."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from conrepair.diagnosis.localization.align.layout import Layout
from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.faces.attributes import attribute_differences
from conrepair.diagnosis.localization.faces.differences import pairings_of
from conrepair.diagnosis.localization.faces.numbers.parameters import compare_parameters
from conrepair.diagnosis.localization.faces.recurrent.gates import carried_gates
from conrepair.diagnosis.localization.faces.recurrent.recurrence import GATES, recurrent_layer
from conrepair.diagnosis.localization.faces.region import Cuts
from conrepair.diagnosis.localization.faces.steps.steps import Step
from conrepair.diagnosis.localization.judge.judgement import Judged
from conrepair.diagnosis.localization.judge.quantization import MOST_BITS, rounding_error
from conrepair.diagnosis.localization.numbers import few_bits, judging
from conrepair.ground.graph.layer_graph import Array, LayerGraph, Parameter

_WINDOWS = {"pads", "strides", "dilations", "group"}


def with_other_layers(
    graphs: tuple[LayerGraph, LayerGraph], pairs: Sequence[Pair], judged: Sequence[Judged]
) -> list[Judged]:
    """Call those pieces guilty, too, whose layers plainly differ, or whose weights are others than the source's.

    What a piece introduces is explained by its bits up to a few times of what they do on average. Of a weight it's
    known better: each of its numbers is off by half a step at most. Where a piece introduces more than what's
    expected, its weights are looked at, and one that's further off explains the error where it's as large.

    Args:
        graphs: The source's and the target's.
        pairs: All cuts.
        judged: All of them, of a quantized target.
    """
    cuts = Cuts(graphs, pairs)
    return [replace(item, guilty=item.guilty or _is_wrong(cuts, item)) for item in judged]


def _is_wrong(cuts: Cuts, item: Judged) -> bool:
    if not min(item.introduced, item.full):
        return False
    if _is_written_otherwise(cuts, item):
        return True
    return _is_doubtful(item) and not _may_be_folded(cuts, item) and _has_wrong_weight(cuts, item)


def _may_be_folded(cuts: Cuts, item: Judged) -> bool:
    """Whether a normalization reads the source's result, so that the target's weights may have its factors in them.

    In few bits no values tell on which side of it the target's tensor is.
    """
    readers = cuts.graphs[0].consumers.get(item.cut.pair.source, ())
    return any(node.op == "BatchNormalization" for node in readers)


def _is_written_otherwise(cuts: Cuts, item: Judged) -> bool:
    """Whether layers plainly differ, in whichever way they're read: how wide windows are, or a weight as a whole."""
    layouts, folded = {len(item.cut.pair.layout.source): item.cut.pair.layout}, _may_be_folded(cuts, item)
    readings = [
        [(one, two) for one, two in steps if one is not None and two is not None and one.op == two.op]
        for steps in pairings_of(*cuts.sides(item.cut.pair))
    ]
    if readings and all(any(_differ(*steps, item, layouts, folded=folded) for steps in pairs) for pairs in readings):
        return True
    return any(_differs_plainly(*numbers, math.inf) for numbers in _of_gates(cuts, item))


def _differ(ours: Step, theirs: Step, item: Judged, layouts: Mapping[int, Layout], *, folded: bool) -> bool:
    if any(differing.name in _WINDOWS for differing in attribute_differences(ours, theirs, layouts)):
        return True
    # Nothing behind a gate takes a factor of its weights back, and all that's added there hides some of it.
    most = math.inf if theirs.op in GATES else judging.WEIGHT * item.introduced
    return not folded and any(_differs_plainly(right, given, most) for _, right, given in _few_bits(ours, theirs))


def _differs_plainly(right: Parameter, given: Parameter, most: float) -> bool:
    found = compare_parameters(right, given)
    return found is not None and found.plain and found.relative <= most


def _of_gates(cuts: Cuts, item: Judged) -> Iterator[tuple[Parameter, Parameter]]:
    """A recurrent layer's numbers, and the target's constants in few bits that hold them, however it's written."""
    source, target = cuts.sides(item.cut.pair)
    found = recurrent_layer(source.nodes)
    for held in () if found is None else carried_gates(found[1], found[1], target.nodes):
        if held.parameter.bits and held.parameter.bits <= MOST_BITS:
            yield held.wanted, held.parameter


def _few_bits(ours: Step, theirs: Step) -> Iterator[tuple[str, Parameter, Parameter]]:
    """The target's weights in few bits, each with its name and the source's weight in front."""
    for role, given in theirs.parameters.items():
        right = ours.parameters.get(role)
        if right is not None and given.bits and given.bits <= MOST_BITS:
            yield given.name or f"{theirs.layer}/{role}", right, given


def _is_doubtful(item: Judged) -> bool:
    return not item.guilty and min(item.introduced, item.full) > item.floor


def _has_wrong_weight(cuts: Cuts, item: Judged) -> bool:
    errors: dict[str, float] = {}
    for ours, theirs in itertools.chain.from_iterable(pairings_of(*cuts.sides(item.cut.pair))):
        for name, right, given in _few_bits(ours, theirs) if ours is not None and theirs is not None else ():
            # One reading in which it's right is enough: the others have folded it otherwise.
            errors[name] = min(errors.get(name, math.inf), _unexplained(right.numpy(), given))
    for right, given in _of_gates(cuts, item):
        errors[given.name] = _unexplained(right.numpy(), given)
    return any(0 < error <= judging.WEIGHT * item.introduced for error in errors.values())


def _unexplained(right: Array, given: Parameter) -> float:
    """The relative L2 error of a weight; 0 where its bits explain it, or where it has another size."""
    values, held = right.astype(np.float64).reshape(-1), given.numpy().astype(np.float64).reshape(-1)
    size = float(np.linalg.norm(values))
    if values.size != held.size or not size:
        return 0.0
    error = float(np.linalg.norm(values - held)) / size
    return error if error > few_bits.TWICE * rounding_error(given, values) else 0.0
