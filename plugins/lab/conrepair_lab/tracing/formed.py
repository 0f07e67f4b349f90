"""Kernels at fault: their faulty operators, the unstable formulas, and the network with stable ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import onnx

from conrepair.formats.networks.network import Network
from conrepair.ground.data.following import reached
from conrepair.ground.forms.all_forms import FORMS, found, in_float64, rewritten, words
from conrepair.ground.forms.form import Place
from conrepair.ground.runtime.errors import ConversionError
from conrepair_lab.tracing.explaining import explains
from conrepair_lab.tracing.propagation import Replayed
from conrepair_lab.tracing.result import Formed

_GENERATED = "generated"
_LIKELY = 0.5
_WIDENED = "computed in float64"


Candidate = tuple[Formed, onnx.ModelProto | None]
"""A form that may be why, its name `_WIDENED` where none is known; and the network without it, where there's one."""


def has_guilty_groups(run: Replayed) -> bool:
    """Whether a kernel of several operators generated an error."""
    return any(item.change == _GENERATED and len(item.operators) > 1 for item in run.errors)


def taken_apart(model: onnx.ModelProto, run: Replayed, network: Network, single: Replayed) -> list[Replayed]:
    """Find the operators at fault in fused kernels that add an error.

    Args:
        model: The network.
        run: Of the build in question.
        network: Built so that no operators are fused.
        single: The same run of that.

    Returns:
        The run, its errors with `culprits`; and the culprits' own.
    """
    guilty = {item.tensor: item for item in single.errors if item.change == _GENERATED}
    told, own = [], dict.fromkeys(guilty, False)
    for item in run.errors:
        if item.change == _GENERATED and len(item.operators) > 1:
            found = [name for name in guilty if name in _inside(model, run, item.tensor)]
            own |= dict.fromkeys(found, True)
            item = dataclasses.replace(item, culprits=tuple(_operator(network, name) for name in found))
        told.append(item)
    kept = tuple(guilty[name] for name, is_culprit in own.items() if is_culprit)
    return [dataclasses.replace(run, errors=tuple(told)), dataclasses.replace(single, errors=kept)]


def _inside(model: onnx.ModelProto, run: Replayed, tensor: str) -> set[str]:
    """Tensors that a kernel computes on its way to the one that's seen, and that one."""
    writer = {name: node for node in model.graph.node for name in node.output}
    own = writer.keys() - run.given.keys()
    return set(reached([tensor], lambda name: own & set(writer[name].input) if name in writer else ()))


def _operator(network: Network, tensor: str) -> str:
    kernel = network.kernel(tensor)
    operators = [] if kernel is None else [f"{kind} '{name}'" for name, kind in kernel.operators]
    return ", ".join(operators) or tensor


def candidates(model: onnx.ModelProto, runs: Sequence[Replayed], most: int) -> list[Candidate]:
    """Forms that may explain a deviation, the likeliest first.

    Args:
        model: The network.
        runs: Of the sides that are wrong, kernel by kernel, fused ones at fault one by one, too.
        most: That are returned.
    """
    places = found(model)
    told: list[Candidate] = []
    for run in runs:
        for tensor in (item.tensor for item in run.errors if item.change == _GENERATED and not item.culprits):
            told += _of_kernel(model, run, tensor, _inside(model, run, tensor), places)
    told.sort(key=_likely, reverse=True)
    unique = {(form.form, form.place): (form, made) for form, made in reversed(told)}
    return sorted(unique.values(), key=_likely, reverse=True)[:most]


def _likely(candidate: Candidate) -> float:
    return candidate[0].explained or 0.0


def in_other_form(
    model: onnx.ModelProto, stably: Sequence[str], widely: Sequence[str]
) -> tuple[list[Formed], onnx.ModelProto]:
    """The operators that are right with another formula, in words, and the network with these formulas.

    Args:
        model: The network.
        stably: Operators in a stable form.
        widely: Operators in float64.

    Raises:
        ConversionError: see `rewritten`.
    """
    made, places = rewritten(model, stably, widely), found(model)
    firsts = {place.nodes[0]: place for place in reversed(places) if FORMS[place.form].has_stable(place)}
    told = [Formed(firsts[name].form, name, words([firsts[name]])[0]) for name in stably]
    kinds = {node.name or node.output[0]: node.op_type for node in model.graph.node}
    return told + [Formed(_WIDENED, name, _unknown(kinds[name], name)) for name in widely], made


def _unknown(operator: str, name: str) -> str:
    return f"{operator} '{name}': no known inexact formula causes it. Instead: {_WIDENED}."


def _of_kernel(
    model: onnx.ModelProto, run: Replayed, tensor: str, within: set[str], places: Sequence[Place]
) -> Iterator[Candidate]:
    named = False
    for place in places:
        if place.output not in within:
            continue
        score: float | None = None
        if place.output == tensor and all(name in run.given for name in place.inputs):
            values = [run.given[name] for name in place.inputs]
            score = explains(FORMS[place.form], place, values, run.alone[tensor], run.right[tensor])
            if score < _LIKELY:  # what a few values don't show, a stable form that heals does
                if not FORMS[place.form].has_stable(place):
                    continue
                score = None
        named = True
        yield Formed(place.form, place.nodes[0], words([place])[0], score), _written(model, place)
    if not named:
        node = next(item for item in model.graph.node if tensor in item.output)
        place = Place("", 0, node.op_type, (node.name or tensor,), tuple(node.input), tensor)
        said = _unknown(node.op_type, place.nodes[0])
        yield Formed(_WIDENED, place.nodes[0], said), _written(model, place)


def _written(model: onnx.ModelProto, place: Place) -> onnx.ModelProto | None:
    form = FORMS.get(place.form)
    try:
        return form.stable(model, place) if form and form.has_stable(place) else in_float64(model, place)
    except ConversionError:
        return None
