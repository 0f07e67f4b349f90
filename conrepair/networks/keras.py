"""Keras models as networks: Functional and Sequential ones."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import keras
import tensorflow as tf

from conrepair.data.tensor_spec import TensorSpec
from conrepair.frameworks.keras import KerasRunnable
from conrepair.frameworks.model import Model
from conrepair.frameworks.runnable import load_error
from conrepair.graph.layer_graph import LayerGraph, Node, Tensor
from conrepair.networks.keras_layers import parts_of
from conrepair.networks.keras_parts import PREVIOUS, Call
from conrepair.networks.keras_steps import Step, Steps, is_functional, steps_of
from conrepair.networks.keras_trace import Trace, trace
from conrepair.networks.network import Network, Segment
from conrepair.networks.tensorflow_pieces import TensorFlowSegment
from conrepair.runtime.errors import ModelLoadError

__all__ = ["KerasNetwork", "open_network"]


def open_network(model: Model, inputs: Sequence[TensorSpec], *, second_opinion: bool = False) -> Network:
    """Open a Keras model.

    Args:
        model: Of this framework.
        inputs: The model's, with concrete sizes.
        second_opinion: Compute in float64.

    Raises:
        ModelLoadError: if it can't be loaded, is no graph of layers, or can't be rebuilt in float64.
    """
    if keras.backend.backend() != "tensorflow":
        raise ModelLoadError(
            f"{model.path}: Keras runs on {keras.backend.backend()}; its layers can be looked at with TensorFlow "
            "only. Set KERAS_BACKEND=tensorflow."
        )
    runnable = KerasRunnable(model, double=second_opinion)
    if not is_functional(runnable.network):
        raise ModelLoadError(
            f"{model.path} is a subclassed model: its layers are called by code of its own, not by a graph. "
            "It's analysed through ONNX instead."
        )
    try:
        return KerasNetwork(runnable, inputs)
    # Layers raise errors of any type when they are called.
    except Exception as error:
        raise load_error(model, "a graph of Keras layers", error) from error


class KerasNetwork(Network):
    """A Keras model, traced once by TensorFlow.

    Attributes:
        runnable: The loaded model, whose variables all pieces share.
    """

    def __init__(self, runnable: KerasRunnable, inputs: Sequence[TensorSpec]) -> None:
        """Trace the model.

        Args:
            runnable: The loaded model.
            inputs: With concrete sizes.
        """
        steps = steps_of(runnable.network)
        sizes = {spec.name: spec for spec in inputs}
        given = [sizes[spec.name] for spec in runnable.inputs]
        self.runnable = runnable
        self._trace = trace(steps, given, [spec.dtype for spec in runnable.inputs])
        self.graph = _layer_graph(steps, self._trace)
        self.input_names = dict(zip((spec.name for spec in runnable.inputs), steps.inputs, strict=True))
        self.output_names = dict(zip((spec.name for spec in runnable.outputs), steps.outputs, strict=True))

    def segment(self, fed: Collection[str], wanted: Sequence[str]) -> Segment:
        """See the base class."""
        places, pieces = self._trace.places, self._trace.pieces
        for name in [*fed, *wanted]:
            if name not in self.graph.tensors or not self.graph.tensors[name].observable:
                raise ValueError(f"{name} is no tensor that can be observed")
        inputs = {places[name]: name for name in self.graph.inputs}
        for name in wanted:
            if name in self.graph.inputs:
                raise ValueError(f"{name} is an input of the network, not computed by it")
        known = {places[name]: name for name in fed}
        reached = pieces.needed({**inputs, **known}, [places[name] for name in wanted]).fed
        missing = [inputs[place] for place in reached if place not in known]
        if missing:
            raise ValueError(f"the input {missing[0]} is needed and not fed")
        specs = {known[place]: (place, self._spec(known[place])) for place in reached}
        return TensorFlowSegment(pieces, specs, {name: places[name] for name in wanted})

    def _spec(self, name: str) -> Any:
        tensor = self.graph.tensors[name]
        return tf.TensorSpec(tensor.shape, tensor.dtype)


def _layer_graph(steps: Steps, traced: Trace) -> LayerGraph:
    tensors = dict(traced.tensors)
    taken = {step.name for step in steps.calls}
    nodes: list[Node] = []
    for step in steps.calls:
        nodes.extend(_nodes(step, traced, tensors, taken))
    return LayerGraph(steps.inputs, steps.outputs, tensors, tuple(nodes))


def _nodes(step: Step, traced: Trace, tensors: dict[str, Tensor], taken: set[str]) -> list[Node]:
    """The operators of a call, and the tensors between them."""
    masks = traced.read_masks[step.name]
    recorded = step.call.arguments
    call = Call(
        step.operation,
        tuple(tensors[name].shape for name in step.inputs),
        tuple(tensors[name].shape for name in step.outputs),
        tuple(step.call.input_tensors),
        recorded.args,
        recorded.kwargs,
        bool(masks) or any("mask" in name and value is not None for name, value in recorded.kwargs.items()),
    )
    parts = parts_of(call)
    nodes: list[Node] = []
    previous = ""
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        name = step.name if index == 0 else _free(f"{step.name}/{part.native}", taken)
        reads = part.reads if part.reads is not None else (PREVIOUS,) if index else range(len(step.inputs))
        outputs = (*step.outputs, *(traced.masks[key] for key in step.outputs if key in traced.masks))
        inputs = tuple(previous if position == PREVIOUS else step.inputs[position] for position in reads)
        if not last:
            previous = f"{name}:inside"
            kind = tensors[step.outputs[0]].dtype
            tensors[previous] = Tensor(previous, part.shape, kind, observable=False)
            outputs = (previous,)
        node = Node(
            name,
            step.layer,
            part.op,
            part.native,
            (*inputs, *masks) if index == 0 else inputs,
            outputs,
            part.attributes,
            part.parameters,
            part.channels_last,
        )
        nodes.append(node)
    return nodes


def _free(name: str, taken: set[str]) -> str:
    """The name, numbered if it's another node's."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}#{number}"
    taken.add(free)
    return free
