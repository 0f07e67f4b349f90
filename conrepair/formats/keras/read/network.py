"""Keras models as networks: Functional and Sequential ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from conrepair.formats.keras.load.framework import KerasRunnable
from conrepair.formats.keras.read.graph import Masks, layer_graph
from conrepair.formats.keras.read.steps import KerasStep, Steps, is_functional, steps_of
from conrepair.formats.models.model import Model
from conrepair.formats.models.runnable import loading
from conrepair.formats.networks.network import Network
from conrepair.formats.tensorflow.read.pieces import GraphPieces, lift_constants
from conrepair.formats.tensorflow.read.segment import PieceNetwork
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.graph.layer_graph import Tensor
from conrepair.ground.runtime.errors import ModelLoadError
from conrepair.ground.runtime.handing_on import Recent


def open_network(model: Model, inputs: Sequence[TensorSpec]) -> Network:
    """Open a Keras model.

    Args:
        model: Of this framework.
        inputs: The model's, with concrete sizes.

    Raises:
        ModelLoadError: if it can't be loaded, or is no graph of layers.
    """
    if keras.backend.backend() != "tensorflow":
        raise ModelLoadError(
            f"{model.path}: layers of Keras models are read with TensorFlow only. Set KERAS_BACKEND=tensorflow."
        )
    return _open(model, inputs, double=False)


def _open(model: Model, inputs: Sequence[TensorSpec], *, double: bool) -> KerasNetwork:
    runnable = KerasRunnable(model, double=double)
    if not is_functional(runnable.network):
        raise ModelLoadError(
            f"{model.path} is a subclassed model, whose code calls its layers. They are read by way of ONNX."
        )
    with loading(model, "a graph of Keras layers"):
        return KerasNetwork(model, runnable, inputs)


class KerasNetwork(PieceNetwork):
    """A Keras model, traced once by TensorFlow.

    Attributes:
        runnable: The loaded model, whose variables all pieces share.
    """

    def __init__(self, model: Model, runnable: KerasRunnable, inputs: Sequence[TensorSpec]) -> None:
        """Trace the model.

        Args:
            model: On disk.
            runnable: The loaded model.
            inputs: With concrete sizes.
        """
        steps = steps_of(runnable.network)
        sizes = {spec.name: spec for spec in inputs}
        given = [sizes[spec.name] for spec in runnable.inputs]
        self._model, self._inputs = model, inputs
        self.runnable = runnable
        traced = trace(steps, given, [spec.dtype for spec in runnable.inputs])
        graph, _ = layer_graph(steps, traced.tensors, traced.masks)
        super().__init__(graph, traced.pieces, traced.places)
        self.input_names = dict(zip((spec.name for spec in runnable.inputs), steps.inputs, strict=True))
        self.output_names = dict(zip((spec.name for spec in runnable.outputs), steps.outputs, strict=True))

    def second_opinion(self) -> KerasNetwork:
        """In float64; a small one is held for the next, as each candidate of a repair asks for it."""
        how = repr((self._model.bare, self._inputs))
        return _DOUBLE.of(Path(self._model.path), how, lambda: _open(self._model, self._inputs, double=True))


_DOUBLE: Recent[KerasNetwork] = Recent(64 << 20)


@dataclass(frozen=True)
class Trace:
    """A model computed once with symbols.

    Attributes:
        pieces: The graph.
        tensors: The model's tensors, and the masks that Keras hands on beside them.
        places: Where in the graph each tensor is; those that can't be observed are left out.
        masks: What calls depend on beside their arguments.
    """

    pieces: GraphPieces
    tensors: Mapping[str, Tensor]
    places: Mapping[str, str]
    masks: Masks


class _Recorder:
    """Runs the calls and gives each tensor an operator of its own.

    Layers may hand on what they get (Dropout does), so without it two tensors could be one and the same.
    """

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.tensors: dict[str, Tensor] = {}
        self.symbols: dict[str, Any] = {}
        self.masks: dict[str, str] = {}

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        values: dict[str, Any] = {}
        for name, symbol in zip(self.steps.inputs, inputs, strict=True):
            values[name] = self._known(name, symbol)
        for step in self.steps.calls:
            arguments, options = step.arguments(values)
            if "training" in getattr(step.operation, "_call_context_args", {}):
                options["training"] = False
            results = keras.tree.flatten(step.operation(*arguments, **options))
            for name, result in zip(step.outputs, results, strict=True):
                values[name] = self._marked(name, result)
        return [symbol for symbol in self.symbols.values() if symbol is not None]

    def _marked(self, name: str, result: Any) -> Any:
        if not isinstance(result, tf.Tensor):
            self.tensors[name] = Tensor(name, None, "", observable=False)
            return result
        own = self._known(name, tf.identity(result))
        mask = keras.src.backend.get_keras_mask(result)
        if mask is None:
            return own
        if not any(mask is symbol for symbol in self.symbols.values()):
            self.masks[name] = f"{name}:mask"
            mask = self._known(self.masks[name], tf.identity(mask))
        keras.src.backend.set_keras_mask(own, mask)
        return own

    def _known(self, name: str, symbol: Any) -> Any:
        self.tensors[name] = Tensor(name, _sizes(symbol.shape), symbol.dtype.name)
        self.symbols[name] = symbol
        return symbol


def trace(steps: Steps, inputs: Sequence[TensorSpec], dtypes: Sequence[str]) -> Trace:
    """Compute a model with symbols.

    Args:
        steps: The model.
        inputs: With concrete sizes, in the order of the steps' inputs.
        dtypes: What the model computes each input with.
    """
    recorder = _Recorder(steps)
    signature = [
        tf.TensorSpec(spec.shape, dtype, name=f"input_{index}")
        for index, (spec, dtype) in enumerate(zip(inputs, dtypes, strict=True))
    ]

    @tf.function(input_signature=signature, autograph=False)  # type: ignore[untyped-decorator]
    def run(*tensors: Any) -> list[Any]:
        return recorder.run(tensors)

    function = run.get_concrete_function()
    definition = function.graph.as_graph_def()
    captures = {placeholder.op.name: external for external, placeholder in function.graph.captures}
    pieces = GraphPieces(lift_constants(definition.node, captures), captures, definition)
    places = {name: symbol.name for name, symbol in recorder.symbols.items()}
    marks = {place: name for name, place in places.items()}
    read = {step.name: _read_beside(step, pieces, marks, places, recorder.masks) for step in steps.calls}
    used = {mask for masks in read.values() for mask in masks}
    masks = {name: mask for name, mask in recorder.masks.items() if mask in used}
    unused = set(recorder.masks.values()) - used
    tensors = {name: tensor for name, tensor in recorder.tensors.items() if name not in unused}
    return Trace(pieces, tensors, places, Masks(masks, read))


def _read_beside(
    step: KerasStep,
    pieces: GraphPieces,
    marks: Mapping[str, str],
    places: Mapping[str, str],
    masks: Mapping[str, str],
) -> tuple[str, ...]:
    """Follow the graph from a call's results back to the model's tensors; those that are no arguments are masks."""
    own = [*step.outputs, *(masks[name] for name in step.outputs if name in masks)]
    reached = pieces.needed(marks, [places[name] for name in own if name in places]).fed
    return tuple(name for name in map(marks.__getitem__, reached) if name not in step.inputs)


def _sizes(shape: Any) -> tuple[int, ...] | None:
    known = shape.rank is not None and all(size is not None for size in shape)
    return tuple(map(int, shape)) if known else None
