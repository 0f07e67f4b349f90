"""A draft as an ONNX model."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from conrepair.generate.bodies import Body
from conrepair.generate.graph import Draft, Tensor
from conrepair.generate.symbolic import Open
from conrepair.generate.tensors import element_type

__all__ = ["IR_VERSION", "model_of"]

IR_VERSION = 10


def model_of(
    draft: Draft,
    weights: Mapping[str, np.ndarray[Any, Any]],
    shown: Collection[str] | None = None,
    *,
    typed: bool = True,
    sizes: Open | None = None,
) -> onnx.ModelProto:
    """Write a draft as a model.

    Args:
        draft: The network.
        weights: By name, sources that are initializers; others are inputs.
        shown: Names of its outputs; those of the draft for None.
        typed: Whether outputs say their types; a runtime infers them.
        sizes: Those that are left open, by input and output.
    """
    nodes = [
        _node(node.op, node.inputs, node.outputs, node.attributes, place) for place, node in enumerate(draft.nodes)
    ]
    inputs = [_value(tensor, sizes) for name, tensor in draft.sources.items() if name not in weights]
    names = draft.outputs() if shown is None else shown
    outputs = [_value(draft.tensors[name], sizes) if typed else onnx.ValueInfoProto(name=name) for name in names]
    arrays = {name: tensor.array for name, tensor in draft.tensors.items() if tensor.array is not None}
    kept = {**arrays, **weights}
    initializers = [numpy_helper.from_array(array, name) for name, array in kept.items() if array is not None]
    graph = helper.make_graph(nodes, "generated", inputs, outputs, initializers)
    domains = {node.op.rpartition("::")[0] for node in draft.nodes} - {""}
    imports = [helper.make_opsetid("", draft.opset), *(helper.make_opsetid(domain, 1) for domain in sorted(domains))]
    return helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION, producer_name="conrepair")


def _node(
    op: str, inputs: list[str], outputs: list[str], attributes: Mapping[str, Any], place: int
) -> onnx.NodeProto:
    domain, _, name = op.rpartition("::")
    bodies = {key: value for key, value in attributes.items() if isinstance(value, Body)}
    inside = len(inputs) - max((body.outer for body in bodies.values()), default=0)
    node = helper.make_node(name, inputs[:inside], outputs, name=f"n{place}", domain=domain or None)
    for key, value in attributes.items():
        if key in bodies:
            node.attribute.append(helper.make_attribute(key, value.graph(f"n{place}_{key}", inputs[inside:])))
            continue
        kind = onnx.AttributeProto.INTS if isinstance(value, tuple) and not value else None
        node.attribute.append(helper.make_attribute(key, value, attr_type=kind))
    return node


def _value(tensor: Tensor, sizes: Open | None) -> onnx.ValueInfoProto:
    shape = (sizes or {}).get(tensor.name, tensor.type.shape)
    return helper.make_tensor_value_info(tensor.name, element_type(tensor.type.dtype), shape)
