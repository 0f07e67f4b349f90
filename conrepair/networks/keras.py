"""Keras models as networks: Functional and Sequential ones."""

from __future__ import annotations

from collections.abc import Sequence

import keras

from conrepair.data.tensor_spec import TensorSpec
from conrepair.frameworks.keras import KerasRunnable
from conrepair.frameworks.model import Model
from conrepair.frameworks.runnable import loading
from conrepair.networks.keras_graph import layer_graph
from conrepair.networks.keras_steps import is_functional, steps_of
from conrepair.networks.keras_trace import trace
from conrepair.networks.network import Network
from conrepair.networks.tensorflow_segment import PieceNetwork
from conrepair.runtime.errors import ModelLoadError

__all__ = ["KerasNetwork", "open_network"]


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
            f"{model.path}: Keras runs on {keras.backend.backend()}; its layers can be looked at with TensorFlow "
            "only. Set KERAS_BACKEND=tensorflow."
        )
    return _open(model, inputs, double=False)


def _open(model: Model, inputs: Sequence[TensorSpec], *, double: bool) -> KerasNetwork:
    runnable = KerasRunnable(model, double=double)
    if not is_functional(runnable.network):
        raise ModelLoadError(
            f"{model.path} is a subclassed model: its layers are called by code of its own, not by a graph. "
            "It's analysed through ONNX instead."
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
        """In float64."""
        return _open(self._model, self._inputs, double=True)
