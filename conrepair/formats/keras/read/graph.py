"""A Keras model's calls as a graph in the neutral vocabulary."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from conrepair.formats.keras.read import activations as keras_activations
from conrepair.formats.keras.read import convolution as keras_convolution
from conrepair.formats.keras.read import normalization as keras_normalization
from conrepair.formats.keras.read import ops as keras_ops
from conrepair.formats.keras.read import recurrent as keras_recurrent
from conrepair.formats.keras.read import shape as keras_shape
from conrepair.formats.keras.read.parts import KerasCall, native_part
from conrepair.formats.keras.read.steps import KerasStep, Steps
from conrepair.formats.networks.parts import LayerPart, Rules, nodes_of
from conrepair.ground.graph.layer_graph import LayerGraph, Node, Tensor
from conrepair.ground.graph.operators import OPERATORS, RECURRENT_ACTIVATIONS

# The operators that each call of a Keras model stands for.

_RULES = Rules(
    {
        **keras_activations.RULES,
        **keras_convolution.RULES,
        **keras_normalization.RULES,
        **keras_ops.RULES,
        **keras_recurrent.RULES,
        **keras_shape.RULES,
    }
)
_MASKED = {*RECURRENT_ACTIVATIONS, "Attention", "Identity"}  # that have a tensor for what's masked, or move nothing


def parts_of(call: KerasCall) -> list[LayerPart]:
    """Take a call apart.

    Returns:
        At least one part; the last one gives the call's results.
    """
    native = type(call.operation).__name__
    parts = _RULES.parts(type(call.operation), call)
    if not parts or (call.masked and not all(part.op in _MASKED for part in parts)):
        # Keras has layers called like operators that they are not.
        parts = [native_part(call, f"Keras{native}" if native in OPERATORS else native)]
    return [part if part.native else dataclasses.replace(part, native=native) for part in parts]


@dataclass(frozen=True)
class Masks:
    """The masks that Keras hands on beside tensors.

    Attributes:
        made: The mask that a tensor comes with, where the call that gives the tensor has made it.
        read: What each call's results depend on beside its arguments, by the call's name.
    """

    made: Mapping[str, str]
    read: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class KerasOrigin:
    """Which operator of a call a node is.

    Attributes:
        step: The call.
        place: Of the operator among those of the call.
        count: How many those are.
    """

    step: KerasStep
    place: int
    count: int


def layer_graph(
    steps: Steps, known: Mapping[str, Tensor], masks: Masks, open_sizes: frozenset[str] = frozenset()
) -> tuple[LayerGraph, dict[str, KerasOrigin]]:
    """Write calls as operators.

    Args:
        steps: The calls.
        known: The model's tensors, and masks among them.
        masks: Beside them.
        open_sizes: Tensors whose sizes stand for others that the model leaves open, besides the batch.

    Returns:
        The graph, and where each node comes from, by its name.
    """
    tensors = dict(known)
    taken = {step.name for step in steps.calls}
    nodes: list[Node] = []
    origins: dict[str, KerasOrigin] = {}
    for step in steps.calls:
        made = _nodes(step, masks, tensors, taken, resolved=open_sizes.isdisjoint((*step.inputs, *step.outputs)))
        origins.update({node.name: KerasOrigin(step, place, len(made)) for place, node in enumerate(made)})
        nodes.extend(made)
    return LayerGraph(steps.inputs, steps.outputs, tensors, tuple(nodes)), origins


def _nodes(
    step: KerasStep, masks: Masks, tensors: dict[str, Tensor], taken: set[str], *, resolved: bool
) -> Sequence[Node]:
    """The operators of a call, and the tensors between them."""
    read, recorded = masks.read[step.name], step.call.arguments
    call = KerasCall(
        step.operation,
        tuple(tensors[name].shape for name in step.inputs),
        tuple(tensors[name].shape for name in step.outputs),
        tuple(step.call.input_tensors),
        recorded.args,
        recorded.kwargs,
        bool(read) or any("mask" in name and value is not None for name, value in recorded.kwargs.items()),
        resolved,
    )
    outputs = (*step.outputs, *(masks.made[key] for key in step.outputs if key in masks.made))
    return nodes_of((step.name, step.layer), parts_of(call), step.inputs, outputs, tensors, taken, read)
