"""Take out what only the target has, and put in what only the source has."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from conrepair.graph.layer_graph import Array, Attribute
from conrepair.localize.diagnosis.mutations import mending_mutation
from conrepair.localize.diagnosis.steps import Step
from conrepair.repair.edits import Edit, Insert, Remove, SetAttributes, SetOperator, SwapInputs
from conrepair.repair.proposals.proposal import Proposal, Setting

__all__ = ["extra_proposals", "missing_proposals", "move_proposals", "mutation_proposals"]


def extra_proposals(setting: Setting) -> Iterator[Proposal]:
    """Each node that only the target has; then all of a step's, then all."""
    alone: list[Edit] = []
    for ours, theirs in setting.reading.pairs:
        if ours is not None or theirs is None:
            continue
        edits = _removed(theirs, setting)
        yield from ((edit,) for edit in edits)
        if len(edits) > 1:
            yield tuple(edits)
        alone += edits
    if len(alone) > 1:
        yield tuple(alone)


def missing_proposals(setting: Setting) -> Iterator[Proposal]:
    """Each operator that only the source has, behind what it reads there."""
    theirs_of = {ours: theirs for theirs, ours in setting.region.partners.items()}
    for ours, theirs in setting.reading.pairs:
        if ours is not None and theirs is not None and ours.outputs and theirs.outputs:
            theirs_of[ours.outputs[0]] = theirs.outputs[0]
        if ours is None or theirs is not None or len(dict.fromkeys(ours.inputs)) != 1:
            continue
        behind = theirs_of.get(ours.inputs[0], setting.region.target.end)
        tensor = setting.places.tensor(behind)
        if tensor is not None and ours.op != "Function":
            yield (Insert(tensor, *_as_inserted(ours)),)


def move_proposals(setting: Setting) -> Iterator[Proposal]:
    """A transposition in front of the piece, which only the target has: values lie elsewhere behind it."""
    region = setting.region
    for begin in region.target.begins:
        node = region.target.graph.producers.get(begin)
        other = region.source.graph.producers.get(region.partners.get(begin, ""))
        if node is None or node.op != "Transpose" or (other is not None and other.op == node.op):
            continue
        place = setting.places.of(node)
        if place is not None:
            yield (Remove(place.name),)


def mutation_proposals(setting: Setting) -> Iterator[Proposal]:
    """The one change of a chain of elementwise operators that makes it the source's function."""
    for ours, theirs in setting.reading.pairs:
        if ours is None or theirs is None or ours.values is None or theirs.values is None:
            continue
        found = mending_mutation(theirs.nodes[::-1], theirs.inputs[0], theirs.outputs[0], ours.values)
        places = [] if found is None else [setting.places.of(node) for node in found.nodes]
        names = [place.name for place in places if place is not None]
        if found is None or len(names) < len(found.nodes):
            continue
        if found.other is None:
            yield tuple(Remove(name) for name in reversed(names))
            continue
        place = next(filter(None, places))
        if found.other.op != place.op:
            yield (SetOperator(place.name, found.other.op, dict(found.other.attributes)),)
        elif "operand" in found.other.parameters:
            first = bool(found.other.attributes.get("constant_first"))
            yield (SetAttributes(place.name, {"constant_first": first}),)
        else:
            yield (SwapInputs(place.name, 0, 1),)


def _removed(step: Step, setting: Setting) -> list[Edit]:
    places = [setting.places.of(node) for node in step.nodes]
    return [Remove(name) for name in dict.fromkeys(place.name for place in places if place is not None)]


def _as_inserted(step: Step) -> tuple[str, dict[str, Attribute], tuple[Array, ...]]:
    """An operator as ONNX has it: what the vocabulary has as attributes of some are its constants."""
    attributes: dict[str, Attribute] = {name: value for name, value in step.attributes.items() if value is not None}
    constants = tuple(parameter.numpy() for parameter in step.parameters.values())
    low, high, axes = (attributes.get(name) for name in ("min", "max", "axes"))
    if step.op == "Clip" and low == 0.0 and high is None:
        return "Relu", {}, ()
    if step.op == "Clip" and isinstance(low, float) and isinstance(high, float):
        return "Clip", {}, (np.array(low, np.float32), np.array(high, np.float32))
    if step.op == "LayerNormalization" and isinstance(axes, tuple):
        return step.op, {"axis": axes[0], "epsilon": attributes.get("epsilon", 1e-5)}, constants
    return step.op, attributes, constants
