"""Numbers for sizes that a file leaves open: within the range that it states, and related as it says."""

from __future__ import annotations

import ast
import itertools
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from conrepair.ground.data.binding import bind_inputs
from conrepair.ground.data.sample_axes import UNNAMED, batch_symbols, resized, sample_axes, with_differing_axes
from conrepair.ground.data.tensor_spec import Dimension, SizeRange, TensorSpec
from conrepair.ground.runtime.errors import DataError

Shapes = tuple[tuple[int, ...], ...]
"""Of each input, in order."""

_USUAL = 64  # large enough for the strides of usual networks
_SIZES = (_USUAL, 128, 32, 224, 16, 8, 256, 4, 512, 1024, 2, 1)
_SHORT = 16  # of sequences, half of it of what a cache holds
_HELD = re.compile(r"past|cache|held|kv")
_SORTS_FROM = 3  # axes: inputs of as many, of the same sizes, are of one sort, as a cache's; ids and masks have less
_BATCH = 2  # exporters treat sizes 0 and 1 as special; 2 stands for "any"
_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: lambda one, other: one // other if other else 0,  # no size, as one below 1 isn't
}
_LONGEST = 1000


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


def possible_sizes(inputs: Sequence[TensorSpec]) -> Iterator[tuple[TensorSpec, ...]]:
    """Inputs with numbers for all open sizes but the batch, the likeliest first; as they are, where none is open.

    What stands in the file as a sum or a product of other sizes is computed. Short lengths are tried first, half as
    long for what a cache holds, the sum for a total of both. Then one length as the sum of two others, as another, or
    as 1, for what the file doesn't say; then one size for all, as networks of pictures and sounds take it.

    Args:
        inputs: Of a network.
    """
    known = _with_own_symbols(with_stated_sizes(inputs))
    batch, ranges = _batch_symbols(known), _ranges(known)
    symbols = dict.fromkeys(symbol for spec in known for size in spec.shape for symbol in sorted(_symbols(size)))
    free = [symbol for symbol in symbols if symbol not in batch]
    pictured = {symbol for spec in known for symbol in _picture_symbols(spec, batch)}
    seen = set()
    for guess in _guesses(free, pictured):
        found = sized(
            known, {symbol: _within(size, ranges.get(symbol, SizeRange(symbol))) for symbol, size in guess.items()}
        )
        shapes = tuple(
            tuple(new if isinstance(new, int) else own for own, new in zip(spec.shape, one.shape, strict=True))
            for spec, one in zip(inputs, found, strict=True)
        )
        if shapes not in seen and all(size > 0 for shape in shapes for size in shape if isinstance(size, int)):
            seen.add(shapes)
            yield tuple(replace(spec, shape=shape) for spec, shape in zip(inputs, shapes, strict=True))


