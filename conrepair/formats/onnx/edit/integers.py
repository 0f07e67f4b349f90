"""Constants of ONNX's operators that compute with integers: they read the scales themselves, or what follows does."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir

from conrepair.formats.editing.editor import NotEditableError
from conrepair.formats.onnx.edit.constants import set_plain, whole_steps
from conrepair.formats.onnx.edit.file import OnnxFile
from conrepair.formats.onnx.edit.grids import INTEGER_BIAS, IntegerGrid, kind_of, rescale_bias, store_anew
from conrepair.formats.onnx.read.integers import INTEGER_PRODUCTS, scale_of_weight
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.onnx_graphs.defaults import attribute
from conrepair.ground.onnx_graphs.initializers import constant_of

_GEMM = "com.microsoft.QGemm"
_WEIGHT = 3
_ZERO = 3  # of the weights, among the inputs of an integer product
_AXES: Mapping[str, int | None] = {
    "QLinearConv": 0,
    "QLinearMatMul": -1,
    _GEMM: 1,
    "com.microsoft.QLinearAdd": None,
    "com.microsoft.QLinearMul": None,
    "ConvInteger": 0,
    "MatMulInteger": -1,
}
_LSTM = "com.microsoft.DynamicQuantizeLSTM"
_GATES = {1: (8, 9), 2: (10, 11)}  # places of the scales and zero points of its weights, [directions, in, gates]


def is_of_integers(node: onnx_ir.Node) -> bool:
    """Whether a node's constants are integers whose scales it reads itself, or what follows it does."""
    return kind_of(node) in {*_AXES, _LSTM}


def set_own(file: OnnxFile, node: onnx_ir.Node, index: int, array: Array) -> None:
    """Give a node other numbers, in place, in the steps that they have.

    Args:
        file: Of the node.
        node: One of those of `is_of_integers`.
        index: Of the input.
        array: Real numbers, as the vocabulary has them.

    Raises:
        NotEditableError: if they don't fit into the type, or nothing constant says their scale.
    """
    array = _turned(node, index, array)
    dtype = file.dtype(node.inputs[index])
    if dtype is not None and dtype.is_floating_point():
        set_plain(file, node, index, array)
        return
    if index == INTEGER_BIAS.get(kind_of(node)):
        data, weight = constant_of(node.inputs[1]), constant_of(node.inputs[4])
        if data is None or weight is None:
            raise NotEditableError(f"the steps of {node.name}'s bias aren't constant.")
        _store(file, node, index, array / (data.astype(np.float64) * weight.astype(np.float64)))
        return
    grid = _grid(node, index)
    reader, place = grid.scale
    scale, zero = constant_of(reader.inputs[place]), _zero(node, grid)
    if scale is None:
        raise NotEditableError(f"the scale of input {index} of {node.name} isn't constant.")
    steps = array.astype(np.float64) / grid.spread(scale.astype(np.float64), array)
    _store(file, node, index, steps + (0 if zero is None else grid.spread(zero, array)))


def requantize_own(file: OnnxFile, node: onnx_ir.Node, index: int, array: Array) -> None:
    """Give a node other numbers, in place, with the scales that these take; a bias in steps of them follows.

    Args:
        file: Of the node.
        node: One of those of `is_of_integers`.
        index: Of the input.
        array: Real numbers, as the vocabulary has them.

    Raises:
        NotEditableError: if it's a bias, whose steps are those of others, or no scale stores the numbers.
    """
    if index == INTEGER_BIAS.get(kind_of(node)):
        raise NotEditableError(f"the bias of {node.name} has the steps of its weights; they have no others.")
    grid = _grid(node, index)
    reader = grid.scale[0]
    if reader is not node and sum(len(value.uses()) for value in reader.outputs) > 1:
        raise NotEditableError(f"the scale of input {index} of {node.name} is others' too.")
    ratio = store_anew(file, node, grid, _turned(node, index, array))
    if index == _WEIGHT and kind_of(node) != _LSTM:
        rescale_bias(file, node, ratio)


def _turned(node: onnx_ir.Node, index: int, array: Array) -> Array:
    """As the file has it."""
    if kind_of(node) == _LSTM and index in _GATES:
        return np.ascontiguousarray(array.swapaxes(1, 2))
    turns = kind_of(node) == _GEMM and index == _WEIGHT and attribute(node, "transB", 0)
    return np.ascontiguousarray(array.T) if turns else array


def _grid(node: onnx_ir.Node, index: int) -> IntegerGrid:
    if kind_of(node) == _LSTM:
        if index not in _GATES:
            raise NotEditableError(f"input {index} of {node.name} isn't quantized.")
        scale, zero = _GATES[index]
        held = constant_of(node.inputs[scale])
        return IntegerGrid(index, (node, scale), zero, (0,) if held is None or held.ndim == 1 else (0, 2))
    axis = _AXES[kind_of(node)]
    if kind_of(node) == _GEMM and attribute(node, "transB", 0):
        axis = 0
    if kind_of(node) == "QLinearMatMul" and index != _WEIGHT:
        axis = -2
    if node.op_type in INTEGER_PRODUCTS:
        place = scale_of_weight(node, lambda value: constant_of(value) is not None)
        if place is None:
            raise NotEditableError(f"nothing says the scale of input {index} of {node.name}.")
        return IntegerGrid(index, place, _ZERO, axis)
    return IntegerGrid(index, (node, index + 1), index + 2, axis)


def _zero(node: onnx_ir.Node, grid: IntegerGrid) -> Array | None:
    return constant_of(node.inputs[grid.zero]) if len(node.inputs) > grid.zero else None


def _store(file: OnnxFile, node: onnx_ir.Node, index: int, steps: Array) -> None:
    dtype = file.dtype(node.inputs[index])
    if dtype is None:
        raise NotEditableError(f"input {index} of {node.name} is of no known type.")
    set_plain(file, node, index, whole_steps(steps, dtype, node.name or str(node.op_type)))
