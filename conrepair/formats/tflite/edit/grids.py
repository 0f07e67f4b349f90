"""Scales and zero points in TFLite files: of an activation with all that must share them, of a constant's numbers."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np

from conrepair.formats.editing.editor import NotEditableError
from conrepair.formats.editing.grid import affine_grid, grid_of_range, limits_of, symmetric_scales
from conrepair.formats.tflite.edit.file import EditedTfliteFile
from conrepair.formats.tflite.read.operators import POOLS
from conrepair.ground.graph.layer_graph import Array

# Kernels that copy integers: what they read and what they give have one scale.
_MOVING = {
    *("RESHAPE", "SQUEEZE", "EXPAND_DIMS", "TRANSPOSE", "REVERSE_V2", "REVERSE_SEQUENCE", "TILE", "BROADCAST_TO"),
    *("PAD", "PADV2", "MIRROR_PAD", "SLICE", "STRIDED_SLICE", "GATHER", "GATHER_ND", "SELECT", "SELECT_V2"),
    *("CONCATENATION", "PACK", "UNPACK", "SPLIT", "SPLIT_V"),
    *("SPACE_TO_DEPTH", "DEPTH_TO_SPACE", "SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND"),
    *("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "MAXIMUM", "MINIMUM", "REDUCE_MAX", "REDUCE_MIN", *POOLS),
}
_PRESCRIBED = {"SOFTMAX", "LOG_SOFTMAX", "LOGISTIC", "TANH", "L2_NORMALIZATION"}  # kernels know one scale
# Kernels with a scale for each thing that they read and give; elsewhere other tensors may have to follow.
_FREE = _PRESCRIBED | {
    *("CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "FULLY_CONNECTED", "BATCH_MATMUL"),
    *("ADD", "SUB", "MUL", "SQUARED_DIFFERENCE", "MEAN", "SUM", "QUANTIZE", "DEQUANTIZE"),
    *("RELU", "RELU6", "LEAKY_RELU", "PRELU", "HARD_SWISH", "GELU", "ELU", "EXP", "RSQRT", "ABS"),
    *("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "ARG_MAX", "ARG_MIN", "SHAPE"),
}
BIASES: Mapping[str, tuple[int, int, int]] = {
    **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"), (0, 1, 2)),
    "TRANSPOSE_CONV": (2, 1, 3),
}
"""Places of what's multiplied, by which weights, and of the bias in steps of both, in layers with one of each."""

_PRODUCTS: Mapping[str, tuple[tuple[int, int, int], ...]] = {
    **{kind: (places,) for kind, places in BIASES.items()},
    "UNIDIRECTIONAL_SEQUENCE_LSTM": tuple((0, 1 + gate, 12 + gate) for gate in range(4)),
}


def set_range(file: EditedTfliteFile, index: int, low: float, high: float) -> None:
    """Quantize an activation, and what must have its scale, for another range; biases in its steps follow.

    Args:
        file: Of the tensor.
        index: A quantized tensor that isn't constant.
        low: Smallest number that it must hold.
        high: Largest.

    Raises:
        NotEditableError: if a kernel prescribes the scale, or isn't known here.
    """
    group = _group(file, index)
    scale, zero = grid_of_range(low, high, file.dtype(index))
    for place in group:
        real = file.real(place)
        _set_grid(file, place, scale.reshape(1), zero)
        if real is not None:
            file.set_constant(place, file.stored(place, real))
    for operator in file.operators:
        if set(operator.inputs) & set(group):
            rescale_bias(file, operator)


def set_constant_grid(file: EditedTfliteFile, operator: Any, index: int, real: Array, *, symmetric: bool) -> None:
    """Give a constant other numbers, with the scales that these take; a bias in steps of them follows.

    Args:
        file: Of the constant.
        operator: The only one that reads it.
        index: Of the constant's tensor.
        real: The numbers, as the file lays them out.
        symmetric: Whether the operator's kernel wants zero stored as 0.

    Raises:
        NotEditableError: if the constant isn't quantized, or no scale stores the numbers.
    """
    before = file.scales(index)
    if before is None or not file.is_quantized(index):
        raise NotEditableError(f"{file.names[index]} isn't quantized")
    quantization = file.tensors[index].quantization
    least, most = limits_of(file.dtype(index))
    if symmetric and not np.any(quantization.zeroPoint):
        axis = quantization.quantizedDimension if len(before) > 1 else None
        scales, zero = symmetric_scales(real, axis, most, before, file.constant(index)), 0
    elif len(before) == 1:
        single, zero = affine_grid(float(real.min()), float(real.max()), least, most)
        scales = single.reshape(1)
    else:
        raise NotEditableError(f"{file.names[index]} has a zero point for each channel")
    _set_grid(file, index, scales, zero)
    file.set_constant(index, file.stored(index, real))
    rescale_bias(file, operator)


def rescale_bias(file: EditedTfliteFile, operator: Any) -> None:
    """Store an integer bias in steps of the product of both scales, as kernels take it, whatever it's stored in.

    Args:
        file: Of the operator.
        operator: One that may have such a bias.
    """
    for data, weight, bias in _PRODUCTS.get(file.kind(operator), ()):
        if bias < len(operator.inputs) and operator.inputs[bias] >= 0:
            _rescale_bias(file, operator, bias, (operator.inputs[data], operator.inputs[weight]))


def _rescale_bias(file: EditedTfliteFile, operator: Any, position: int, factors: tuple[int, int]) -> None:
    place = operator.inputs[position]
    if not file.is_quantized(place) or file.dtype(place) not in {"int32", "int64"}:
        return
    (data, weight), real = (file.scales(factor) for factor in factors), file.real(place)
    if real is None or data is None or weight is None:
        return
    if sum([*item.inputs].count(place) for item in file.operators) > 1:
        place = file.copy_tensor(place, f"{file.names[place]}/{file.names[operator.outputs[0]]}")
        operator.inputs[position] = place
    _set_grid(file, place, (data * weight).astype(np.float32), 0)
    file.set_constant(place, file.stored(place, real))


def _group(file: EditedTfliteFile, index: int) -> list[int]:
    """The tensors that have one scale with a tensor, for kernels want it."""
    ahead, found = [index], {index: None}
    while ahead:
        place = ahead.pop()
        producer = file.producer(place)
        if producer is not None and file.kind(producer) in _PRESCRIBED:
            raise NotEditableError(f"the scale of {file.names[place]} is prescribed by {file.kind(producer)}")
        for operator in [*file.readers(place), *([] if producer is None else [producer])]:
            kind = file.kind(operator)
            if kind not in _MOVING | _FREE:
                raise NotEditableError(f"what {kind} wants of the scale of {file.names[place]} isn't known")
            joined = [*operator.inputs, *operator.outputs] if kind in _MOVING else []
            for other in joined:
                same = other >= 0 and file.is_quantized(other) and file.dtype(other) == file.dtype(index)
                if same and other not in found:
                    found[other] = None
                    ahead.append(other)
    return list(found)


def _set_grid(file: EditedTfliteFile, index: int, scales: Array, zero: int) -> None:
    """In a quantization of the tensor's own, without the range that it was calibrated for."""
    tensor = file.tensors[index]
    tensor.quantization = copy.copy(tensor.quantization)
    tensor.quantization.scale = np.asarray(scales, np.float32)
    tensor.quantization.zeroPoint = np.full(len(scales), zero, np.int64)
    tensor.quantization.min = tensor.quantization.max = None
