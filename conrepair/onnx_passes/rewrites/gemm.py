"""Gemm for MatMul with a constant matrix, and for the addition of a bias behind it."""

from __future__ import annotations

import onnx_ir

from conrepair.onnx_passes.infer_shapes import rank_of
from conrepair.onnx_passes.rewrites.building import Builder, constant_of, main_nodes

__all__ = ["gemm"]


def gemm(model: onnx_ir.Model) -> None:
    """Replace in place what multiplies rows by a constant matrix."""
    for product in main_nodes(model, "MatMul"):
        matrix = constant_of(product.inputs[1])
        if matrix is None or matrix.ndim != 2 or rank_of(product.inputs[0]) != 2:
            continue
        addition = _bias_behind(product, matrix.shape[1])
        if addition is None:
            build = Builder(product)
            build.finish(build.op("Gemm", product.inputs))
            continue
        bias = next(value for value in addition.inputs if value is not product.outputs[0])
        numbers = constant_of(bias)
        build = Builder(addition)
        offset = bias if numbers is None else build.constant(numbers.reshape(-1), numbers.dtype)
        build.finish(build.op("Gemm", [*product.inputs, offset]), product)


def _bias_behind(product: onnx_ir.Node, columns: int) -> onnx_ir.Node | None:
    """The Add of a constant row that alone reads a product."""
    output = product.outputs[0]
    uses = output.uses()
    if len(uses) != 1 or output.is_graph_output():
        return None
    node = next(iter(uses)).node
    if node.op_type != "Add" or node.domain or node.graph is not product.graph:
        return None
    other = [constant_of(value) for value in node.inputs if value is not output]
    if len(other) != 1 or other[0] is None or other[0].size != columns or other[0].shape[-1:] != (columns,):
        return None
    return node
