"""ONNX Runtime's operators whose weights are in two to eight bits, packed into bytes, with a scale for each block."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from conrepair.formats.onnx.read.call import OnnxCall
from conrepair.formats.onnx.read.session import PACKED_PRODUCT
from conrepair.ground.graph.layer_graph import Array, Parameter

_BYTE = 8
_PACKED = (2, 4, 8)  # bits of which a byte holds whole numbers
_COLUMNS = 64  # of a product's weights, which are taken at a time
_WHOLE = 2**16  # up to which numbers less integers of eight bits are exact in 32
_ORDER_OF_GROUPS = 4  # input of a product: which block each row is in, where they aren't neighbours


def unpacked(array: Array, bits: int) -> npt.NDArray[np.uint8]:
    """The integers that bytes hold along the last axis, the lowest bits first.

    Args:
        array: Bytes, [..., bytes].
        bits: Of an integer, 2, 4 or 8.
    """
    held, each = array.astype(np.uint8, copy=False), _BYTE // bits
    found = np.empty((*held.shape[:-1], held.shape[-1] * each), np.uint8)
    for place in range(each):  # long runs, where an axis of as few would make many short ones
        found[..., place::each] = held >> np.uint8(place * bits) & np.uint8(2**bits - 1)
    return found


def packed(integers: Array, bits: int) -> npt.NDArray[np.uint8]:
    """Bytes that hold integers along the last axis: the opposite of `unpacked`, filled up with zeros."""
    each = _BYTE // bits
    missing = -integers.shape[-1] % each
    whole = np.pad(integers.astype(np.uint8), [(0, 0)] * (integers.ndim - 1) + [(0, missing)])
    parts = whole.reshape(*whole.shape[:-1], -1, each) << np.arange(0, _BYTE, bits, dtype=np.uint8)
    return np.asarray(np.bitwise_or.reduce(parts, axis=-1), np.uint8)


def zero_points(given: Array | None, bits: int, shape: tuple[int, ...], usual: int) -> Array:
    """Zero points of blocks, which are packed like the numbers, or of the scales' type.

    Args:
        given: As the file has them; None where it has none.
        bits: Of an integer.
        shape: One for each block.
        usual: Where none are given.
    """
    if given is None:
        return np.broadcast_to(np.float64(usual), shape)
    if given.dtype == np.uint8 and bits < _BYTE:
        given = unpacked(given.reshape(*shape[:-1], -1), bits)[..., : shape[-1]]
    return given.reshape(shape).astype(np.float64)


def _product(call: OnnxCall) -> None:
    """A, the packed integers of B [N, blocks, bytes], their scales and zero points, a bias."""
    bits, size = int(call.attribute("bits", 4)), int(call.attribute("block_size"))
    rows, columns = int(call.attribute("K")), int(call.attribute("N"))
    constant = all(call.is_constant(place) for place in (1, 2)) and not call.varies(3)
    if bits not in _PACKED or not constant or call.given(_ORDER_OF_GROUPS):
        return
    blocks = -(-rows // size)

    def load() -> Array:
        held, scales = (_numbers(call, place).reshape(columns, blocks, -1) for place in (1, 2))
        zeros = zero_points(call.numbers(3), bits, (columns, blocks), 2 ** (bits - 1))[..., None]
        # What's less than whole from integers is exact in 32 bits, so that both round once, and to the same.
        kind = np.float32 if np.all((np.rint(zeros) == zeros) & (np.abs(zeros) < _WHOLE)) else np.float64
        real = np.empty((rows, columns), np.float32)
        for begin in range(0, columns, _COLUMNS):
            some = slice(begin, begin + _COLUMNS)
            steps = unpacked(held[some], bits)[..., :size].astype(kind) - zeros[some].astype(kind)
            real[:, some] = (steps * scales[some].astype(kind)).reshape(len(steps), -1)[:, :rows].T
        return real

    steps = _numbers(call, 2).reshape(columns, blocks).T.reshape(-1)
    weight = call.in_blocks(1, load, (rows, columns), bits, steps, (size, 1))
    bias = call.parameters({5: "bias"})
    call.emit((call.input(0),), parameters={"weight": weight, **bias}, operator="MatMul")


def _gather(call: OnnxCall) -> None:
    """A table in integers, indices, scales, zero points."""
    axis, along = int(call.attribute("gather_axis", 0)), int(call.attribute("quantize_axis", 1))
    size, kind = int(call.attribute("block_size", 128)), call.dtype(0)
    if not call.is_constant(0) or not call.is_constant(2) or call.varies(3) or kind is None or not kind.is_integer():
        return
    stored, scales = call.shape(0) or (), _numbers(call, 2)
    in_bytes = kind.name == "UINT8"
    bits = int(call.attribute("bits", 4)) if in_bytes else kind.bitwidth
    shape = (*stored[:-1], stored[-1] * _BYTE // bits) if in_bytes else stored
    along %= len(shape)

    def load() -> Array:
        held = _numbers(call, 0)
        integers = unpacked(held, bits) if in_bytes and bits < _BYTE else held
        zeros = zero_points(
            call.numbers(3), bits if in_bytes else _BYTE, scales.shape, 2 ** (bits - 1) if in_bytes else 0
        )
        factor, offset = (np.repeat(item, size, along).take(range(shape[along]), along) for item in (scales, zeros))
        return np.asarray((integers.astype(np.float64) - offset) * factor, np.float32)

    blocks = tuple(size if place == along else 1 for place in range(len(shape)))
    table = call.in_blocks(0, load, shape, bits, scales.reshape(-1), blocks)
    parameters: dict[str, Parameter] = {"table": table, **call.parameters({1: "indices"})}
    call.emit(call.varying((1,)), {"axis": axis % len(shape)}, parameters, operator="Gather")


def _numbers(call: OnnxCall, index: int) -> Array:
    found = call.numbers(index)
    if found is None:
        raise ValueError(f"input {index} of {call.name} isn't constant")
    return found


RULES: Mapping[str, Callable[[OnnxCall], None]] = {
    PACKED_PRODUCT: _product,
    "com.microsoft.GatherBlockQuantized": _gather,
}
