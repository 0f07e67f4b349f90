"""A planted fault made smaller: in the network where it's in numbers of it, else in what the network answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from conrepair.formats.onnx.passes.verify import relative_error
from conrepair.ground.metrics.ulps import grid_of
from conrepair.verdicts.truth.bound import ACCURACY, Analysis
from conrepair.verdicts.truth.judging import distances
from conrepair_lab.cases.case import Array, Case

__all__ = ["Scale", "blended", "in_own_types", "scale_of", "scaled"]

_REAL = {onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16}
_REAL_ATTRIBUTES = {onnx.AttributeProto.FLOAT, onnx.AttributeProto.FLOATS}
_NEAR = 1e-2  # relative L2: further off is another answer, not rounding

Answers = Mapping[str, Array]


@dataclass(frozen=True)
class Scale:
    """What errors of a network's answers are measured by; outputs of real numbers alone.

    Attributes:
        exact: The exact values; without those, ONNX Runtime's answers.
        known: Whether there are exact values.
        rounding: Of each output the largest error that right answers have, and half an ulp of its largest number at
            least.
        bound: Of a right answer, element by element; empty where nobody computes exact values.
    """

    exact: Answers
    known: bool
    rounding: Mapping[str, float]
    bound: Answers

    def in_roundings(self, errors: Answers) -> float:
        """The largest of some errors, by what rounding was seen to do to its output."""
        return max((float(errors[name].max(initial=0.0)) / self.rounding[name] for name in errors), default=0.0)

    def in_bounds(self, errors: Answers) -> float:
        """The largest of some errors, by its element's bound; 0 where that's infinite, or there is none."""
        found = 0.0
        for name, bound in self.bound.items():
            with np.errstate(all="ignore"):
                ratios = np.where(errors[name] == 0, 0.0, errors[name] / bound)
            found = max(found, float(ratios.max(initial=0.0)))
        return found

    def errors(self, given: Answers) -> Answers:
        """Of some answers; zero where the exact value or the answer isn't finite."""
        found = {}
        for name in self.rounding:
            error = distances(given[name], self.exact[name])
            found[name] = np.where(np.isfinite(error) & np.isfinite(self.exact[name]), error, 0.0)
        return found

    def loose(self, given: Answers) -> float:
        """The bound, by the rounding seen, where some answers are off most; infinite where there's no bound."""
        errors = self.errors(given)
        if not errors or not self.bound:
            return np.inf
        name = max(errors, key=lambda item: errors[item].max(initial=0.0) / self.rounding[item])
        place = np.unravel_index(int(np.argmax(errors[name])), errors[name].shape)
        return float(self.bound[name][place] / self.rounding[name])


def in_own_types(model: onnx.ModelProto, inputs: Answers, other: Answers) -> Iterator[Answers]:
    """Answers of ONNX's reference, which rounds where the network's types do; none where it can't, or is far off.

    Args:
        model: The right network.
        inputs: Its own.
        other: What ONNX Runtime answers.
    """
    try:
        found = dict(zip(other, ReferenceEvaluator(model).run(None, dict(inputs)), strict=True))
        near = all(relative_error(array, np.asarray(found[name])) < _NEAR for name, array in other.items())
    except Exception:  # noqa: BLE001 (it raises a dozen types for what it can't run)
        return
    if near:
        yield {name: np.asarray(array) for name, array in found.items()}


def scale_of(case: Case, right: tuple[Answers, ...]) -> Scale:
    """Measure what rounding does to a network's answers.

    Args:
        case: The right network.
        right: Answers of implementations that round.
    """
    try:
        found = Analysis(case.model).at(case.inputs, ACCURACY)
    except Exception:  # noqa: BLE001 (ONNX's reference raises a dozen types for what it can't run)
        found = None
    exact, rounding, bounds = {}, {}, {}
    for name, array in right[0].items():
        if array.dtype.kind != "f" or not array.size:
            continue
        truth = array if found is None else np.asarray(found.truth[name])
        if truth.shape != array.shape:
            continue
        exact[name] = truth.astype(np.float64)
        finite = np.isfinite(exact[name])
        errors = [distances(answers[name], truth)[finite] for answers in right]
        seen = max((float(error[np.isfinite(error)].max(initial=0.0)) for error in errors), default=0.0)
        largest = np.abs(exact[name][finite]).max(initial=0.0)
        grid = grid_of(array.dtype)  # what's smaller than its normal numbers may be flushed to zero
        rounding[name] = max(seen, float(grid.ulp(np.asarray(largest))) / 2, 2.0**grid.lowest)
        if found is not None:
            bounds[name] = np.broadcast_to(np.asarray(found.bound[name], np.float64), truth.shape)
    return Scale(exact, found is not None, rounding, bounds)


def scaled(right: Answers, wrong: Answers, share: float) -> dict[str, Array]:
    """Answers off by a share of a fault's effect; whole numbers and what isn't finite stay right.

    Args:
        right: Without the fault.
        wrong: With it.
        share: Of the difference.
    """
    found = {}
    for name, array in right.items():
        found[name] = array
        if array.dtype.kind == "f" and wrong[name].shape == array.shape:
            here, there = array.astype(np.float64), wrong[name].astype(np.float64)
            with np.errstate(all="ignore"):
                moved = (here + share * (there - here)).astype(array.dtype)
            found[name] = np.where(np.isfinite(moved) & np.isfinite(array), moved, array)
    return found


def blended(right: onnx.ModelProto, wrong: onnx.ModelProto, share: float) -> onnx.ModelProto | None:
    """A network between two that differ in real weights and attributes alone; None where they differ otherwise.

    Args:
        right: The one.
        wrong: The other.
        share: How far from the one to the other.
    """
    made = onnx.ModelProto()
    made.CopyFrom(right)
    stored = {item.name: item for item in wrong.graph.initializer}
    nodes = wrong.graph.node
    if len(nodes) != len(made.graph.node) or set(stored) != {item.name for item in made.graph.initializer}:
        return None
    for item in made.graph.initializer:
        one, two = numpy_helper.to_array(item), numpy_helper.to_array(stored[item.name])
        if one.tobytes() == two.tobytes() and one.shape == two.shape:
            continue
        if item.data_type not in _REAL or one.shape != two.shape or one.dtype != two.dtype:
            return None
        item.CopyFrom(numpy_helper.from_array(_between(one, two, share), item.name))
    for node, other in zip(made.graph.node, nodes, strict=True):
        if not _blend(node, other, share):
            return None
    return made


def _blend(node: onnx.NodeProto, other: onnx.NodeProto, share: float) -> bool:
    """Move a node's attributes to another's; whether the two are alike but for real ones."""
    if (node.op_type, list(node.input), list(node.output)) != (other.op_type, list(other.input), list(other.output)):
        return False
    given = {item.name: item for item in other.attribute}
    if set(given) != {item.name for item in node.attribute}:
        return False
    for item in node.attribute:
        there = given[item.name]
        if item == there:
            continue
        if item.type not in _REAL_ATTRIBUTES or item.type != there.type or len(item.floats) != len(there.floats):
            return False
        one, two = (np.asarray(helper.get_attribute_value(value), np.float32) for value in (item, there))
        item.CopyFrom(helper.make_attribute(item.name, _between(one, two, share).tolist()))
    return True


def _between(one: Array, two: Array, share: float) -> Array:
    wide = one.astype(np.float64)
    return np.asarray((wide + share * (two.astype(np.float64) - wide)).astype(one.dtype))
