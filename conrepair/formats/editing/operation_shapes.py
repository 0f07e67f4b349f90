"""Sizes of what an operation gives, from those of its operands."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from conrepair.formats.editing.lowering_windows import WINDOWS, window_of
from conrepair.formats.editing.operation import CHOICE, Operation, Sizes, what_is_read
from conrepair.ground.graph.operators import NORMALIZATIONS, OPERATORS, SOFTMAX
from conrepair.ground.operators.moves import cuts

_OPEN = (720, 1440)  # sizes in place of open ones: what's taken apart, or put together, can be so with these
_SLICED = (1, 1440)  # the same, of what may end before a slice does
_OF_FIRST = NORMALIZATIONS | SOFTMAX  # whose results are of their first operand's shape
_MOVING = {name for name, item in OPERATORS.items() if callable(item.value) and not item.operands}
_MOVING -= {*_OF_FIRST, "Einsum", "Expand", "Split"}


def shape_of_result(operation: Operation, shapes: Sequence[Sizes | None]) -> Sizes | None:
    """What shape an operation gives.

    Args:
        operation: Any.
        shapes: Of its operands; None for those that aren't known.

    Returns:
        Sizes, None for those that aren't known; None where not even their number is.
    """
    if any(shape is None for shape in shapes):
        return None
    known = [shape for shape in shapes if shape is not None]
    operator = operation.operator
    if operator == "MatMul":
        return _product(operation, known)
    if operator in WINDOWS:
        return _window(operation, known)
    if operator == "Reshape":
        return _reshaped(operation, known[0])
    if operator in _MOVING:
        return _computed(operation, known)
    if operator in _OF_FIRST:
        return known[0]
    constants = [operation.parameters[role].shape for role in ("operand", *CHOICE) if role in operation.parameters]
    return _broadcast([*known, *constants])


def _broadcast(shapes: Sequence[Sizes]) -> Sizes:
    rank = max(map(len, shapes), default=0)
    aligned = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    return tuple(next((size for size in sizes if size != 1), 1) for sizes in zip(*aligned, strict=True))


def _product(operation: Operation, shapes: Sequence[Sizes]) -> Sizes:
    weight, left = operation.parameters.get("weight"), operation.parameters.get("left")
    one = shapes[0] if left is None else left.shape
    two = weight.shape if weight is not None else shapes[-1]
    one = (*one[:-2], one[-1], one[-2]) if operation.attributes.get("transpose_a") else one
    two = (*two[:-2], two[-1], two[-2]) if operation.attributes.get("transpose_b") else two
    return (*_broadcast([one[:-2], two[:-2]]), one[-2], two[-1])


def _window(operation: Operation, shapes: Sequence[Sizes]) -> Sizes | None:
    if operation.operator == "ConvTranspose" or operation.attributes.get("auto_pad") not in {None, "NOTSET"}:
        return None
    weight = operation.parameters.get("weight")
    shape, last = shapes[0], operation.channels_last
    spatial = shape[1:-1] if last else shape[2:]
    kernel = window_of(operation, "kernel_shape", 1) if weight is None else weight.shape[2:]
    strides, dilations = window_of(operation, "strides", 1), window_of(operation, "dilations", 1)
    pads = window_of(operation, "pads", 0)
    sizes = tuple(
        None
        if size is None
        else _steps(size + pads[axis] + pads[len(kernel) + axis] - dilations[axis] * (kernel[axis] - 1) - 1,
                    strides[axis], bool(operation.attributes.get("ceil_mode")))
        for axis, size in enumerate(spatial)
    )  # fmt: skip
    channels = (shape[-1] if last else shape[1]) if weight is None else int(weight.shape[0])
    return (shape[0], *sizes, channels) if last else (shape[0], channels, *sizes)


def _steps(length: int, stride: int, ceil: bool) -> int:
    return (-(-length // stride) if ceil else length // stride) + 1


def _reshaped(operation: Operation, shape: Sizes) -> Sizes:
    sizes = operation.integers("shape")
    left, rest = None, -math.prod(sizes)
    if -1 in sizes and rest and None not in shape:
        left = math.prod(size or 0 for size in shape) // rest
    return tuple(left if size < 0 else size for size in sizes)


def slices_of(operation: Operation, rank: int) -> tuple[slice, ...]:
    """What a Slice takes of each axis of an operand of some rank."""
    starts, ends = operation.integers("starts"), operation.integers("ends")
    axes, steps = operation.integers("axes", range(len(starts))), operation.integers("steps", [1] * len(starts))
    return cuts(rank, starts=starts, ends=ends, axes=axes, steps=steps)


def _computed(operation: Operation, shapes: Sequence[Sizes]) -> Sizes | None:
    """Of what it makes of zeros, which take no room: open sizes are two different ones, and so is what follows."""
    found = []
    given = _SLICED if operation.operator == "Slice" else _OPEN
    for size in given[-1 - any(None in shape for shape in shapes) :]:
        sizes = [[size if known is None else known for known in shape] for shape in shapes]
        read = what_is_read(operation, [np.broadcast_to(np.float32(0), shape) for shape in sizes], np.asarray)
        try:
            with np.errstate(all="ignore"):
                found.append(np.shape(OPERATORS[operation.operator].compute(*read, **operation.attributes)))
        except (IndexError, TypeError, ValueError):
            return None  # it can't be so, or isn't said in full
    return tuple(one if one == two else None for one, two in zip(found[0], found[-1], strict=True))
