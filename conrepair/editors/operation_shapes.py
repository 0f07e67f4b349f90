"""Sizes of what an operation gives, from those of its operands."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from conrepair.editors.lowering_windows import window_of
from conrepair.editors.operation import CHOICE, Operation, Sizes

__all__ = ["shape_of_result", "slices_of"]

_FAR = 1 << 20  # behind any axis' begin
_FIRST = {"Softmax", "LogSoftmax", "LayerNormalization", "BatchNormalization", "InstanceNormalization", "Cast"}


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
    rule = _RULES.get(operation.operator)
    if rule is not None:
        return rule(operation, known)
    if operation.operator in _FIRST:
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


def _reduced(operation: Operation, shapes: Sequence[Sizes]) -> Sizes:
    rank, axes = len(shapes[0]), operation.attributes.get("axes")
    gone = {int(axis) % rank for axis in axes} if isinstance(axes, tuple) else set(range(rank))
    if operation.attributes.get("keepdims", True):
        return tuple(1 if axis in gone else size for axis, size in enumerate(shapes[0]))
    return tuple(size for axis, size in enumerate(shapes[0]) if axis not in gone)


def _concatenated(operation: Operation, shapes: Sequence[Sizes]) -> Sizes:
    axis = operation.integer("axis") % len(shapes[0])
    sizes = [shape[axis] for shape in (*shapes, *(array.shape for array in operation.parameters.values()))]
    whole = None if any(size is None for size in sizes) else sum(size or 0 for size in sizes)
    return (*shapes[0][:axis], whole, *shapes[0][axis + 1 :])


def _stacked(operation: Operation, shapes: Sequence[Sizes]) -> Sizes:
    axis = operation.integer("axis") % (len(shapes[0]) + 1)
    return (*shapes[0][:axis], len(shapes), *shapes[0][axis:])


def _reshaped(operation: Operation, shapes: Sequence[Sizes]) -> Sizes:
    wanted = operation.attributes["shape"]
    sizes = [int(size) for size in wanted] if isinstance(wanted, tuple) else []
    before = shapes[0]
    if -1 not in sizes:
        return tuple(sizes)
    rest = -math.prod(sizes)
    left = (
        None if any(size is None for size in before) or not rest else math.prod(size or 0 for size in before) // rest
    )
    return tuple(left if size < 0 else size for size in sizes)


def _transposed(operation: Operation, shapes: Sequence[Sizes]) -> Sizes:
    perm = operation.attributes["perm"]
    return tuple(shapes[0][int(axis)] for axis in perm) if isinstance(perm, tuple) else shapes[0]


def _padded(operation: Operation, shapes: Sequence[Sizes]) -> Sizes:
    pads = operation.attributes["pads"]
    numbers = [int(size) for size in pads] if isinstance(pads, tuple) else [0] * 2 * len(shapes[0])
    half = len(numbers) // 2
    return tuple(
        None if size is None else size + numbers[axis] + numbers[half + axis] for axis, size in enumerate(shapes[0])
    )


def slices_of(operation: Operation, rank: int) -> list[slice]:
    """What a Slice takes of each axis.

    Args:
        operation: With `starts` and `ends`; where it says no axes, of the first ones.
        rank: Of its operand.
    """
    tables = [operation.attributes.get(name) for name in ("starts", "ends", "axes", "steps")]
    starts, ends, axes, steps = (
        [int(item) for item in table] if isinstance(table, tuple) else [] for table in tables
    )
    found = [slice(None)] * rank
    for place, (start, end) in enumerate(zip(starts, ends, strict=True)):
        axis = axes[place] if axes else place
        step = steps[place] if steps else 1
        # Backwards to the first one has no end that can be counted.
        found[axis] = slice(start, None if step < 0 and end < -_FAR else end, step)
    return found


def _sliced(operation: Operation, shapes: Sequence[Sizes]) -> Sizes:
    parts = slices_of(operation, len(shapes[0]))
    return tuple(
        size if part == slice(None) else None if size is None else len(range(size)[part])
        for size, part in zip(shapes[0], parts, strict=True)
    )


def _gathered(operation: Operation, shapes: Sequence[Sizes]) -> Sizes:
    table, indices = operation.parameters.get("table"), operation.parameters.get("indices")
    data = table.shape if table is not None else shapes[0]
    chosen = indices.shape if indices is not None else shapes[-1]
    axis = operation.integer("axis", 0) % len(data)
    return (*data[:axis], *chosen, *data[axis + 1 :])


_RULES: Mapping[str, Callable[[Operation, Sequence[Sizes]], Sizes | None]] = {
    "MatMul": _product,
    **dict.fromkeys(("Conv", "ConvTranspose", "MaxPool", "AveragePool"), _window),
    **dict.fromkeys(("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin"), _reduced),
    "Concat": _concatenated,
    "Stack": _stacked,
    "Reshape": _reshaped,
    "Transpose": _transposed,
    "Pad": _padded,
    "Gather": _gathered,
    "Slice": _sliced,
}
