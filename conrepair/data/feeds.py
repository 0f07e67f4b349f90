"""Turn a dataset into batches of named feeds for one model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from conrepair.data.binding import Binding, bind_inputs, image_layout, takes_stored
from conrepair.data.matching import Matching, matching
from conrepair.data.prepare import PreparedPhotos
from conrepair.data.recipe import Recipe, apply_numeric
from conrepair.data.stored_values import quantized
from conrepair.data.symbolic_sizes import declaration
from conrepair.data.synthetic import SyntheticRange, draw
from conrepair.data.tensor_spec import Dimension, TensorSpec, has_batch, numpy_dtype
from conrepair.data.tensors import read_tensors
from conrepair.runtime.errors import DataError

__all__ = [
    "Batch",
    "Chosen",
    "DataReference",
    "FeedSource",
    "Feeds",
    "batches",
    "image_input",
    "open_feeds",
    "sample_order",
]

Feeds = dict[str, npt.NDArray[Any]]


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
    """

    kind: str
    count: int
    path: str = ""
    sha256: str = ""
    samples: tuple[TensorSpec, ...] = ()
    limits: SyntheticRange = field(default_factory=SyntheticRange)
    first: tuple[int, ...] = ()

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
        whole: Each sample is a complete set of feeds, for a model whose inputs share no batch axis.
        matching: What is to be said of how it was fitted.
    """

    count: int
    whole: bool
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
    if reference.kind == "tensors":
        return _Tensors(reference, inputs)
    return _Synthetic(reference, inputs)


class Chosen:
    """Some samples of a dataset, in some order."""

    def __init__(self, reader: FeedSource, chosen: Sequence[int]) -> None:
        """Prepare.

        Args:
            reader: The dataset.
            chosen: Places of the samples.
        """
        self._reader, self._chosen = reader, chosen
        self.count, self.whole, self.matching = len(chosen), reader.whole, reader.matching

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
    fixed = None if source.whole else _common_batch(inputs)
    size = 1 if source.whole else fixed or batch_size

    def load(start: int) -> Batch:
        stop = min(start + size, source.count)
        feeds = source.read(start, stop)
        if source.whole:
            feeds = {name: array[0] for name, array in feeds.items()}
        elif fixed:
            feeds = {name: _filled(array, size) for name, array in feeds.items()}
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


def _common_batch(inputs: Sequence[TensorSpec]) -> int | None:
    """The fixed batch size; None when it's symbolic."""
    size = inputs[0].shape[0]
    return size if isinstance(size, int) else None


def _any_batch(specs: Sequence[TensorSpec], whole: bool) -> list[TensorSpec]:
    """The specs without the size of their batch, which `batches` takes care of."""
    return [spec if whole else replace(spec, shape=("batch", *spec.shape[1:])) for spec in specs]


def _filled(array: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    missing = size - len(array)
    return np.concatenate([array, np.repeat(array[-1:], missing, axis=0)]) if missing else array


class _Photos:
    """Prepared photos through the numeric part of a recipe."""

    def __init__(self, reference: DataReference, spec: TensorSpec, recipe: Recipe) -> None:
        self.count = reference.count
        self.whole = False
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
        arrays = read_tensors(Path(reference.path), reference.count)
        named = "" not in arrays
        if not named:
            arrays = {inputs[0].name: arrays[""]}
        self.whole = not has_batch(inputs)
        known = {spec.name: spec for spec in reference.samples}
        if len(known) == len(arrays) == 1:
            known = dict.fromkeys(arrays, reference.samples[0])
        samples = [
            _described(name, array, inputs, known.get(name), whole=self.whole) for name, array in arrays.items()
        ]
        wanted = _any_batch(inputs, self.whole)
        self._bindings = bind_inputs(samples, wanted)
        self.matching = matching(self._bindings, samples, wanted, named=named)
        self._arrays: Mapping[str, npt.NDArray[Any]] = arrays
        self.count = reference.count

    def read(self, start: int, stop: int) -> Feeds:
        return {
            binding.input: _fitted(self._arrays[binding.sample][start:stop], binding) for binding in self._bindings
        }


class _Synthetic:
    """Random arrays, drawn sample by sample so that batch sizes don't matter."""

    def __init__(self, reference: DataReference, inputs: Sequence[TensorSpec]) -> None:
        self.count = reference.count
        self.matching = Matching()
        self._limits = reference.limits
        self._samples = {spec.name: spec for spec in reference.samples}
        self.whole = not has_batch(reference.samples)
        batch = {str(spec.shape[0]) for spec in reference.samples if spec.shape}
        self._shapes = {
            spec.name: _whole_shape(spec, batch) if self.whole else _sample_shape(spec) for spec in reference.samples
        }
        self._bindings = bind_inputs(_any_batch(reference.samples, self.whole), _any_batch(inputs, self.whole))

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


def _sample_shape(spec: TensorSpec) -> tuple[int, ...]:
    """The shape of one sample of an input whose first axis is the batch."""
    return _definite(spec, spec.shape[1:])


def _whole_shape(spec: TensorSpec, batch: set[str]) -> tuple[int, ...]:
    """The shape of a complete feed, with the batch, wherever it stands, set to 1."""
    return _definite(spec, tuple(1 if size in batch and isinstance(size, str) else size for size in spec.shape))


def _definite(spec: TensorSpec, shape: tuple[Dimension, ...]) -> tuple[int, ...]:
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


def _stored(array: npt.NDArray[Any], spec: TensorSpec | None) -> npt.NDArray[Any]:
    """Reals as integers that stand for them; what is stored already, and where nothing is asked for, as it is."""
    if spec is None or spec.quantization is None or array.dtype.kind != "f":
        return array
    return quantized(np.asarray(array, dtype=np.float32), spec.quantization, numpy_dtype(spec.dtype))
