"""A network's graph as values that a file can hold: what reports show of it, without its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from conrepair.ground.data.tensor_spec import Quantization
from conrepair.ground.graph.layer_graph import Attribute, LayerGraph, Node, Parameter

_LONG = 64  # entries of an attribute that a report lists


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Where numbers lie.

    Attributes:
        minimum: The smallest.
        maximum: The largest.
        mean: Their mean.
        std: Their standard deviation.
    """

    minimum: float
    maximum: float
    mean: float
    std: float


@dataclass(frozen=True, kw_only=True)
class ParameterRecord:
    """Numbers that a node brings along, in the convention of `conrepair.ground.graph.operators`.

    Attributes:
        name: As in the file; "" for numbers without a name.
        shape: Of the array.
        dtype: numpy's name of the type that the file stores.
        bits: Of a quantized parameter; None for others.
        made_by: The layer of the file that computes it from other numbers; "" where they're stored.
        spread: Of the numbers, quantized ones as what they stand for; None where there are none.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    bits: int | None = None
    made_by: str = ""
    spread: Spread | None = None


@dataclass(frozen=True, kw_only=True)
class TensorRecord:
    """What flows between nodes.

    Attributes:
        shape: Sizes for the batch that the network was opened with; None where only running it tells.
        dtype: numpy's name of the type that the file computes with.
        quantization: For integers that stand for real numbers.
    """

    shape: tuple[int, ...] | None
    dtype: str
    quantization: Quantization | None = None


@dataclass(frozen=True, kw_only=True)
class NodeRecord:
    """One operator; edges follow from the tensors that nodes read and give.

    Attributes:
        name: Unique in the graph.
        layer: What it's called in the file; the parts of a fused operator, or of a layer, share it.
        operator: In the vocabulary of `conrepair.ground.graph.operators`; the native one where that has none.
        native: As the framework calls it.
        inputs: Tensors that depend on the network's inputs, in order; "" for an optional one that's left out.
        outputs: Tensors.
        attributes: In the vocabulary's convention, those with their default values too.
        parameters: By role; and attributes that are tables.
    """

    name: str
    layer: str
    operator: str
    native: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    parameters: Mapping[str, ParameterRecord] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class GraphRecord:
    """A network's nodes and tensors.

    Attributes:
        inputs: Names of the tensors that are fed, in the model's order.
        outputs: Names of the tensors that are the result, in the model's order.
        tensors: By name.
        nodes: Each behind those that it reads from.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    tensors: Mapping[str, TensorRecord]
    nodes: tuple[NodeRecord, ...]


def graph_record(graph: LayerGraph) -> GraphRecord:
    """What a report shows of a graph.

    Args:
        graph: Of an opened network; its parameters are read once.
    """
    tensors = {
        name: TensorRecord(shape=tensor.shape, dtype=tensor.dtype, quantization=tensor.quantization)
        for name, tensor in graph.tensors.items()
    }
    return GraphRecord(
        inputs=tuple(graph.inputs),
        outputs=tuple(graph.outputs),
        tensors=tensors,
        nodes=tuple(map(_node, graph.nodes)),
    )


def _node(node: Node) -> NodeRecord:
    return NodeRecord(
        name=node.name,
        layer=node.layer,
        operator=node.op,
        native=node.native,
        inputs=tuple(node.inputs),
        outputs=tuple(node.outputs),
        attributes={name: value for name, value in node.attributes.items() if not _is_table(value)},
        parameters={
            **{role: _parameter(item) for role, item in node.parameters.items()},
            **{name: _table(value) for name, value in node.attributes.items() if _is_table(value)},
        },
    )


def _is_table(value: Attribute) -> bool:
    """Whether an attribute is numbers, or texts, by the thousand, as a forest's: nobody reads them one by one."""
    return isinstance(value, tuple) and len(value) > _LONG


def _table(value: Attribute) -> ParameterRecord:
    array = np.array(value)
    dtype = "object" if array.dtype.kind == "U" else array.dtype.name
    return _parameter(Parameter("", array.shape, dtype, lambda: array))


def _parameter(parameter: Parameter) -> ParameterRecord:
    return ParameterRecord(
        name=parameter.name,
        shape=tuple(parameter.shape),
        dtype=parameter.dtype,
        bits=parameter.bits,
        made_by=parameter.made_by,
        spread=_spread(parameter),
    )


def _spread(parameter: Parameter) -> Spread | None:
    values = parameter.numpy()
    if values.dtype.kind not in "fiub" or not values.size:
        return None
    flat = values.ravel(order="K").astype(np.float32, copy=False)
    with np.errstate(all="ignore"):  # numbers that are none are shown as such
        mean = float(flat.mean())
        std = float(np.sqrt(max(float(np.dot(flat, flat)) / flat.size - mean * mean, 0.0)))
        return Spread(minimum=float(flat.min()), maximum=float(flat.max()), mean=mean, std=std)
