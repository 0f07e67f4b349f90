"""Numbers for sizes that a file leaves open: within the range that it states, and related as it says."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from conrepair.data.binding import bind_inputs
from conrepair.data.tensor_spec import Dimension, SizeRange, TensorSpec
from conrepair.runtime.errors import DataError

__all__ = ["Shapes", "declaration", "other_shapes", "sized", "trial_shapes", "with_sizes_of", "with_stated_sizes"]

Shapes = tuple[tuple[int, ...], ...]
"""Of each input, in order."""

_USUAL = 64  # large enough for the strides of usual networks
_SIZES = (_USUAL, 128, 32, 224, 16, 8, 256, 4, 512, 1024, 2, 1)
_BATCH = 2  # exporters treat sizes 0 and 1 as special; 2 stands for "any"
_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def trial_shapes(inputs: Sequence[TensorSpec]) -> Iterator[Shapes]:
    """Shapes that a network may take, the likeliest first.

    Args:
        inputs: Of the network.

    Returns:
        Each once; one where nothing is open.
    """
    seen = set()
    for size in _SIZES:
        shapes = _shapes(inputs, _sizes(inputs, size))
        if shapes not in seen:
            seen.add(shapes)
            yield shapes


def other_shapes(inputs: Sequence[TensorSpec], known: Shapes) -> Iterator[Shapes]:
    """Shapes in which everything that's open has another size than in those that a network takes, where it can.

    Args:
        inputs: Of the network.
        known: That it takes.

    Returns:
        The likeliest first; in the last ones only the batch is another.
    """
    ranges, batch = _ranges(inputs), _batch_symbols(inputs)
    taken = _taken(inputs, known)
    others = {symbol: _others(size, ranges.get(symbol)) for symbol, size in taken.items()}
    front = {symbol: others.pop(symbol)[0] for symbol in batch}
    for place in range(max(map(len, others.values()), default=0)):
        sizes = {symbol: found[min(place, len(found) - 1)] for symbol, found in others.items()}
        yield _shapes(inputs, sizes | front)
    yield _shapes(inputs, taken | front)


def with_stated_sizes(inputs: Sequence[TensorSpec]) -> tuple[TensorSpec, ...]:
    """Inputs with a number for each open size that the file bounds; the others, and the batch, stay open.

    Args:
        inputs: Of a network.
    """
    bounded = {item.symbol for spec in inputs for item in spec.ranges if item.high is not None}
    sizes = _sizes(inputs, _USUAL)
    return sized(inputs, {symbol: sizes[symbol] for symbol in bounded & sizes.keys() - _batch_symbols(inputs)})


def with_sizes_of(inputs: Sequence[TensorSpec], others: Sequence[TensorSpec]) -> tuple[TensorSpec, ...]:
    """Inputs with the sizes that another model has where their own are open; the batch stays.

    Args:
        inputs: Of a model.
        others: Of one that takes the same, maybe in another layout.
    """
    try:
        bindings = bind_inputs(inputs, others)
    except DataError:
        return tuple(inputs)
    by_name = {spec.name: spec for spec in others}
    shapes = {spec.name: list(spec.shape) for spec in inputs}
    for binding in bindings:
        shape, other = shapes[binding.sample], by_name[binding.input].shape
        for axis, size in zip(binding.permutation or range(len(shape)), other, strict=True):
            shape[axis] = size if axis and isinstance(shape[axis], str) and isinstance(size, int) else shape[axis]
    return tuple(replace(spec, shape=tuple(shapes[spec.name])) for spec in inputs)


def sized(inputs: Sequence[TensorSpec], sizes: Mapping[str, int]) -> tuple[TensorSpec, ...]:
    """Inputs with numbers in place of what follows from the sizes of some symbols.

    Args:
        inputs: Of a network.
        sizes: By symbol.
    """
    return tuple(
        replace(
            spec,
            shape=tuple(_evaluated(size, sizes) if _symbols(size) <= sizes.keys() else size for size in spec.shape),
        )
        for spec in inputs
    )


def declaration(spec: TensorSpec) -> str:
    """How an input would be declared on the command line, with sizes that it may have.

    Args:
        spec: Of the input.
    """
    sizes = _sizes([spec], 32 if len(spec.shape) < 4 else 224)
    shape = [
        str(size) if not axis and not isinstance(size, int) else str(_evaluated(size, sizes))
        for axis, size in enumerate(spec.shape)
    ]
    dtype = "" if spec.dtype == "float32" else f":{spec.dtype}"
    return f"--input {spec.name}={','.join(shape)}{dtype}"


def _sizes(inputs: Sequence[TensorSpec], size: int) -> dict[str, int]:
    """A number for each symbol: as wanted, or the nearest in its range."""
    ranges, front = _ranges(inputs), _batch_symbols(inputs)
    symbols = {symbol for spec in inputs for item in spec.shape for symbol in _symbols(item)}
    return {
        symbol: _within(_BATCH if symbol in front else size, ranges.get(symbol, SizeRange(symbol)))
        for symbol in symbols
    }


def _within(size: int, limits: SizeRange) -> int:
    size = max(size, limits.low)
    return size if limits.high is None else min(size, limits.high)


def _others(size: int, limits: SizeRange | None) -> list[int]:
    """Sizes beside a known one, those first that tell most; the known one where there is no other."""
    wanted = [2 * size, size // 2, size - 1, size + 1] if size > _BATCH else [size + 1, size - 1]
    found = [other for other in wanted if other > 0 and (limits is None or _within(other, limits) == other)]
    return found or [size]


def _ranges(inputs: Iterable[TensorSpec]) -> dict[str, SizeRange]:
    return {item.symbol: item for spec in inputs for item in spec.ranges}


def _batch_symbols(inputs: Iterable[TensorSpec]) -> set[str]:
    return {symbol for spec in inputs for symbol in _symbols(spec.shape[0] if spec.shape else 0)}


def _taken(inputs: Sequence[TensorSpec], shapes: Shapes) -> dict[str, int]:
    """What each symbol is in shapes that came from `trial_shapes`."""
    for size in _SIZES:
        sizes = _sizes(inputs, size)
        if _shapes(inputs, sizes) == shapes:
            return sizes
    raise ValueError(f"{shapes} are no shapes of {inputs}")


def _shapes(inputs: Sequence[TensorSpec], sizes: Mapping[str, int]) -> Shapes:
    return tuple(tuple(_evaluated(size, sizes) for size in spec.shape) for spec in inputs)


def _symbols(size: Dimension) -> set[str]:
    """The symbols that a size is computed from: of "2*half" and "past + new" their names, else its own."""
    if isinstance(size, int):
        return set()
    tree = _expression(size)
    return {size} if tree is None else {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _evaluated(size: Dimension, sizes: Mapping[str, int]) -> int:
    if isinstance(size, int):
        return size
    tree = _expression(size)
    return sizes[size] if tree is None else _value(tree, sizes)


def _expression(text: str) -> ast.expr | None:
    """A size as an expression of sums and products; None where it's just a name."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return None
    return tree if _is_arithmetic(tree) else None


def _is_arithmetic(tree: ast.expr) -> bool:
    if isinstance(tree, ast.BinOp):
        return type(tree.op) in _OPERATORS and _is_arithmetic(tree.left) and _is_arithmetic(tree.right)
    return isinstance(tree, ast.Name) or (isinstance(tree, ast.Constant) and isinstance(tree.value, int))


def _value(tree: ast.expr, sizes: Mapping[str, int]) -> int:
    if isinstance(tree, ast.BinOp):
        return _OPERATORS[type(tree.op)](_value(tree.left, sizes), _value(tree.right, sizes))
    if isinstance(tree, ast.Name):
        return sizes[tree.id]
    if isinstance(tree, ast.Constant) and isinstance(tree.value, int):
        return tree.value
    raise ValueError(f"{ast.unparse(tree)} is no size")
