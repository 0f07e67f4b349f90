"""What TVM's ONNX importer stops at or misreads, written as it takes it; each result is the same."""

from __future__ import annotations

import numpy as np
import onnx_ir

from conrepair.onnx_passes.rewrites.building import Builder, attribute, main_nodes

__all__ = ["importable"]


def importable(model: onnx_ir.Model) -> None:
    """Change a model in place, whose shapes are inferred."""
    for node in model.graph.all_nodes():
        axes = node.attributes.get("axes") if node.op_type.startswith("Reduce") and not node.domain else None
        if axes is not None and not axes.as_ints():  # all of them, as without the attribute
            del node.attributes["axes"]
    for node in main_nodes(model, "LayerNormalization"):
        _normalize(node, model.opset_imports.get("", 1))


def _normalize(node: onnx_ir.Node, opset: int) -> None:
    """Have the importer normalize alone where it can't do what else the node asks for.

    It takes weights in the shape of the normalized axes only, and makes nothing of the mean and of the deviation.
    """
    source, *weights = node.inputs
    if source is None or source.shape is None or source.dtype != onnx_ir.DataType.FLOAT:
        return
    axis, epsilon = attribute(node, "axis", -1) % len(source.shape), attribute(node, "epsilon", 1e-5)
    sizes = [size for size in source.shape[axis:] if isinstance(size, int)]
    others = {place: value for place, value in enumerate(node.outputs) if place and _is_read(value)}
    whole = all(value is None or value.shape is None or list(value.shape) == sizes for value in weights)
    axes = list(range(axis, len(source.shape)))
    if len(sizes) < len(axes) or (whole and not others):
        return
    build = Builder(node)
    result = build.op(node.op_type, [source, build.constant(np.ones(sizes), np.float32)], axis=axis, epsilon=epsilon)
    for operator, value in zip(("Mul", "Add"), weights, strict=False):
        result = result if value is None else build.op(operator, [result, value])
    if others:
        mean = _mean(build, source, axes, opset)
        apart = build.op("Sub", [source, mean])
        variance = _mean(build, build.op("Mul", [apart, apart]), axes, opset)
        deviation = build.op("Sqrt", [build.op("Add", [variance, build.constant(epsilon, np.float32)])])
        made = {1: mean, 2: build.op("Reciprocal", [deviation])}
        for place, value in others.items():
            made[place].name, value.name = value.name, None
            onnx_ir.convenience.replace_all_uses_with(value, made[place], replace_graph_outputs=True)
    build.finish(result)


def _mean(build: Builder, value: onnx_ir.Value, axes: list[int], opset: int) -> onnx_ir.Value:
    if opset < 18:  # as an attribute
        return build.op("ReduceMean", [value], axes=axes)
    return build.op("ReduceMean", [value, build.constant(axes)])


def _is_read(value: onnx_ir.Value) -> bool:
    return bool(value.uses()) or value.is_graph_output()
