"""Turn a dataset into batches of named feeds for one model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from conrepair.ground.data.binding import Binding, Matching, bind_inputs, image_layout, matching, takes_stored
from conrepair.ground.data.pictures.byte_pictures import Preparation, channels_last, taken_apart, to_bytes, to_reals
from conrepair.ground.data.pictures.prepare import PreparedPhotos
from conrepair.ground.data.pictures.recipe import Recipe, apply_numeric
from conrepair.ground.data.sample_axes import (
    UNNAMED,
    axes_as_fed,
    batch_symbols,
    fixed_batch,
    resized,
    samples_first,
    shared_axes,
)
from conrepair.ground.data.stored_values import quantized
from conrepair.ground.data.symbolic_sizes import declaration
from conrepair.ground.data.synthetic import SyntheticRange, draw
from conrepair.ground.data.tensor_spec import Dimension, TensorSpec, numpy_dtype
from conrepair.ground.data.tensors import read_tensors
from conrepair.ground.runtime.errors import DataError
from conrepair.ground.runtime.words import percent

Feeds = dict[str, npt.NDArray[Any]]
_CUT = 1e-3  # of the values: outliers are cut off on purpose


@dataclass(frozen=True)
class DataReference:
    """A dataset as a plain value that another process can open.

    Attributes:
        kind: "photos", "tensors" or "synthetic".
        count: Number of samples.
        path: Of the prepared photos' folder, or of the tensor file.
        sha256: Of what is at `path`.
        samples: The arrays as the source model takes them; what's drawn, and how quantized inputs are stored.
        limits: For synthetic data.
        first: Samples that come before the others, by their places; the others follow in their order.
        prepared: What lies between them, where one model takes pictures as bytes and another as numbers.
    """

    kind: str
    count: int
    path: str = ""
    sha256: str = ""
    samples: tuple[TensorSpec, ...] = ()
    limits: SyntheticRange = field(default_factory=SyntheticRange)
    first: tuple[int, ...] = ()
    prepared: Preparation | None = None

    @property
    def order(self) -> tuple[int, ...]:
        """The places of the samples in the dataset."""
        return sample_order(self.first, self.count)


def sample_order(first: Sequence[int], count: int) -> tuple[int, ...]:
    """Places of so many samples, some of them first, the others in their order."""
    known = set(first)
    return (*first, *(place for place in range(count) if place not in known))


@dataclass(frozen=True)
class Batch:
    """Feeds for samples [start, start + valid), in a batch of `size`; rows behind `valid` only fill it up."""

    start: int
    valid: int
    size: int
    feeds: Feeds


class FeedSource(Protocol):
    """Samples of a dataset, fitted to one model.

    Attributes:
        count: Number of samples.
        axes: That the samples lie along in each of the model's inputs; none where each sample is a complete set of
            feeds, for a model whose inputs don't share the batch.
        matching: What is to be said of how it was fitted.
    """

    count: int
    axes: Mapping[str, int]
    matching: Matching

    def read(self, start: int, stop: int) -> Feeds:
        """Feeds for samples [start, stop), sample axis first."""


def open_feeds(reference: DataReference, inputs: Sequence[TensorSpec], recipe: Recipe | None) -> FeedSource:
    """Open a dataset for a model.

    Args:
        reference: The dataset.
        inputs: The model's inputs.
        recipe: How photos become tensors.

    Raises:
        DataError: if the data doesn't fit the model.
    """
    reader = _opened(reference, inputs, recipe)
    return Chosen(reader, reference.order) if reference.first else reader


def _opened(reference: DataReference, inputs: Sequence[TensorSpec], recipe: Recipe | None) -> FeedSource:
    if reference.kind == "photos":
        if recipe is None:
            raise DataError("photos need a recipe (preprocessing); set `recipe` of the model.")
        return _Photos(reference, image_input(inputs), recipe)
    if reference.prepared is not None and taken_apart(inputs, _held(reference, reference.prepared)) is not None:
        return _OtherwisePrepared(reference, reference.prepared, inputs[0])
    if reference.kind == "tensors":
        return _Tensors(reference, inputs)
    return _Synthetic(reference, inputs)


class Chosen:
    """Some samples of a dataset, in some order."""

    def __init__(self, reader: FeedSource, chosen: Sequence[int]) -> None:
        """Prepare to read chosen samples.

        Args:
            reader: The dataset.
            chosen: Places of the samples.
        """
        self._reader, self._chosen = reader, [place for place in chosen if place < reader.count]
        self.count, self.axes, self.matching = len(self._chosen), reader.axes, reader.matching

    def read(self, start: int, stop: int) -> Feeds:
        """Feeds for the chosen samples at these places."""
        rows = [self._reader.read(index, index + 1) for index in self._chosen[start:stop]]
        return {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}


def image_input(inputs: Sequence[TensorSpec]) -> TensorSpec:
    """The input that takes photos, with its layout.

    Raises:
        DataError: if the model doesn't take exactly one image.
    """
    listing = "; ".join(map(str, inputs))
    if len(inputs) != 1 or image_layout(inputs[0]) is None:
        raise DataError(
            "photos fit a model with one input of shape [N, C, H, W] or [N, H, W, C] with 1 or 3 channels; this "
            f"one takes {listing}. Give tensors (.npz) or synthetic data, or declare the input's layout."
        )
    return replace(inputs[0], layout=image_layout(inputs[0]))


def batches(source: FeedSource, inputs: Sequence[TensorSpec], batch_size: int) -> Iterator[Batch]:
    """Read batch after batch, one ahead of the consumer.

    A model whose batch is fixed gets batches of that size, the last one filled up with its last row.

    Args:
        source: From `open_feeds`.
        inputs: The model's inputs.
        batch_size: Wanted number of samples.
    """
    axes = source.axes
    fixed = fixed_batch(inputs, axes)
    size = fixed or batch_size if axes else 1

    def load(start: int) -> Batch:
        stop = min(start + size, source.count)
        feeds = source.read(start, stop)
        if not axes:
            feeds = {name: array[0] for name, array in feeds.items()}
        elif fixed:
            feeds = {name: _filled(array, size) for name, array in feeds.items()}
        feeds = {name: _placed(array, axes.get(name, 0)) for name, array in feeds.items()}
        return Batch(start, stop - start, fixed or stop - start, feeds)

    starts = range(0, source.count, size)
    with ThreadPoolExecutor(1, thread_name_prefix="feeds") as pool:
        ahead = [pool.submit(load, start) for start in starts[:1]]
        for start in [*starts[1:], None]:
            current = ahead.pop()
            batch = current.result()
            if start is not None:
                ahead.append(pool.submit(load, start))
            yield batch


OPEN_BATCHES = (1, 2, 3)
"""Numbers of samples that every model takes whose inputs leave that open."""


def first_batch(source: FeedSource, size: int) -> Feeds:
    """The first samples in a batch of any size, filled up with the last where there are fewer.

    Args:
        source: From `open_feeds`, whose inputs share the batch.
        size: Of the batch.
    """
    rows = source.read(0, min(size, source.count))
    return {name: _placed(_filled(array, size), source.axes[name]) for name, array in rows.items()}


def _placed(array: npt.NDArray[Any], axis: int) -> npt.NDArray[Any]:
    """Samples, which come first, where an input has them."""
    return np.ascontiguousarray(np.moveaxis(array, 0, axis)) if axis else array


def _rows(specs: Sequence[TensorSpec], axes: Mapping[str, int]) -> list[TensorSpec]:
    """The specs with any number of samples in front."""
    found = []
    for spec in specs:
        axis = axes.get(spec.name)
        shape = spec.shape if axis is None else ("batch", *spec.shape[:axis], *spec.shape[axis + 1 :])
        found.append(replace(spec, shape=shape))
    return found


def _bound(
    samples: Sequence[TensorSpec], made_for: Sequence[TensorSpec], inputs: Sequence[TensorSpec]
) -> tuple[tuple[Binding, ...], dict[str, int]]:
    """Which array feeds which input, and where that has its samples.

    Args:
        samples: With the samples in front, or complete feeds where what they are made for doesn't share the batch.
        made_for: Inputs of the model that they are made for.
        inputs: Of the model to feed.
    """
    axes = axes_as_fed(inputs, made_for)
    return bind_inputs(samples, _rows(inputs, axes)), axes


def _filled(array: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    missing = size - len(array)
    return np.concatenate([array, np.repeat(array[-1:], missing, axis=0)]) if missing else array


class _Photos:
    """Prepared photos through the numeric part of a recipe."""

    def __init__(self, reference: DataReference, spec: TensorSpec, recipe: Recipe) -> None:
        self.count = reference.count
        self.axes: Mapping[str, int] = {spec.name: 0}
        self.matching = Matching()
        self._rows = PreparedPhotos(Path(reference.path), reference.count)
        self._recipe = recipe
        self._spec = spec
        self._layout = recipe.layout or spec.layout or "NCHW"
        known = reference.samples[0] if len(reference.samples) == 1 else None
        self._stored = known if known is not None and takes_stored(known, spec) else None

    def read(self, start: int, stop: int) -> Feeds:
        rows = self._rows.read(start, stop)
        array = apply_numeric(self._recipe, rows, self._layout)  # type: ignore[arg-type]
        return {self._spec.name: _stored(array, self._stored)}


class _Tensors:
    """Arrays of a file."""

    def __init__(self, reference: DataReference, inputs: Sequence[TensorSpec]) -> None:
        arrays = read_tensors(Path(reference.path))
        named = "" not in arrays
        if not named:
            arrays = {inputs[0].name: arrays[""]}
        known = {spec.name: spec for spec in reference.samples}
        if len(known) == len(arrays) == 1:
            known = {name: replace(reference.samples[0], name=name) for name in arrays}
        arrays = samples_first(arrays, reference.samples or inputs, reference.count)
        axes = shared_axes(reference.samples or inputs)
        samples = [_described(name, array, inputs, known.get(name), whole=not axes) for name, array in arrays.items()]
        self.axes: Mapping[str, int]
        self._bindings, self.axes = _bound(samples, reference.samples or inputs, inputs)
        found = matching(self._bindings, samples, _rows(inputs, self.axes), named=named)
        fed = {binding.input: arrays[binding.sample] for binding in self._bindings}
        cut = filter(None, (_cut_off(fed[spec.name], spec) for spec in inputs if spec.name in fed))
        self.matching = Matching((*found.guesses, *cut), found.others)
        self._arrays: Mapping[str, npt.NDArray[Any]] = arrays
        self.count = min(reference.count, *map(len, arrays.values()))  # its shape alone may have told another one

    def read(self, start: int, stop: int) -> Feeds:
        return {
            binding.input: _fitted(self._arrays[binding.sample][start:stop], binding) for binding in self._bindings
        }


def _held(reference: DataReference, known: Preparation) -> tuple[TensorSpec]:
    """What the data are: bytes where they're drawn, else as the file has them."""
    if reference.kind == "synthetic":
        return (known.bytes,)
    [array, *_] = read_tensors(Path(reference.path)).values()
    return (known.reals if array.dtype.kind == "f" else known.bytes,)


