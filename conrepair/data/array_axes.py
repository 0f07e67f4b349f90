"""Where arrays that somebody gives have their samples: in front, or where the model's inputs have them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.data.binding import layout_permutation
from conrepair.data.sample_axes import sample_axes
from conrepair.data.tensor_spec import TensorSpec
from conrepair.runtime.errors import DataError

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
