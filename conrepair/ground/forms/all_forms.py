"""All unstable forms, and the advice for the places where they were found."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Mapping

import onnx
import onnx_ir

from conrepair.ground.equations.matching import name_of
from conrepair.ground.equations.writing import check_takes
from conrepair.ground.forms.form import Form, Place, opened, widened_at
from conrepair.ground.forms.functions import FUNCTIONS
from conrepair.ground.forms.statistics import STATISTICS
from conrepair.ground.forms.sums import SUMS
from conrepair.ground.runtime.errors import ConversionError

FORMS: Mapping[str, Form] = {form.name: form for form in (*FUNCTIONS, *STATISTICS, *SUMS)}
"""By name."""


def found(model: onnx.ModelProto) -> list[Place]:
    """All places of all forms in a model's main graph."""
    graph = opened(model)
    return [place for form in FORMS.values() for place in form.found_in(graph)]


def in_float64(model: onnx.ModelProto, place: Place) -> onnx.ModelProto:
    """A copy of the model with the nodes of a place computed in float64, between casts.

    Raises:
        ConversionError: if the place isn't the model's, or its element type isn't known.
    """
    return widened_at(model, place, onnx_ir.DataType.DOUBLE)


def stable_operators(model: onnx.ModelProto) -> list[str]:
    """Operators at which a form ends that has a stable one, by their nodes' names, in the order of the graph.

    A node without a name has that of its result.
    """
    ends = {place.nodes[0] for place in found(model) if FORMS[place.form].has_stable(place)}
    return [name for node in model.graph.node if (name := node.name or node.output[0]) in ends]


def float64_operators(model: onnx.ModelProto) -> list[str]:
    """Operators that can be computed in float64 and aren't, by their nodes' names, in the order of the graph."""
    graph, names = opened(model), []
    for node in graph.graph:
        with contextlib.suppress(ConversionError):
            own = check_takes(node, onnx_ir.DataType.DOUBLE, graph.opset_imports.get("", 1))
            names += [name_of(node)] if own != onnx_ir.DataType.DOUBLE else []
    return names


def rewritten(model: onnx.ModelProto, stably: Collection[str], widely: Collection[str]) -> onnx.ModelProto:
    """A copy of the model with operators in another form.

    Args:
        model: The network.
        stably: Of `stable_operators`, to be written in the first stable form that's known; those behind others first,
            whose forms may be a part of theirs.
        widely: Operators to compute in float64.

    Raises:
        ConversionError: if there's no such operator or form, or the model's opset and types have no words for it.
    """
    known = stable_operators(model)
    if unknown := set(stably).difference(known):
        raise ConversionError(
            f"no stable form of {', '.join(sorted(unknown))} is known, but of {', '.join(known) or 'no operator'}"
        )
    for name in sorted(stably, key=known.index, reverse=True):
        for place in found(model):
            if place.nodes[0] == name and FORMS[place.form].has_stable(place):
                model = FORMS[place.form].stable(model, place)
                break
    return in_float64(model, Place("", 0, "", tuple(widely), (), "")) if widely else model


def words(found: Iterable[Place]) -> list[str]:
    """A sentence or two for each place: which form, where, what to do, what it is."""
    result = []
    for place in found:
        form = FORMS[place.form]
        remedy = form.remedy if form.has_stable(place) else "compute it in float64"
        result.append(f"{place.operator} '{place.nodes[0]}': {form.name}. Instead: {remedy}. {form.words}")
    return result