class _OtherwisePrepared:
    """Bytes for a model that takes numbers made of them, or the bytes that numbers were made of."""

    def __init__(self, reference: DataReference, known: Preparation, spec: TensorSpec) -> None:
        [held] = _held(reference, known)
        samples = (held,) if reference.kind == "synthetic" else reference.samples
        plain = replace(reference, prepared=None, samples=samples)
        self._reader = _opened(plain, (channels_last(held),), None)
        self._held, self._recipe, self._spec = held, known.recipe, spec
        self.count, self.matching = self._reader.count, self._reader.matching
        self.axes: Mapping[str, int] = {spec.name: 0}

    def read(self, start: int, stop: int) -> Feeds:
        [rows] = self._reader.read(start, stop).values()
        made = to_reals if self._spec.is_float else to_bytes
        return {self._spec.name: made(self._recipe, rows, self._spec)}


class _Synthetic:
    """Random arrays, drawn sample by sample so that batch sizes don't matter."""

    def __init__(self, reference: DataReference, inputs: Sequence[TensorSpec]) -> None:
        self.count = reference.count
        self.matching = Matching()
        self._limits = reference.limits
        self._samples = {spec.name: spec for spec in reference.samples}
        axes = shared_axes(reference.samples)
        rows = _rows(reference.samples, axes) if axes else _of_one(reference.samples)
        self._shapes = {
            spec.name: _definite(known, spec.shape[1:] if axes else spec.shape)
            for known, spec in zip(reference.samples, rows, strict=True)
        }
        self.axes: Mapping[str, int]
        self._bindings, self.axes = _bound(rows, reference.samples, inputs)

    def read(self, start: int, stop: int) -> Feeds:
        return {
            binding.input: _fitted(self._draw(binding.sample, start, stop), binding) for binding in self._bindings
        }

    def _draw(self, name: str, start: int, stop: int) -> npt.NDArray[Any]:
        spec, shape, position = self._samples[name], self._shapes[name], list(self._samples).index(name)
        return np.stack([draw(spec, shape, self._limits, (position, index)) for index in range(start, stop)])


