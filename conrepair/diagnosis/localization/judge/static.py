"""Numbers that differ though no value shows it: a row that nothing asked for, a threshold that no input is near."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np

from conrepair.diagnosis.localization.faces.attributes import attribute_differences
from conrepair.diagnosis.localization.faces.differences import pairings_of
from conrepair.diagnosis.localization.faces.numbers.parameters import compare_parameters, hide_alike
from conrepair.diagnosis.localization.faces.numbers.vanished import has_vanished
from conrepair.diagnosis.localization.faces.region import Side
from conrepair.diagnosis.localization.faces.steps.steps import MOVES, Paired, Step
from conrepair.diagnosis.localization.numbers import judging
from conrepair.ground.data.tensor_spec import numpy_dtype
from conrepair.ground.graph.input_ranges import ASKING
from conrepair.ground.graph.layer_graph import Array, Attribute, LayerGraph, Node, Parameter
from conrepair.ground.graph.operators import OPERATORS

_COPIES = MOVES | {"Cast"}
_GUARDED = {"Div", "Reciprocal", "Log"}  # have no answer to 0
_GUARDS = {"Max", "Clip", "Where"}
_HALF = ("float16", "bfloat16")


def differing_steps(source: Side, target: Side) -> tuple[float, Paired]:
    """By how much the parameters of two sides differ that are otherwise the same, and tables of operators like trees.

    What only one side has in front of a division, or a logarithm, so that it's none of 0, differs as well.

    Only sides of the same operators are compared, and only one of these may have other parameters: where two do, the
    one may take back what the other does (a scale that moved from a layer to the next), which values would show and
    numbers don't.

    Args:
        source: Of the network that is right.
        target: Of the other one; values showed no difference.

    Returns:
        The largest relative L2 of a parameter, 1 for an attribute that isn't a number; 0 where none differs, or that
        can't be told. And the step that has it, on both sides, where it's one.
    """
    if has_vanished(source, target) or _guards_differ(source, target):
        return 1.0, ()
    if not any(node.parameters or _has_own_words(node) for node in target.nodes):
        return 0.0, ()
    found: list[tuple[float, Paired]] = []
    for pairs in pairings_of(source, target):
        if not _is_alike(pairs):
            continue
        steps = [(error, ((one, two),)) for one, two in pairs if one and two and (error := _error(one, two))]
        if len(steps) <= 1:
            found += steps or [(0.0, ())]
    return min(found, default=(0.0, ()), key=lambda item: item[0])


def _guards_differ(*sides: Side) -> bool:
    """Whether segments divide or take logarithms equally often, but not equally often of values that can't be 0."""
    ours, theirs = (
        [
            _is_guarded(side.graph, node.inputs[-1])
            for node in side.nodes
            if node.op in _GUARDED and ("operand" not in node.parameters or node.attributes.get("constant_first"))
        ]
        for side in sides
    )
    return len(ours) == len(theirs) and sum(ours) != sum(theirs)


def _is_guarded(graph: LayerGraph, name: str) -> bool:
    node = graph.made_by(name, lambda item: bool(item.inputs) and item.op in {*_COPIES, "Sqrt"})
    if node is None or node.op != "Add" or "operand" not in node.parameters:
        return node is not None and node.op in _GUARDS
    return bool(np.abs(node.parameters["operand"].numpy()).max(initial=0) <= judging.EPSILON)


def _is_alike(pairs: Paired) -> bool:
    """Whether both sides have the same operators with parameters of the same roles and sizes."""
    for one, two in pairs:
        if one is None or two is None:
            if (one or two).op not in _COPIES:  # type: ignore[union-attr]
                return False
        elif one.op != two.op or _sizes(one) != _sizes(two):
            return False
    return True


def _sizes(step: Step) -> dict[str, int]:
    return {role: math.prod(parameter.shape) for role, parameter in step.parameters.items()}


def _error(source: Step, target: Step) -> float:
    """The largest relative L2 of a parameter or a table; 0 where all are the same up to rounding."""
    parameters = (
        _relative(parameter, target.parameters[role], source.op) for role, parameter in source.parameters.items()
    )
    return max(max(parameters, default=0.0), _of_own_words(source, target))


def _has_own_words(node: Node) -> bool:
    """Whether the vocabulary has neither the operator nor names for its attributes: each changes what it computes."""
    return bool(node.own) and node.op not in OPERATORS


def _of_own_words(source: Step, target: Step) -> float:
    if not all(len(step.nodes) == 1 and _has_own_words(step.nodes[0]) for step in (source, target)):
        return 0.0
    differing = [item.name for item in attribute_differences(source, target, {}) if item.is_said]
    return max((_apart(source.nodes[0].own[name], target.nodes[0].own[name]) for name in differing), default=0.0)


def _apart(one: Attribute, two: Attribute) -> float:
    """Relative L2 of numbers; 1 of what isn't numbers, or not as many."""
    pair = [np.asarray(value).reshape(-1) for value in (one, two)]
    if any(array.dtype.kind not in "iuf" for array in pair) or pair[0].size != pair[1].size:
        return 1.0
    return min(float(np.linalg.norm(pair[1] - pair[0]) / (np.linalg.norm(pair[0]) or 1.0)), 1.0)


def _relative(source: Parameter, target: Parameter, op: str) -> float:
    """Of real numbers: indices and sizes may be written from the other end, and values show what they come to."""
    if numpy_dtype(source.dtype).kind in "iub" and op not in ASKING:
        return 0.0
    one, two = source.numpy(), target.numpy()
    are_texts = one.dtype.kind in "OSUT"
    if not are_texts and (
        np.array_equal(one, two, equal_nan=True) or _is_cast(source, target) or hide_alike(one, two)
    ):
        return 0.0
    found = compare_parameters(source, target)
    return 0.0 if found is None else found.relative


def _is_cast(source: Parameter, target: Parameter) -> bool:
    """Whether the target stores numbers in fewer bits, and they are the nearest ones; it may cast them itself."""
    kinds = [kind for kind in _HALF if target.dtype in {kind, "float32"} and source.shape == target.shape]
    return any(
        np.array_equal(_stored(source, kind), target.numpy().astype(np.float64), equal_nan=True) for kind in kinds
    )


def _stored(parameter: Parameter, kind: str) -> Array:
    """Its numbers in fewer bits: where that type ends is nearest to what's beyond it."""
    largest, whole = float(ml_dtypes.finfo(numpy_dtype(kind)).max), parameter.numpy().astype(np.float64)
    cut = np.where(np.isfinite(whole), whole.clip(-largest, largest), whole)
    return cut.astype(numpy_dtype(kind)).astype(np.float64)