def _guesses(free: Sequence[str], pictured: set[str]) -> Iterator[dict[str, int]]:
    """Numbers for symbols, the likeliest first."""
    held = [symbol for symbol in free if _HELD.search(symbol.lower())]
    totals = [symbol for symbol in free if "total" in symbol.lower()]
    lengths = [symbol for symbol in free if symbol not in totals and symbol not in pictured]
    first = {symbol: _USUAL if symbol in pictured else _SHORT // 2 if symbol in held else _SHORT for symbol in free}
    # Odd beside even: what is rounded up, which end is padded, and what was only right for the size of an example.
    odd = {*lengths} - {*held} | {*[symbol for symbol in free if symbol in pictured][1::2]}
    for number in (1, 0):
        shifted = {symbol: size + number * (symbol in odd) for symbol, size in first.items()}
        yield shifted | dict.fromkeys(totals, sum(dict.fromkeys(shifted[symbol] for symbol in lengths)))
    for symbol in [*totals, *lengths]:
        others = [first[other] for other in lengths if other != symbol]
        sums = [one + two for one, two in itertools.combinations(others, 2)]
        for number in dict.fromkeys([*sums, *others, 1]):
            yield first | {symbol: number}
    for size in _SIZES:
        yield dict.fromkeys(free, size)


def _with_own_symbols(inputs: Sequence[TensorSpec]) -> tuple[TensorSpec, ...]:
    """Inputs each of whose open sizes has a symbol; those without a name one for each sort of input, and axis."""

    def symbol(spec: TensorSpec, axis: int, samples: int | None) -> Dimension:
        if spec.shape[axis] != UNNAMED:
            return spec.shape[axis]
        if axis == samples:
            return f"{UNNAMED} batch"
        sort = spec.name if len(spec.shape) < _SORTS_FROM else spec.shape
        return f"{UNNAMED} {axis} of {spec.dtype} {sort}"

    return resized(inputs, symbol)


def _picture_symbols(spec: TensorSpec, batch: set[str]) -> set[str]:
    """Those of the height and the width of an input, as far as it may have such."""
    found = {symbol for size in spec.shape for symbol in _symbols(size)} - batch
    return found if len(spec.shape) > _SORTS_FROM and len(found) > 1 and spec.stands_for_reals else set()


def with_stated_sizes(inputs: Sequence[TensorSpec]) -> tuple[TensorSpec, ...]:
    """Inputs with a number for each open size that the file bounds; the others, and the batch, stay open.

    Args:
        inputs: Of a network.
    """
    bounded = {item.symbol for spec in inputs for item in spec.ranges if item.high is not None}
    sizes = _sizes(inputs, _USUAL)
    return sized(inputs, {symbol: sizes[symbol] for symbol in bounded & sizes.keys() - _batch_symbols(inputs)})


def with_declared_sizes(inputs: Sequence[TensorSpec], declared: Sequence[TensorSpec]) -> tuple[TensorSpec, ...]:
    """Inputs whose symbolic sizes, but for the batch, are set to what is declared in the same place.

    For trying a model out: names may differ, and what doesn't fit is left as it is.

    Args:
        inputs: As the file says.
        declared: In order; maybe of the model that this one was converted from.
    """
    if len(inputs) != len(declared) or any(
        len(spec.shape) != len(other.shape) for spec, other in zip(inputs, declared, strict=True)
    ):
        return tuple(inputs)
    return _filled(inputs, [other.shape for other in declared])


def with_sizes_of(inputs: Sequence[TensorSpec], others: Sequence[TensorSpec]) -> tuple[TensorSpec, ...]:
    """Inputs with the sizes that another model has where their own are open; the batch stays.

    Where theirs are numbers, and the other's names say where the samples lie, they lie there in theirs.

    Args:
        inputs: Of a model.
        others: Of one that takes the same, maybe in another layout.
    """
    try:
        bindings = bind_inputs(inputs, others)
    except DataError:
        return with_differing_axes(inputs, others)
    by_name = {spec.name: spec for spec in others}
    axes = dict(zip(by_name, sample_axes(others), strict=True))
    shapes: dict[str, list[Dimension]] = {}
    samples: dict[str, int | None] = {}
    for binding in bindings:
        other = by_name[binding.input]
        order = binding.permutation or range(len(other.shape))
        turned = dict(zip(order, other.shape, strict=True))
        shapes[binding.sample] = [turned[axis] for axis in range(len(turned))]
        axis = axes[binding.input]
        samples[binding.sample] = None if axis is None else order[axis]
    found = _filled(inputs, [shapes.get(spec.name, ()) for spec in inputs])
    if batch_symbols(inputs) or not batch_symbols(others) or None in samples.values():
        return found
    return tuple(replace(spec, sample_axis=samples.get(spec.name, spec.sample_axis)) for spec in found)


def _filled(inputs: Sequence[TensorSpec], shapes: Sequence[Sequence[Dimension]]) -> tuple[TensorSpec, ...]:
    """Inputs with numbers of shapes where their own sizes are open, but for the batch."""
    return tuple(
        replace(
            spec,
            shape=tuple(
                wanted if axis != samples and isinstance(size, str) and isinstance(wanted, int) else size
                for axis, (size, wanted) in enumerate(zip(spec.shape, shape or spec.shape, strict=True))
            ),
        )
        for spec, shape, samples in zip(inputs, shapes, sample_axes(inputs), strict=True)
    )


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
        str(size) if axis in sample_axes([spec]) and not isinstance(size, int) else str(_evaluated(size, sizes))
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


def _batch_symbols(inputs: Sequence[TensorSpec]) -> set[str]:
    return {symbol for size in batch_symbols(inputs) for symbol in _symbols(size)}


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
    """A size as an expression of sums and products; None where it's just a name, as what nobody would write is."""
    try:
        tree = ast.parse(text.strip() if len(text) <= _LONGEST else "", mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
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
