"""What a backend computes on the way: inner tensors of a model as it runs there.

A runtime gives its tensors by their names, or they're marked as outputs of an ONNX file. A runtime that joins
operators doesn't where a tensor between them is an output, so its error may be gone as soon as that is watched:
tensors that hide it so aren't marked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import onnx
from onnx.external_data_helper import load_external_data_for_model

from conrepair.diagnosis.localization.run.fed_model import FedModel, RunBy
from conrepair.diagnosis.localization.run.opening import OpenedNetwork
from conrepair.formats.backends.all_backends import backend
from conrepair.formats.models.model import Model
from conrepair.formats.networks.network import Network
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.metrics.running_error import error_of
from conrepair.ground.runtime.errors import InferenceError, ModelLoadError
from conrepair.verdicts.judging.arithmetic import arithmetic_of
from conrepair.verdicts.judging.numbers import LARGEST_NOISE

_Run = Callable[[Mapping[str, Array]], Mapping[str, Array]]
_MOST = 48  # times that a runtime loads a model to find which tensors hide an error
_PART = 0.5  # of an error that is still there where it's the same error
_LEAST, _UNITS = 1e-3 * LARGEST_NOISE, 16.0  # relative L2 of an error that's worth looking for; in a backend's units
_LARGE = 2**31  # bytes that no protobuf holds


def watched(
    subject: FedModel, opened: OpenedNetwork, batches: Sequence[Mapping[str, Array]], folder: Path
) -> tuple[list[dict[str, Array]], tuple[str, ...]]:
    """Run a model on its backend, and keep what it gives on the way.

    Args:
        subject: The model, with its backend.
        opened: The same in its own framework.
        batches: Feeds, by the graph's tensors.
        folder: For files; the caller removes it.

    Returns:
        Tensors of each batch by the graph's names, outputs among them; and those that hide the backend's error.

    Raises:
        ModelLoadError: if the backend can't be watched.
    """
    network, on = opened.network, subject.on
    if on is None:
        raise ValueError(f"{subject.model.path} has no backend to be watched on")
    seen = backend(on.name).observed(subject.model, on.options)
    if seen is not None:
        named = {tensor: name for name, tensor in opened.input_tensors.items()}
        told = (seen({named[tensor]: array for tensor, array in feeds.items()}) for feeds in batches)
        return [_with_samples(arrays, batch) for arrays, batch in zip(told, batches, strict=True)], ()
    marking = _Marking(subject.model, on, network, folder, batches[0])
    marks = marking.marks()
    run = marking.loaded(marks)
    found = [_with_samples(run(feeds), feeds) for feeds in batches]
    return found, tuple(name for name in marking.names if name not in marks)


def _with_samples(arrays: Mapping[str, Array], feeds: Mapping[str, Array]) -> dict[str, Array]:
    """Those that have as many rows as what was fed."""
    sizes = {len(array) for array in feeds.values()}
    return {name: array for name, array in arrays.items() if array.shape[:1] and len(array) in sizes}


class _Marking:
    """A model whose tensors are made outputs.

    Attributes:
        names: Tensors that can be.
    """

    def __init__(self, model: Model, on: RunBy, network: Network, folder: Path, feeds: Mapping[str, Array]) -> None:
        self._model, self._on, self._network, self._folder, self._feeds = model, on, network, folder, feeds
        self._least = max(_LEAST, _UNITS * arithmetic_of(backend(on.name).arithmetic(on.options)).unit)
        self._loads, self._outputs = 0, list(dict.fromkeys(network.output_names.values()))
        self._last: tuple[list[str], _Run] | None = None
        tensors, size = network.graph.tensors, len(next(iter(feeds.values())))
        self.names = [
            name
            for node in network.graph.nodes
            for name in node.outputs
            if name not in self._outputs and (tensor := tensors[name]).observable and tensor.quantization is None
            if tensor.dtype != "str" and tensor.shape and tensor.shape[0] == size
        ]

    def marks(self) -> list[str]:
        """As many as leave the backend's error what it is."""
        right = self._network.segment(self._network.graph.inputs, self._outputs).run(self._feeds)
        plain = self.loaded(())(self._feeds)
        far = self._apart(right, plain)

        def shows(names: Sequence[str]) -> bool:
            try:
                found = self.loaded(names)(self._feeds)
                return far <= self._least or self._apart(plain, found) <= _PART * far
            except (ModelLoadError, InferenceError):  # it takes the model, and not with these outputs
                return False

        def grown(kept: list[str], more: list[str]) -> list[str]:
            if self._loads >= _MOST or not more or shows([*kept, *more]):
                return kept if self._loads >= _MOST else [*kept, *more]
            if len(more) == 1:
                return kept
            half = len(more) // 2
            return grown(grown(kept, more[:half]), more[half:])

        return grown([], self.names)

    def _apart(self, ours: Mapping[str, Array], theirs: Mapping[str, Array]) -> float:
        errors = [error_of(ours[name], theirs[name].astype(ours[name].dtype)) for name in self._outputs]
        return max(error if error == error else float("inf") for error in errors)

    def loaded(self, marks: Sequence[str]) -> _Run:
        """The model as the backend runs it, with more outputs.

        Raises:
            ModelLoadError: if it can't be written as ONNX, or the backend doesn't take it.
        """
        if self._last is not None and self._last[0] == list(marks):
            return self._last[1]
        on, tensors = self._on, self._network.graph.tensors
        piece = self._network.as_onnx(tuple(self._network.graph.inputs), [*self._outputs, *marks])
        if piece is None:
            raise ModelLoadError(f"{self._model.path} can't be written as ONNX with more outputs")
        load_external_data_for_model(piece.model, str(self._model.origin.parent))
        for value in (*piece.model.graph.input, *piece.model.graph.output):
            for axis, size in zip(value.type.tensor_type.shape.dim, tensors[value.name].shape or (), strict=False):
                axis.dim_value = size
        self._loads += 1
        path = self._folder / f"watched-{self._loads}.onnx"
        self._folder.mkdir(parents=True, exist_ok=True)
        onnx.save(piece.model, str(path), save_as_external_data=piece.model.ByteSize() >= _LARGE)
        model = Model("onnx", str(path), hashlib.sha256(f"{self._model.sha256} {marks}".encode()).hexdigest())
        runnable = backend(on.name).load(model, on.options)
        self._last = [*marks], lambda feeds: runnable.run({name: feeds[name] for name in piece.feeds})
        return self._last[1]
