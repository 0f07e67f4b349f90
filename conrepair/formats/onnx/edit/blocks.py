"""Constants in blocks of few bits in ONNX files: packed into bytes, or as they're dequantized block by block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx_ir

from conrepair.formats.editing.editor import NotEditableError
from conrepair.formats.editing.grid import limits_of
from conrepair.formats.onnx.edit.constants import set_plain
from conrepair.formats.onnx.edit.file import OnnxFile
from conrepair.formats.onnx.read.blocks import packed, unpacked, zero_points
from conrepair.formats.onnx.read.session import PACKED_PRODUCT
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.graph.slices import CUT_OFF, HALF_STEP
from conrepair.ground.onnx_graphs.defaults import attribute
from conrepair.ground.onnx_graphs.initializers import constant_of

_BITS = 4  # of a packed product that doesn't say

Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Blocks:
    """Rows of numbers that share a scale.

    Attributes:
        integers: [blocks, numbers].
        scales: [blocks, 1].
        zeros: [blocks, 1].
    """

    integers: Values
    scales: Values
    zeros: Values


def is_packed(node: onnx_ir.Node) -> bool:
    """Whether a node's weights are packed into bytes."""
    return f"{node.domain}.{node.op_type}" == PACKED_PRODUCT


def requantize_packed(file: OnnxFile, node: onnx_ir.Node, index: int, array: Array) -> None:
    """Give a packed product other weights, in the blocks and bits that it has.

    Args:
        file: Of the node.
        node: One of those of `is_packed`.
        index: Of the input.
        array: Real numbers, [rows, columns].

    Raises:
        NotEditableError: if it's another input, or they aren't constant.
    """
    held, scales = constant_of(node.inputs[1]), constant_of(node.inputs[2])
    if index != 1 or held is None or scales is None:
        raise NotEditableError(f"{node.name} has no constant weights at input {index}.")
    bits, size = int(attribute(node, "bits", _BITS)), int(attribute(node, "block_size", 0))
    columns, count = array.shape[1], -(-array.shape[0] // size)
    given = constant_of(node.inputs[3]) if len(node.inputs) > 3 else None
    zeros = zero_points(given, bits, (columns, count), 2 ** (bits - 1)).reshape(-1, 1)
    rows = np.pad(array.T.astype(np.float64), ((0, 0), (0, count * size - array.shape[0]))).reshape(-1, size)
    integers = unpacked(held.reshape(columns * count, -1), bits)[:, :size].astype(np.float64)
    before = _Blocks(integers, scales.reshape(-1, 1).astype(np.float64), zeros)
    after = _anew(rows, before, 0, 2**bits - 1, asymmetric=given is not None)
    set_plain(file, node, 1, packed(after.integers, bits).reshape(held.shape))
    set_plain(file, node, 2, after.scales.reshape(scales.shape))
    if given is None and (after.zeros == 2.0 ** (bits - 1)).all():
        return
    offsets = after.zeros.reshape(columns, count)
    stored = packed(offsets, bits) if given is None or given.dtype == np.uint8 else offsets
    if given is not None:
        set_plain(file, node, 3, stored.reshape(given.shape))
    else:
        node.resize_inputs(max(len(node.inputs), 4))
        label = f"{node.name or node.inputs[1]}/zero_points"
        node.replace_input_with(3, file.constant(label, stored.reshape(-1), onnx_ir.DataType.UINT8))


def requantize_blocks(file: OnnxFile, node: onnx_ir.Node, array: Array) -> None:
    """Give a DequantizeLinear other numbers, in the blocks and the type that it has.

    Args:
        file: Of the node.
        node: Reads integers, scales and zero points as constants.
        array: Real numbers, as it gives them.

    Raises:
        NotEditableError: if one of them isn't constant. Nothing is changed then.
    """
    held, scales = constant_of(node.inputs[0]), constant_of(node.inputs[1])
    dtype = file.dtype(node.inputs[0])
    if held is None or scales is None or dtype is None or not dtype.is_integer():
        raise NotEditableError(f"{node.name} has no constant blocks of integers.")
    along, size = int(attribute(node, "axis", 1)) % held.ndim, int(attribute(node, "block_size", 0))
    given = constant_of(node.inputs[2]) if len(node.inputs) > 2 else None
    zeros = np.zeros(scales.shape) if given is None else given.astype(np.float64)

    def rows(numbers: Array) -> Values:
        turned = np.moveaxis(numbers.astype(np.float64), along, -1)
        missing = [(0, 0)] * (held.ndim - 1) + [(0, -turned.shape[-1] % size)]
        return np.asarray(np.pad(turned, missing).reshape(-1, size))

    def back(numbers: Values, shape: tuple[int, ...], width: int) -> Array:
        turned = (*shape[:along], *shape[along + 1 :])
        return np.moveaxis(numbers.reshape(*turned, width)[..., : shape[along]], -1, along)

    singles = [np.moveaxis(item, along, -1).reshape(-1, 1) for item in (scales.astype(np.float64), zeros)]
    before = _Blocks(rows(held), *singles)
    after = _anew(rows(array), before, *limits_of(dtype.numpy()), asymmetric=given is not None)
    if given is None and after.zeros.any():
        raise NotEditableError(f"{node.name} has no zero points.")
    count = scales.shape[along]
    set_plain(file, node, 0, back(after.integers, held.shape, count * size))
    set_plain(file, node, 1, back(after.scales, scales.shape, count))
    if given is not None:
        set_plain(file, node, 2, back(after.zeros, scales.shape, count).reshape(given.shape))


def _anew(rows: Values, before: _Blocks, least: int, most: int, *, asymmetric: bool) -> _Blocks:
    """Integers, scales and zero points of numbers: those of the file as far as they're right.

    Where other zero points make the integers right, only these are changed. Else each block takes the scale of its
    range, or of its largest number, which gets the smallest integer.

    Args:
        rows: Real numbers, [blocks, numbers].
        before: Of the file.
        least: Smallest integer.
        most: Largest.
        asymmetric: Whether blocks have zero points of their own.
    """
    safe = np.where(before.scales == 0, 1.0, before.scales)
    meant = np.clip(np.rint(np.median(before.integers - rows / safe, axis=1, keepdims=True)), least, most)
    steps = rows / safe + meant
    ends = (steps < least) | (steps > most)
    off = np.abs(steps - before.integers)
    if np.all(off <= np.where(ends, CUT_OFF, HALF_STEP)):
        return _Blocks(before.integers, before.scales, meant)
    if asymmetric:
        low = np.minimum(rows.min(axis=1, keepdims=True), 0.0)
        high = np.maximum(rows.max(axis=1, keepdims=True), 0.0)
        scales = (high - low) / (most - least)
        scales = np.where(scales > 0, scales, 1.0).astype(np.float32).astype(np.float64)
        zeros = np.clip(np.rint(least - low / scales), least, most)
    else:
        zeros = np.full((len(rows), 1), float((least + most + 1) // 2))
        peak = np.take_along_axis(rows, np.abs(rows).argmax(axis=1)[:, None], axis=1)
        scales = np.where(peak == 0, 1.0, peak / (least - zeros)).astype(np.float32).astype(np.float64)
    return _Blocks(np.clip(np.rint(rows / scales + zeros), least, most), scales, zeros)
