"""Why digits are lost, in words, and the network written so that they aren't: forms at the kernels at fault."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import onnx

from conrepair.forms.all_forms import FORMS, found, in_float64, rewritten, words
from conrepair.forms.form import Place
from conrepair.runtime.errors import ConversionError
from conrepair.tracing.explaining import explains
from conrepair.tracing.fused import inside
from conrepair.tracing.propagation import Replayed

__all__ = ["Candidate", "candidates", "in_other_form"]

_LIKELY = 0.5
_WIDENED = "computed in float64"


@dataclass(frozen=True)
class Candidate:
    """A form that may be why, and the network without it.

    Attributes:
        form: Its name; `_WIDENED` where no form is known.
        node: That ends it.
        words: What's computed there and what helps.
        explained: How well its errors are those that were seen, 0 to 1; None where the values don't show it.
        model: With the stable form in its place; None where there's none.
    """

    form: str
    node: str
    words: str
    explained: float | None
    model: onnx.ModelProto | None


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
        for tensor in (item.tensor for item in run.errors if item.change == "generated" and not item.culprits):
            told += _of_kernel(model, run, tensor, inside(model, run, tensor), places)
    told.sort(key=lambda item: -(item.explained or 0.0))
    unique = {(item.form, item.node): item for item in reversed(told)}
    return sorted(unique.values(), key=lambda item: -(item.explained or 0.0))[:most]


def in_other_form(model: onnx.ModelProto, stably: Sequence[str], widely: Sequence[str]) -> list[Candidate]:
    """What's said of operators that heal in another form, each with the network that has them all.

    Args:
        model: The network.
        stably: Operators in a stable form.
        widely: Operators in float64.

    Raises:
        ConversionError: see `rewritten`.
    """
    made, places = rewritten(model, stably, widely), found(model)
    firsts = {place.nodes[0]: place for place in reversed(places) if FORMS[place.form].has_stable(place)}
    told = [Candidate(firsts[name].form, name, words([firsts[name]])[0], None, made) for name in stably]
    kinds = {node.name or node.output[0]: node.op_type for node in model.graph.node}
    return told + [Candidate(_WIDENED, name, _unknown(kinds[name], name), None, made) for name in widely]


def _unknown(operator: str, name: str) -> str:
    return f"{operator} '{name}': no form is known that loses digits so. Instead: {_WIDENED}."


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
        yield _candidate(model, place, score)
    if not named:
        node = next(item for item in model.graph.node if tensor in item.output)
        place = Place("", 0, node.op_type, (node.name or tensor,), tuple(node.input), tensor)
        said = _unknown(node.op_type, place.nodes[0])
        yield Candidate(_WIDENED, place.nodes[0], said, None, _written(model, place))


def _candidate(model: onnx.ModelProto, place: Place, score: float | None) -> Candidate:
    (said,) = words([place])
    return Candidate(place.form, place.nodes[0], said, score, _written(model, place))


def _written(model: onnx.ModelProto, place: Place) -> onnx.ModelProto | None:
    form = FORMS.get(place.form)
    try:
        return form.stable(model, place) if form and form.has_stable(place) else in_float64(model, place)
    except ConversionError:
        return None
