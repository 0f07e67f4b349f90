"""ONNX's normalizations, reductions and softmaxes in the vocabulary."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from conrepair.formats.onnx.read.call import OnnxCall
from conrepair.ground.graph.layer_graph import Attribute, Parameter
from conrepair.ground.graph.operators import NORMALIZATIONS, OPERATORS, SOFTMAX

_PER_CHANNEL = 21  # opset in which GroupNormalization's scale got an entry for each channel
_OWN_AXIS = 13  # opset in which Softmax stopped to see its input as a matrix


def _layer(call: OnnxCall) -> None:
    rank, axis = call.rank(0), call.axis(int(call.attribute("axis", -1)))
    operator = call.operator if call.operator in OPERATORS else "RMSNormalization"
    attributes = {**call.said(operator), "axes": None if rank is None else tuple(range(axis, rank))}
    call.emit(call.varying(), attributes, call.behind(operator), operator=operator)


def _group(call: OnnxCall) -> None:
    groups = int(call.attribute("num_groups"))
    parameters = call.behind(call.operator)
    sizes = call.sizes(0)
    if call.opset < _PER_CHANNEL:
        channels = None if sizes is None else sizes[1]
        if channels is None or len(parameters) < 2:
            return
        parameters = {role: _repeated(call, index, channels // groups) for index, role in ((1, "scale"), (2, "bias"))}
    call.emit(call.varying(), {**call.said(), "groups": groups}, parameters)


def _repeated(call: OnnxCall, index: int, times: int) -> Parameter:
    """An entry for each channel from one for each group."""
    length = math.prod(call.shape(index) or ())
    return call.parameter(index, lambda array: np.repeat(array, times), (length * times,))


def _lp(call: OnnxCall) -> None:
    axis = call.axis(int(call.attribute("axis", -1)))
    call.emit(call.varying(), {"p": int(call.attribute("p", 2)), "axes": (axis,)})


def _reduction(call: OnnxCall) -> None:
    given = call.numbers(1)
    axes = tuple(call.attribute("axes") or ()) if given is None else tuple(given.tolist())
    attributes: dict[str, Attribute] = {"keepdims": bool(call.attribute("keepdims", 1))}
    rank = call.rank(0)
    if call.given(1) and given is None:
        call.emit(call.varying(), {**attributes, "axes": None})
    elif not axes and call.attribute("noop_with_empty_axes", 0):
        _without_axes(call)
    else:
        every = None if rank is None else tuple(range(rank))
        chosen = tuple(sorted(call.axis(int(axis)) for axis in axes)) if axes else every
        call.emit(call.varying(), {**attributes, "axes": chosen})


def _without_axes(call: OnnxCall) -> None:
    """A reduction along no axis: what's done to each element is done all the same."""
    single = {"ReduceL1": "Abs", "ReduceL2": "Abs", "ReduceSumSquare": "Square", "ReduceLogSum": "Log"}
    call.emit(call.varying((0,)), operator=single.get(call.operator, "Identity"))


def _softmax(call: OnnxCall) -> None:
    axis, sizes = call.axis(int(call.attribute("axis"))), call.sizes(0)
    if call.opset >= _OWN_AXIS or (sizes is not None and all(size == 1 for size in sizes[axis + 1 :])):
        call.emit_alike()
        return
    shape = call.shape(0)
    matrix = None if shape is None else (math.prod(shape[:axis]), math.prod(shape[axis:]))
    flat, result = call.hide("matrix", matrix), call.hide("normalized", matrix)
    call.emit(call.varying(), {"shape": matrix}, outputs=[flat], operator="Reshape")
    call.emit([flat], {"axis": 1}, outputs=[result])
    call.emit([result], {"shape": shape}, operator="Reshape")


def _extreme_index(call: OnnxCall) -> None:
    if not call.attribute("select_last_index", 0):
        call.emit_alike()


def _cumulative(call: OnnxCall) -> None:
    given = call.numbers(1)
    axis = None if given is None else call.axis(int(given.reshape(-1)[0]))
    call.emit(call.varying(), {**call.said(), "axis": axis})


RULES: Mapping[str, Callable[[OnnxCall], None]] = {
    **{name: _reduction for name in OPERATORS if name.startswith("Reduce")},
    **dict.fromkeys(("ReduceL1", "ReduceLogSum", "ReduceLogSumExp"), _reduction),
    **dict.fromkeys(("ArgMax", "ArgMin"), _extreme_index),
    **dict.fromkeys((*NORMALIZATIONS, "LRN"), OnnxCall.emit_alike),
    "CumSum": _cumulative,
    "GroupNormalization": _group,
    **dict.fromkeys(("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"), _layer),
    "LpNormalization": _lp,
    **dict.fromkeys(SOFTMAX, _softmax),
}
