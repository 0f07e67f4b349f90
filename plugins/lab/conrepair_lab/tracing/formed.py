"""Kernels at fault: their faulty operators, the unstable formulas, and the network with stable ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from conrepair.formats.networks.network import Network
from conrepair.ground.data.following import reached
from conrepair.ground.equations.expression import names_in
from conrepair.ground.equations.writing import model_of
from conrepair.ground.forms.all_forms import FORMS, found, in_float64, rewritten, words
from conrepair.ground.forms.form import Form, Place, Writing
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.metrics.ulps import grid_of
from conrepair.ground.runtime.errors import ConversionError
from conrepair_lab.accuracy.forms import alike
from conrepair_lab.accuracy.naive.all_forms import FORMS as KERNELS
from conrepair_lab.tracing.propagation import Replayed
from conrepair_lab.tracing.result import Formed

_OPSET = 21  # of the models in which expressions are computed
_BINS, _IN_A_BIN = 64, 8  # of an error curve, at most; values, at least
_LOUD = 4.0  # bits lost: below, a good kernel's rounding would look alike
_MOST_BITS = 30.0


def explains(form: Form, place: Place, values: Sequence[Array], given: Array, exact: Array) -> float:
    """How well a form explains what a system computed.

    Args:
        form: Supposed.
        place: Where.
        values: The tensors of `place.inputs`, as the system read them.
        given: What it computed, in its element type.
        exact: What's right, in float64.

    Returns:
        0, where the errors are others, to 1, where they're as large at the same inputs, with the same signs.
    """
    writing, dtype = form.writings[place.writing], given.dtype
    exact = np.asarray(exact, np.float64)
    unit = grid_of(dtype).ulp(exact)
    own = [np.asarray(value, dtype) for value in values]
    order = np.abs(exact) if not own or own[0].shape != exact.shape else own[0].astype(np.float64)
    seen, best = (given.astype(np.float64) - exact) / unit, 0.0
    with np.errstate(all="ignore"):
        for answer in _answers(writing, own, place.numbers):
            expected = (answer.astype(np.float64).reshape(exact.shape) - exact) / unit
            best = max(best, likeness(seen, expected, order))
        if writing.sizes:
            sizes = computed(writing.sizes, _named(writing, own, np.float64), place.numbers)
            sizes = sizes.reshape(exact.shape) if sizes.size == exact.size else np.broadcast_to(sizes, exact.shape)
            best = max(best, likeness(np.abs(seen), sizes / unit * float(ml_dtypes.finfo(dtype).eps) / 2, order))
    return best


def _answers(writing: Writing, values: Sequence[Array], numbers: Mapping[str, Any]) -> Iterator[Array]:
    """What systems may compute that have a form, in the values' element type."""
    kernels = KERNELS.get(writing.call.operator, []) if writing.call.is_plain else []
    if not (writing.naive or writing.sizes):
        meant = (form.compute for form in kernels if writing.kernels in form.words)
        yield from (compute(*values) for compute in meant if compute is not None)
    text = writing.naive or ("" if kernels or writing.sizes else writing.pattern)
    for naive in filter(None, text.split(" | ")):
        yield computed(naive, _named(writing, values, None), numbers)


def _named(writing: Writing, values: Sequence[Array], dtype: Any) -> dict[str, Array]:
    """Values by the names that they have in a writing."""
    return {name: np.asarray(value, dtype) for name, value in zip(names_in(writing.call), values, strict=True)}


def likeness(seen: Array, expected: Array, order: Array) -> float:
    """How much two error curves, in bits lost, have in common: where they're high, how high, their signs.

    Args:
        seen: Errors in units in the last place.
        expected: Those of a form.
        order: What both are curves over, of the same size.

    Returns:
        From 0 to 1; 0 where nothing was seen beyond a good kernel's rounding.
    """
    sorted_by = np.argsort(order, axis=None, kind="stable")
    curves = []
    for errors in (seen, expected):
        bits = np.log2(np.maximum(np.nan_to_num(np.abs(errors), nan=np.inf, posinf=np.inf), 1.0)).ravel()[sorted_by]
        parts = np.array_split(np.minimum(bits, _MOST_BITS), max(min(_BINS, bits.size // _IN_A_BIN), 1))
        curves.append(np.array([part.max() for part in parts]))
    one, two = curves
    loud = np.maximum(one, two) > _LOUD
    if not (one > _LOUD).any():
        return 0.0
    common = alike(one[loud], two[loud])
    large = np.minimum(np.abs(seen), np.abs(expected)) > 2.0**_LOUD
    if large.any():
        common *= float((np.sign(seen) == np.sign(expected))[large].mean())
    varies = one.std() > 0 and two.std() > 0
    return common * max(float(np.corrcoef(one, two)[0, 1]), 0.0) if varies else common


def computed(text: str, values: Mapping[str, Array], numbers: Mapping[str, Any]) -> Array:
    """What an expression computes in the element type of the values, by ONNX's reference.

    Args:
        text: The expression.
        values: By its names.
        numbers: Attributes and axes by its names.
    """
    model = model_of(text, values, {**numbers, "keepdims": 1}, _OPSET)
    found: Array = ReferenceEvaluator(model).run(None, dict(values))[0]
    return found


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