def _described(
    name: str, array: npt.NDArray[Any], inputs: Sequence[TensorSpec], known: TensorSpec | None, *, whole: bool
) -> TensorSpec:
    shape = array.shape[1:] if whole else ("batch", *array.shape[1:])
    if known is not None and known.quantization is not None and array.dtype.kind == "f":
        return TensorSpec(name, shape, known.dtype, known.quantization)
    quantization = None
    for spec in inputs:
        if spec.name == name and spec.dtype == array.dtype.name:
            quantization = spec.quantization  # the file holds what the input stores
    return TensorSpec(name, shape, array.dtype.name, quantization)


def _of_one(specs: Sequence[TensorSpec]) -> tuple[TensorSpec, ...]:
    """Specs whose batch, wherever it stands, is 1."""
    symbols = batch_symbols(specs) - {UNNAMED}

    def size(spec: TensorSpec, axis: int, samples: int | None) -> Dimension:
        known = spec.shape[axis]
        return 1 if isinstance(known, str) and (axis == samples or known in symbols) else known

    return resized(specs, size)


def _definite(spec: TensorSpec, shape: tuple[Dimension, ...]) -> tuple[int, ...]:
    """The shape of a sample, of which numbers are drawn."""
    if any(not isinstance(size, int) for size in shape):
        raise DataError(
            f"input {spec} has no definite shape to draw synthetic data for. Declare it: "
            f'"inputs": [{{"name": ..., "shape": [...]}}] (command line, for instance: {declaration(spec)}), '
            "or give data."
        )
    return tuple(int(size) for size in shape)


