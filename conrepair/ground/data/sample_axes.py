"""Where the inputs of a model have their samples: along which axis of each, if they share one at all."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.ground.data.binding import layout_permutation
from conrepair.ground.data.tensor_spec import Dimension, TensorSpec
from conrepair.ground.runtime.errors import DataError

UNNAMED = "?"
"""An open size that the file has no name for: one of its own, wherever it stands."""

_BATCH = "batch"
_SHORT = {"n", "b", "bs", "bsz", "samples", "num_samples"}
_LENGTH = re.compile(r"seq|time|length|step|frame|past|cache|token|len\b")
_FIRST_TWO = 2  # axes that samples are looked for on where no name says it: sizes of pictures come behind

_Key = tuple[str, int]
"""A symbol, and of one without a name its axis."""


def sample_axes(inputs: Sequence[TensorSpec]) -> tuple[int | None, ...]:
    """The axis of each input along which its samples lie; None where it has none.

    What a spec says of itself counts first. Then the batch is the symbol that's called so; else the first axis,
    where all inputs may have it there; else the symbol that most inputs share. An input has its samples where
    that symbol stands.

    Args:
        inputs: Of one model.
    """
    return _axes_of(tuple(inputs))


@lru_cache(256)  # the same models are asked for wherever they're fed
def _axes_of(inputs: tuple[TensorSpec, ...]) -> tuple[int | None, ...]:
    found = _by_symbols(inputs)
    return tuple(
        axis if spec.sample_axis is None else spec.sample_axis for spec, axis in zip(inputs, found, strict=True)
    )


def _by_symbols(inputs: Sequence[TensorSpec]) -> tuple[int | None, ...]:
    keys = [[_key(size, axis) for axis, size in enumerate(spec.shape)] for spec in inputs]
    fronts = [spec.shape[0] if spec.shape else None for spec in inputs]
    chosen = _called_so(keys)
    if chosen is None:
        lengths = [isinstance(size, str) and _is_length(size) for size in fronts]
        if None not in fronts and (len(set(fronts)) == 1 or all(isinstance(size, str) for size in fronts)):
            chosen = _most_shared(keys) if any(lengths) else None
            if chosen is None:
                return (0,) * len(inputs)
        else:
            chosen = _most_shared(keys)
    if chosen is None:
        return (None,) * len(inputs)
    elsewhere = {key for item in keys for key in item[1:]}
    in_front = all(chosen not in item[1:] for item in keys)
    return tuple(
        item.index(chosen) if chosen in item else (0 if in_front and item and _is_free(item[0], elsewhere) else None)
        for item in keys
    )


def has_batch(inputs: Sequence[TensorSpec]) -> bool:
    """Whether every input has samples, so that several fit into one run."""
    return None not in sample_axes(inputs)


def fixed_batch(inputs: Sequence[TensorSpec], axes: Mapping[str, int]) -> int | None:
    """How many samples a model always takes; None where that's open, or differs between its inputs.

    Args:
        inputs: Of the model.
        axes: Of their samples.
    """
    sizes = {spec.shape[axes[spec.name]] for spec in inputs if spec.name in axes}
    size = next(iter(sizes), None)
    return size if len(sizes) == 1 and isinstance(size, int) else None


def any_batch(inputs: Sequence[TensorSpec]) -> tuple[TensorSpec, ...]:
    """Inputs with any number of samples, where they share an axis for them."""
    if not has_batch(inputs):
        return tuple(inputs)
    return resized(inputs, lambda spec, axis, samples: _BATCH if axis == samples else spec.shape[axis])


def resized(
    inputs: Sequence[TensorSpec], size: Callable[[TensorSpec, int, int | None], Dimension]
) -> tuple[TensorSpec, ...]:
    """Inputs with other sizes.

    Args:
        inputs: Of a model.
        size: The new one of an input, an axis of it, and the axis of its samples.
    """
    return tuple(
        replace(spec, shape=tuple(size(spec, axis, samples) for axis in range(len(spec.shape))))
        for spec, samples in zip(inputs, sample_axes(inputs), strict=True)
    )


def batch_symbols(inputs: Sequence[TensorSpec]) -> set[str]:
    """The open sizes that stand for the number of samples, as shapes call them."""
    pairs = zip(inputs, sample_axes(inputs), strict=True)
    return {size for spec, axis in pairs if axis is not None and isinstance(size := spec.shape[axis], str)}


def with_axes_of(inputs: Sequence[TensorSpec], others: Sequence[TensorSpec]) -> tuple[TensorSpec, ...]:
    """Inputs that have their samples where another model has them, unless their own symbols say it.

    Args:
        inputs: Of a model.
        others: Of one that takes the same, with as many axes each: by name, else in order.
    """
    named = dict(zip((spec.name for spec in others), zip(others, sample_axes(others), strict=True), strict=True))
    if batch_symbols(inputs) or len(inputs) != len(others):
        return tuple(inputs)
    found = [named.get(spec.name, named[other.name]) for spec, other in zip(inputs, others, strict=True)]
    if not all(_alike(spec, other, axis) for spec, (other, axis) in zip(inputs, found, strict=True)):
        return tuple(inputs)
    return tuple(replace(spec, sample_axis=axis) for spec, (_, axis) in zip(inputs, found, strict=True))


def with_differing_axes(inputs: Sequence[TensorSpec], others: Sequence[TensorSpec]) -> tuple[TensorSpec, ...]:
    """Inputs of fixed sizes that don't tell where samples are, as another model's do: it has another number of them.

    Args:
        inputs: Of a model.
        others: Of one that takes the same in this order.
    """
    if len(inputs) != len(others) or {*sample_axes(inputs), *sample_axes(others)} != {None}:
        return tuple(inputs)
    found, numbers = [], set()
    for one, two in zip(inputs, others, strict=True):
        pairs = list(zip(one.shape, two.shape, strict=False))
        differing = [axis for axis, (a, b) in enumerate(pairs) if a != b]
        if len(one.shape) != len(two.shape) or len(differing) != 1:
            return tuple(inputs)
        numbers.add(pairs[differing[0]])
        found.append(replace(one, sample_axis=differing[0]))
    return tuple(found) if len(numbers) == 1 else tuple(inputs)


def with_batch(inputs: Sequence[TensorSpec], axes: Mapping[str, int], size: int) -> tuple[TensorSpec, ...]:
    """Inputs that take so many samples.

    Args:
        inputs: That share the batch.
        axes: Of the samples in each.
        size: Of the batch.
    """
    found = []
    for spec in inputs:
        axis = axes[spec.name]
        shape = (*spec.shape[:axis], size, *spec.shape[axis + 1 :])
        found.append(replace(spec, shape=shape, sample_axis=axis))
    return tuple(found)


def shared_axes(inputs: Sequence[TensorSpec]) -> dict[str, int]:
    """That samples lie along in each input, by name; none where they don't share the batch.

    Args:
        inputs: Of a model.
    """
    axes = sample_axes(inputs)
    found = {spec.name: axis for spec, axis in zip(inputs, axes, strict=True) if axis is not None}
    return found if len(found) == len(axes) else {}


def axes_as_fed(inputs: Sequence[TensorSpec], made_for: Sequence[TensorSpec]) -> dict[str, int]:
    """That samples lie along in each input of a model that's fed another's data; none where these are complete feeds.

    Args:
        inputs: Of the model.
        made_for: Of the one that the data are made for; none where it's the same.
    """
    known = made_for or inputs
    return shared_axes(with_axes_of(inputs, known)) if shared_axes(known) else {}


class OutputAxes:
    """Where a model's outputs have their samples.

    Args:
        inputs: Of the model.
        outputs: Of the same; their shapes may name the batch.
        axes: That the samples lie along in each input, as it's fed.
    """

    def __init__(self, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], axes: Mapping[str, int]) -> None:
        shapes = {spec.name: spec.shape for spec in inputs}
        symbols = {shapes[name][axis] for name, axis in axes.items() if name in shapes} - {UNNAMED}
        symbols = {size for size in symbols if isinstance(size, str)}
        self._named = {
            spec.name: next((axis for axis, size in enumerate(spec.shape) if size in symbols), None)
            for spec in outputs
        }
        self._usual = Counter(axes.values()).most_common(1)[0][0] if axes else 0
        self._in_front = not any(axes.values())

    def of(self, name: str, shape: Sequence[int], size: int) -> int | None:
        """The axis of the samples; None where there's none of their number.

        Args:
            name: Of the output.
            shape: As it came.
            size: Of the batch.
        """
        places = [axis for axis, extent in enumerate(shape) if extent == size]
        named = self._named.get(name)
        wanted = [axis for axis in (named, self._usual) if axis in places]
        return next(iter(wanted or ([] if self._in_front else places)), None)

    def in_front(self, name: str, array: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
        """An output with its samples in front, where it has them.

        Args:
            name: Of the output.
            array: As it came.
            size: Of the batch.
        """
        axis = self.of(name, array.shape, size)
        return np.moveaxis(array, axis, 0) if axis else array


def _alike(one: TensorSpec, two: TensorSpec, axis: int | None) -> bool:
    """Whether two inputs have as many axes, of the same sizes but for the samples'."""
    pairs = list(zip(one.shape, two.shape, strict=False))
    return len(one.shape) == len(two.shape) and all(
        a == b or isinstance(a, str) or isinstance(b, str) for place, (a, b) in enumerate(pairs) if place != axis
    )


