"""Scales and zero points in ONNX files: of an activation wherever they're written, of a constant with its numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx_ir

from conrepair.formats.editing.editor import NotEditableError
from conrepair.formats.editing.grid import affine_grid, grid_of_range, limits_of, symmetric_scales
from conrepair.formats.onnx.edit.blocks import requantize_blocks
from conrepair.formats.onnx.edit.constants import constant_chain, moved_back, set_plain
from conrepair.formats.onnx.edit.file import OnnxFile
from conrepair.formats.onnx.read.quantization import MOVING, OPERANDS, RESULTS
from conrepair.ground.graph.channels import per_channel
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.graph.slices import HALF_STEP
from conrepair.ground.onnx_graphs.defaults import attribute
from conrepair.ground.onnx_graphs.initializers import constant_of

INTEGER_BIAS = {"QLinearConv": 8, "com.microsoft.QGemm": 6}  # in steps of the product of both scales
_REAL_BIAS = {"Conv": 2, "ConvTranspose": 2, "Gemm": 2}


@dataclass(frozen=True)
class IntegerGrid:
    """Where a node reads a constant's integers, and what they stand for.

    Attributes:
        value: Place of the integers among its inputs.
        scale: Of the scale: one, or one for each channel; by the node that reads it.
        zero: Of the zero point.
        axis: Of the channels, or all axes along which scales differ; None where there's one scale.
    """

    value: int
    scale: tuple[onnx_ir.Node, int]
    zero: int
    axis: int | tuple[int, ...] | None

    def spread(self, numbers: Array, array: Array) -> Array:
        """One number for each scale, so that it goes with the numbers that share it.

        Args:
            numbers: As many as there are scales.
            array: What's stored, as the file lays it out.
        """
        if isinstance(self.axis, tuple) and numbers.size > 1:
            return numbers.reshape([size if at in self.axis else 1 for at, size in enumerate(array.shape)])
        return per_channel(numbers, self.axis if isinstance(self.axis, int) else None, array.ndim)


@dataclass(frozen=True)
class _Slot:
    """Where a tensor's scale and zero point are written.

    Attributes:
        node: Reads them.
        scale: Place of the scale among its inputs.
        zero: Place of the zero point.
    """

    node: onnx_ir.Node
    scale: int
    zero: int


def set_range(file: OnnxFile, value: onnx_ir.Value, low: float, high: float) -> None:
    """Quantize an activation, and what's only moved from it, for another range; biases in its steps follow.

    Args:
        file: Of the value.
        value: Integers, or real numbers that are quantized next, or dequantized from integers.
        low: Smallest number that it must hold.
        high: Largest.

    Raises:
        NotEditableError: if the value's scale is computed as it runs, isn't one number, or is written in a way that
            isn't known here. Nothing is changed then.
    """
    stored = _stored(file, value)
    slots = list(_slots(stored))
    dtype = file.dtype(stored)
    before = constant_of(slots[0].node.inputs[slots[0].scale]) if slots else None
    if not slots or dtype is None or before is None or before.size != 1:
        raise NotEditableError(f"{value.name} has no scale of its own that could be changed.")
    scale, zero = grid_of_range(low, high, dtype.numpy())
    kind = file.dtype(slots[0].node.inputs[slots[0].scale]) or onnx_ir.DataType.FLOAT
    scales = file.constant(f"{stored.name}/scale", scale.reshape(before.shape), kind)
    zeros = file.constant(f"{stored.name}/zero_point", np.full(before.shape, zero), dtype)
    for slot in slots:
        old = {place: slot.node.inputs[place] for place in (slot.scale, slot.zero) if place < len(slot.node.inputs)}
        slot.node.resize_inputs(max(len(slot.node.inputs), slot.zero + 1))
        slot.node.replace_input_with(slot.scale, scales)
        slot.node.replace_input_with(slot.zero, zeros)
        for item in old.values():
            file.forget(item)
    ratio = np.asarray(float(scale) / float(before.reshape(-1)[0]))
    for reader in _multiplying(slots):
        rescale_bias(file, reader, ratio)


def requantize(file: OnnxFile, node: onnx_ir.Node, index: int, array: Array) -> None:
    """Give one node other numbers at an input that is dequantized, with the scales that these take, in place.

    Args:
        file: Of the node.
        node: Reads the constant.
        index: Of the input.
        array: As the node reads it.

    Raises:
        NotEditableError: if the input isn't dequantized from a constant with one scale, or one for each channel.
    """
    chain = constant_chain(file, node, index)
    if not chain:
        raise NotEditableError(f"input {index} of {node.name} isn't dequantized from a constant.")
    first = chain[0]
    for item in reversed(chain[1:]):
        array = moved_back(file, item, array)
    if attribute(first, "block_size", 0):
        requantize_blocks(file, first, array)
        return
    grid = IntegerGrid(0, (first, 1), 2, int(attribute(first, "axis", 1)))
    rescale_bias(file, node, store_anew(file, first, grid, array))


def store_anew(file: OnnxFile, node: onnx_ir.Node, grid: IntegerGrid, array: Array) -> Array:
    """Give a node other integers, scales and zero points, those that numbers take, of the shapes that they had.

    Args:
        file: Of the node.
        node: Reads all three as constants.
        grid: Where.
        array: Real numbers, as the file lays them out.

    Returns:
        The new scales by the old ones.

    Raises:
        NotEditableError: if the scale isn't constant, there's a zero point for each channel, or no scale stores the
            numbers. Nothing is changed then.
    """
    has_zero = len(node.inputs) > grid.zero and node.inputs[grid.zero] is not None
    reader, place = grid.scale
    dtype, before = file.dtype(node.inputs[grid.value]), constant_of(reader.inputs[place])
    zeros = constant_of(node.inputs[grid.zero]) if has_zero else np.zeros((), np.int64)
    label = node.name or node.op_type
    if dtype is None or before is None or zeros is None or not dtype.is_integer():
        raise NotEditableError(f"{label} has no constant scale of input {grid.value}.")
    least, most = limits_of(dtype.numpy())
    axis = grid.axis if before.size > 1 else None
    held = constant_of(node.inputs[grid.value])
    scales: Array = symmetric_scales(array, axis, most, before, held).reshape(before.shape)
    offset = np.zeros_like(zeros)
    # Integers that are the nearest ones with zero stored as 0 were meant so, whatever the zero point says.
    steps = array.astype(np.float64) / grid.spread(scales.astype(np.float64), array)
    meant = held is not None and least < 0 and np.abs(steps - held).max(initial=0.0) <= HALF_STEP
    if not meant and (np.any(zeros) or (least == 0 and array.min(initial=0.0) < 0)):
        if axis is not None or not has_zero:
            raise NotEditableError(f"{label} has a zero point for each channel of input {grid.value}, or none.")
        single, zero = affine_grid(float(array.min()), float(array.max()), least, most)
        scales, offset = single.reshape(before.shape), np.full(zeros.shape, zero)
    steps = array.astype(np.float64) / grid.spread(scales.astype(np.float64), array)
    steps += grid.spread(offset, array)
    set_plain(file, node, grid.value, np.clip(np.rint(steps), least, most))
    set_plain(file, reader, place, scales)
    if has_zero:
        set_plain(file, node, grid.zero, offset)
    ratio: Array = scales.astype(np.float64) / before.astype(np.float64)
    return ratio


def _stored(file: OnnxFile, value: onnx_ir.Value) -> onnx_ir.Value:
    """The integers that a value is, is dequantized from, or is quantized to."""
    dtype, producer = file.dtype(value), value.producer()
    if dtype is not None and dtype.is_integer():
        return value
    if producer is not None and producer.op_type == "DequantizeLinear" and producer.inputs[0] is not None:
        return producer.inputs[0]
    for use in value.uses():
        if use.node.op_type == "QuantizeLinear":
            return use.node.outputs[0]
    raise NotEditableError(f"{value.name} isn't quantized.")


def _slots(value: onnx_ir.Value) -> Iterator[_Slot]:
    """All that says the scale of a value, or of one that's only moved from it, or that it's moved from."""
    ahead, seen = [value], {value}

    def add(*values: onnx_ir.Value | None) -> None:
        new = [item for item in values if item is not None and item not in seen]
        ahead.extend(new)
        seen.update(new)

    while ahead:
        item = ahead.pop()
        producer = item.producer()
        if producer is not None:
            kind = kind_of(producer)
            if kind in MOVING:
                add(producer.inputs[0])
            elif kind in RESULTS and item is producer.outputs[0]:
                yield _Slot(producer, *RESULTS[kind])
            else:
                raise NotEditableError(f"{producer.name} ({kind}) gives {item.name} a scale that no constant says.")
        for use in item.uses():
            kind, places = kind_of(use.node), OPERANDS.get(kind_of(use.node), {})
            if kind in MOVING and use.idx == 0:
                add(*use.node.outputs)
            elif kind == "com.microsoft.QLinearConcat" and use.idx >= 2:
                yield _Slot(use.node, use.idx + 1, use.idx + 2)
            elif use.idx in places:
                yield _Slot(use.node, *places[use.idx])
            else:
                raise NotEditableError(f"{use.node.name} ({kind}) reads {item.name} in a way that isn't known here.")


def kind_of(node: onnx_ir.Node) -> str:
    """An operator, with its domain where that isn't ONNX's own."""
    return f"{node.domain}.{node.op_type}" if node.domain else str(node.op_type)


def _multiplying(slots: list[_Slot]) -> list[onnx_ir.Node]:
    """The nodes that multiply a tensor, of whose slots these are, by weights."""
    found: dict[onnx_ir.Node, None] = {}
    for slot in slots:
        if slot.scale == 1 and kind_of(slot.node) in INTEGER_BIAS:
            found[slot.node] = None
        elif kind_of(slot.node) == "DequantizeLinear":
            found.update(
                {
                    use.node: None
                    for use in slot.node.outputs[0].uses()
                    if use.idx == 0 and kind_of(use.node) in _REAL_BIAS
                }
            )
    return list(found)


def rescale_bias(file: OnnxFile, node: onnx_ir.Node, ratio: Array) -> None:
    """Keep what an integer bias stands for, in steps of the product of both scales, one of which grows by a ratio.

    Optimized runtimes take a bias that is dequantized for one in such steps, whichever scale is written with it.
    """
    kind = kind_of(node)
    if kind in INTEGER_BIAS and len(node.inputs) > (place := INTEGER_BIAS[kind]):
        stored = constant_of(node.inputs[place])
        if stored is not None:
            set_plain(file, node, place, np.rint(stored / ratio.reshape(-1)))
    chain = constant_chain(file, node, _REAL_BIAS[kind]) if kind in _REAL_BIAS else []
    held = file.dtype(chain[0].inputs[0]) if chain else None
    data, weight = (_scale_behind(value) for value in node.inputs[:2])
    if held is None or held.name != "INT32" or data is None or weight is None:
        return
    stored, scale = constant_of(chain[0].inputs[0]), constant_of(chain[0].inputs[1])
    if stored is None or scale is None:
        return
    product = data.reshape(-1) * weight.reshape(-1)
    if scale.size < product.size:
        raise NotEditableError(f"the bias of {node.name} has one scale, where its weights have one for each channel.")
    right = np.broadcast_to(product, scale.reshape(-1).shape).reshape(scale.shape)
    set_plain(file, chain[0], 0, np.rint(stored.astype(np.float64) * scale / right))
    set_plain(file, chain[0], 1, right.astype(scale.dtype))


def _scale_behind(value: onnx_ir.Value | None) -> Array | None:
    """The scale that real numbers are dequantized with; None for others."""
    while value is not None and (node := value.producer()) is not None:
        if node.op_type == "DequantizeLinear":
            return constant_of(node.inputs[1])
        value = node.inputs[0] if node.op_type in MOVING else None
    return None