def _fitted(array: npt.NDArray[Any], binding: Binding) -> npt.NDArray[Any]:
    if binding.permutation is not None:
        array = np.ascontiguousarray(array.transpose(binding.permutation))
    return _stored(array, binding.stored)


def _cut_off(array: npt.NDArray[Any], spec: TensorSpec) -> str:
    """Which real numbers the integers of an input don't hold, in words; "" where they hold nearly all."""
    if spec.quantization is None or array.dtype.kind != "f":
        return ""
    limits, scale = np.iinfo(numpy_dtype(spec.dtype)), spec.quantization.scale
    low, high = (scale * (int(end) - spec.quantization.zero_point) for end in (limits.min, limits.max))
    share = float(np.mean((array < low - scale) | (array > high + scale)))
    words = f"{spec.name} is {spec.dtype} and holds {low:.4g} to {high:.4g}, its data {array.min():.4g} to"
    return f"{words} {array.max():.4g}: {percent(share)} of them are clipped" if share >= _CUT else ""


def _stored(array: npt.NDArray[Any], spec: TensorSpec | None) -> npt.NDArray[Any]:
    """Reals as integers that stand for them; what is stored already, and where nothing is asked for, as it is."""
    if spec is None or spec.quantization is None or array.dtype.kind != "f":
        return array
    return quantized(np.asarray(array, dtype=np.float32), spec.quantization, numpy_dtype(spec.dtype))


# Feeds to calibrate a quantization with: samples of a dataset, as the model takes them.


class CalibrationFeeds(Chosen):
    """Complete feeds by input name, in batches of one, or of the size that the model is fixed to.

    The samples are spread evenly over the dataset, as a folder of classes has one class after the other.

    Args:
        source: From `open_feeds`.
        inputs: The model's inputs.
        samples: How many; all, if the dataset has fewer.
    """

    def __init__(self, source: FeedSource, inputs: Sequence[TensorSpec], samples: int) -> None:
        count = min(samples, source.count)
        super().__init__(source, [index * source.count // count for index in range(count)])
        self._inputs = tuple(inputs)

    def __iter__(self) -> Iterator[Feeds]:
        """Read the samples; may be done more than once."""
        for batch in batches(self, self._inputs, 1):
            yield batch.feeds