def _is_length(symbol: str) -> bool:
    return bool(_LENGTH.search(symbol.lower()))


def _is_free(key: _Key | None, elsewhere: set[_Key | None]) -> bool:
    """Whether a symbol in front may be another name of the batch."""
    return key is not None and key not in elsewhere and not _is_length(key[0])


def _key(size: Dimension, axis: int) -> _Key | None:
    if isinstance(size, int):
        return None
    return (size, axis if size == UNNAMED else -1)


def _called_so(keys: Sequence[Sequence[_Key | None]]) -> _Key | None:
    """The symbol whose name says that it's the batch; of several, the one in front of most inputs."""
    held = {key for item in keys for key in item if key is not None and key[0].isidentifier()}
    for named in (lambda name: _BATCH in name, _SHORT.__contains__):
        found = [key for key in held if named(key[0].lower())]
        if found:
            return max(found, key=lambda key: (_count(keys, key, 1), _count(keys, key), key))
    return None


def _most_shared(keys: Sequence[Sequence[_Key | None]]) -> _Key | None:
    """The symbol in most inputs that isn't called a length; of several, the one in front of most."""
    front = [item[:_FIRST_TWO] for item in keys]
    counts = Counter(key for item in front for key in set(item) if key is not None and not _is_length(key[0]))
    able = [key for key, count in counts.items() if count > 1 or len(keys) == 1 or _count(keys, key, 1)]
    places = [key for item in front for key in item]
    return max(able, key=lambda key: (counts[key], _count(keys, key, 1), -places.index(key)), default=None)


