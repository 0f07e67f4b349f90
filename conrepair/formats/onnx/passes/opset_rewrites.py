"""What newer opsets added to known operators, said in older ones.

Every rewrite changes a node in place, or leaves it as it is when it doesn't apply; the caller refuses what the
older opset still can't express.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir

from conrepair.ground.onnx_graphs.defaults import attribute, operator_called
from conrepair.ground.onnx_graphs.infer_shapes import rank_of, static_shape
from conrepair.ground.onnx_graphs.initializers import constant_of

_LAST = np.iinfo(np.int64).max


def shape(node: onnx_ir.Node, opset: int) -> None:
    """Opset 15 gave Shape a range: take all and slice."""
    if opset >= 15 or not {"start", "end"} & set(node.attributes):
        return
    start = node.attributes.pop("start").as_int() if "start" in node.attributes else 0
    end = node.attributes.pop("end").as_int() if "end" in node.attributes else _LAST
    bounds = [_constant(node, np.array([bound], np.int64)) for bound in (start, end)]
    _put_behind(node, "Slice", bounds)


def split(node: onnx_ir.Node, opset: int) -> None:
    """Opset 18 lets Split divide evenly, the last part being smaller: write the sizes down."""
    if opset >= 18 or "num_outputs" not in node.attributes:
        return
    axis = attribute(node, "axis", 0)
    source = node.inputs[0]
    size = source.shape[axis] if source is not None and source.shape is not None else None
    if not isinstance(size, int):
        return
    count = node.attributes.pop("num_outputs").as_int()
    part = -(-size // count)
    sizes = np.array([part] * (count - 1) + [size - part * (count - 1)], np.int64)
    node.resize_inputs(2)
    node.replace_input_with(1, _constant(node, sizes))


def pad(node: onnx_ir.Node, opset: int) -> None:
    """Opset 18 lets Pad name its axes: give the others 0."""
    if opset >= 18 or len(node.inputs) < 4 or node.inputs[3] is None:
        return
    pads, axes, rank = _numbers(node.inputs[1]), _numbers(node.inputs[3]), rank_of(node.inputs[0])
    if pads is None or axes is None or rank is None:
        return
    full = np.zeros((2, rank), np.int64)
    full[:, axes] = pads.reshape(2, -1)
    node.replace_input_with(1, _constant(node, full.reshape(-1)))
    node.resize_inputs(3)


def resize(node: onnx_ir.Node, opset: int) -> None:
    """Opset 18 lets Resize name its axes: the others keep their size."""
    if opset >= 18 or "axes" not in node.attributes:
        return
    axes, source = list(node.attributes["axes"].as_ints()), node.inputs[0]
    rank = rank_of(source)
    if rank is None or attribute(node, "coordinate_transformation_mode") == "tf_crop_and_resize":
        return
    scales = _numbers(node.inputs[2]) if len(node.inputs) > 2 else None
    sizes = _numbers(node.inputs[3]) if len(node.inputs) > 3 else None
    shape = static_shape(source)
    if scales is not None and len(scales):
        full: npt.NDArray[Any] = np.ones(rank, np.float32)
        full[axes] = scales
        node.replace_input_with(2, _constant(node, full))
    elif sizes is not None and shape is not None:
        full = np.array(shape, np.int64)
        full[axes] = sizes
        node.replace_input_with(3, _constant(node, full))
    else:
        return
    del node.attributes["axes"]


def _reduce(node: onnx_ir.Node, opset: int) -> None:
    """Opset 18 lets a reduction without axes reduce nothing; of one element, most then give the element."""
    noop = node.attributes.get("noop_with_empty_axes")
    if opset >= 18 or noop is None or not noop.as_int() or node.op_type not in _NEUTRAL:
        return
    axes = node.inputs[1] if len(node.inputs) > 1 else None
    numbers = _numbers(axes)
    if axes is not None and numbers is None:
        return
    del node.attributes["noop_with_empty_axes"]
    if numbers is not None and len(numbers):
        return
    identity = onnx_ir.node("Identity", [node.inputs[0]], outputs=None, name=node.name)
    _replace(node, identity)


_NEUTRAL = {"ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd"}


def _constant(before: onnx_ir.Node, array: npt.NDArray[Any]) -> onnx_ir.Value:
    """A constant in front of a node; function bodies have no initializers, so it's a node."""
    tensor = onnx_ir.tensor(array)
    node = onnx_ir.Node("", "Constant", [], [onnx_ir.AttrTensor("value", tensor)])
    value = node.outputs[0]
    value.name = f"{before.outputs[0].name}/{_fresh(before)}"
    value.type, value.shape = onnx_ir.TensorType(tensor.dtype), onnx_ir.Shape(array.shape)
    before.prepend(node)
    return value


def _fresh(node: onnx_ir.Node) -> str:
    return f"constant {len(node.graph)}" if node.graph is not None else "constant"


def _put_behind(node: onnx_ir.Node, operator: str, operands: list[onnx_ir.Value]) -> None:
    """Let an operator's consumers read another operator's result on it."""
    output = node.outputs[0]
    follower = onnx_ir.Node("", operator, [output, *operands])
    result = follower.outputs[0]
    result.name, result.type, result.shape = output.name, output.type, output.shape
    output.name, output.shape = f"{output.name}/whole", None
    onnx_ir.convenience.replace_all_uses_with([output], [result], replace_graph_outputs=True)
    follower.replace_input_with(0, output)
    node.append(follower)


def _replace(node: onnx_ir.Node, other: onnx_ir.Node) -> None:
    graph = node.graph
    if graph is None:
        raise ValueError("the node is in no graph")
    onnx_ir.convenience.replace_nodes_and_values(graph, node, [node], [other], node.outputs, other.outputs)


def _numbers(value: onnx_ir.Value | None) -> npt.NDArray[Any] | None:
    constant = constant_of(value)
    return None if constant is None else constant.reshape(-1)


REWRITES: Mapping[str, Callable[[onnx_ir.Node, int], None]] = {
    **{operator_called(rewrite.__name__): rewrite for rewrite in (pad, resize, shape, split)},
    **dict.fromkeys(_NEUTRAL, _reduce),
}
