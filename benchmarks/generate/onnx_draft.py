"""Models that others made, as drafts: what their diversity is measured on."""

from __future__ import annotations

import onnx
from onnx import helper, numpy_helper

from conrepair_lab.generate.graph import Draft, Node, Tensor
from conrepair_lab.generate.settings.tensors import TensorType

__all__ = ["draft_of"]

_PLAIN = (int, float, str, bytes, list)


def draft_of(model: onnx.ModelProto) -> Draft:
    """The graph of a model, without graphs inside of it; a tensor whose sizes aren't known is a scalar."""
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    draft = Draft(model.opset_import[0].version)
    for value in (*inferred.input, *inferred.value_info, *inferred.output):
        made = value.type.tensor_type
        dtype = helper.tensor_dtype_to_np_dtype(made.elem_type).name if made.elem_type else "float32"
        draft.tensors[value.name] = Tensor(value.name, TensorType(dtype, tuple(d.dim_value for d in made.shape.dim)))
    for weight in inferred.initializer:
        array = numpy_helper.to_array(weight)
        draft.tensors[weight.name] = Tensor(weight.name, TensorType(array.dtype.name, array.shape))
    for node in inferred.node:
        attributes = {item.name: helper.get_attribute_value(item) for item in node.attribute}
        plain = {name: value for name, value in attributes.items() if isinstance(value, _PLAIN)}
        for name in filter(None, (*node.input, *node.output)):
            draft.tensors.setdefault(name, Tensor(name, TensorType("float32", ())))
        op = f"{node.domain}::{node.op_type}" if node.domain else node.op_type
        draft.nodes.append(Node(op, list(node.input), list(node.output), plain))
    return draft