def _count(keys: Sequence[Sequence[_Key | None]], key: _Key, axes: int | None = None) -> int:
    return sum(key in item[:axes] for item in keys)


# Where arrays that somebody gives have their samples: in front, or where the model's inputs have them.


Array = npt.NDArray[Any]


def common_length(shapes: Mapping[str, Sequence[int]]) -> int | None:
    """How many samples arrays have, as far as their shapes alone tell; None where there's no such number.

    Args:
        shapes: By name.
    """
    listed = [tuple(shape) for shape in shapes.values()]
    # What has two axes or fewer has its samples in front, unless states of layers say that they're behind.
    within = 2 if any(len(shape) > 2 for shape in listed) else 1
    shared = [size for size in listed[0][:within] if all(size in shape[:within] for shape in listed)]
    return min(shared, key=lambda size: sum(shape.index(size) for shape in listed), default=None)


def samples_first(arrays: Mapping[str, Array], inputs: Sequence[TensorSpec], count: int) -> dict[str, Array]:
    """Arrays with their samples in front, at most so many.

    Args:
        arrays: By name.
        inputs: Of the model that they are made for.
        count: Of the samples.

    Raises:
        DataError: if they have no number of samples in common.
    """
    axes = _axes({name: array.shape for name, array in arrays.items()}, inputs)
    return {name: np.moveaxis(array, axes[name], 0)[:count] for name, array in arrays.items()}


def _axes(shapes: Mapping[str, tuple[int, ...]], inputs: Sequence[TensorSpec]) -> dict[str, int]:
    """The axis of each array, those in front as far as possible."""
    own = sample_axes(inputs)
    known = {spec.name: (spec, None if None in own else axis) for spec, axis in zip(inputs, own, strict=True)}
    if len(shapes) == len(inputs) == 1:
        known = dict.fromkeys(shapes, next(iter(known.values())))
    options = [_options(shape, *known.get(name, (None, None))) for name, shape in shapes.items()]
    for wanted in options, [(0, *found) for found in options]:  # that one doesn't fit at all is said by its input
        for axes in sorted(itertools.islice(itertools.product(*wanted), 1 << 12), key=sum):
            if len({shape[axis] for shape, axis in zip(shapes.values(), axes, strict=True)}) == 1:
                return dict(zip(shapes, axes, strict=True))
    places = [f"{spec} along axis {axis}" for spec, axis in known.values() if axis]
    listing = ", ".join(f"{name}: {list(shape)}" for name, shape in shapes.items())
    along = f", or along that of the input ({places[0]})" if places else ""
    raise DataError(
        f"arrays must have the same number of samples, all along their first axis{along}; found {listing}."
        f"{_advice(shapes, inputs)}"
    )


def _advice(shapes: Mapping[str, tuple[int, ...]], inputs: Sequence[TensorSpec]) -> str:
    """How to declare where inputs have their samples that have the arrays' other sizes; "" for others."""
    found = []
    for spec in inputs:
        pairs = list(zip(shapes.get(spec.name, ()), spec.shape, strict=False))
        other = [axis for axis, (given, size) in enumerate(pairs) if isinstance(size, int) and given != size]
        if len(pairs) != len(spec.shape) or len(other) != 1:
            return ""
        sizes = ["batch" if axis == other[0] else str(size) for axis, size in enumerate(spec.shape)]
        found.append(f"--input {spec.name}={','.join(sizes)}")
    return f" Or declare where the inputs have their samples (command line: {' '.join(found)})."


def _options(shape: tuple[int, ...], spec: TensorSpec | None, axis: int | None) -> list[int]:
    """Axes that an array may have its samples along, so that a sample fits the input."""
    if spec is None:
        return [0]
    rest = spec.shape if axis is None else (*spec.shape[:axis], *spec.shape[axis + 1 :])

    def fits(place: int) -> bool:
        sample = (*shape[:place], *shape[place + 1 :])
        return layout_permutation(("batch", *sample), ("batch", *rest)) is not None

    return [place for place in dict.fromkeys((0, axis or 0)) if place < len(shape) and fits(place)] or [0]
