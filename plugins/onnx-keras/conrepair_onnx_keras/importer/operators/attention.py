"""Attention: ONNX's operators through `keras.ops`, whole blocks with their projections as MultiHeadAttention."""

from __future__ import annotations

import math
from typing import Any

import keras
import numpy as np
from keras import ops

from conrepair_onnx_keras.importer.indexing import add
from conrepair_onnx_keras.importer.node import ImportedNode, operator
from conrepair_onnx_keras.importer.operators.shape import reshaped_array


@operator("MultiHeadAttention", domain="conrepair")
def multi_head_attention(node: ImportedNode) -> Any:
    """A block with its projections, found by `patterns`: query, key, value, then kernels and biases."""
    heads, batch = node.attribute("heads"), node.attribute("batch_axis")
    order = (0, 1, 2) if batch == 0 else (1, 0, 2)
    query, key, value = (node.tensor(index, order) for index in range(3))
    weights = [node.constant(index) for index in range(3, len(node.inputs))]
    width, values = weights[0].shape[1] // heads, weights[-2].shape[0] // heads
    shaped = []
    for kernel, bias in zip(weights[:6:2], weights[1:6:2], strict=True):
        shaped += [kernel.reshape(kernel.shape[0], heads, -1), bias.reshape(heads, -1)]
    kernel, bias = weights[6:]
    y = node.layer(
        keras.layers.MultiHeadAttention,
        query,
        value,
        key,
        weights=[*shaped, kernel.reshape(heads, values, -1), bias],
        num_heads=heads,
        key_dim=width,
        value_dim=values,
        output_shape=kernel.shape[1],
    )
    return node.output(y, order, (*node.shape(0)[:2], kernel.shape[1]))


def _split_heads(node: ImportedNode, x: Any, index: int, heads: int) -> Any:
    batch, steps, _ = node.shape(index)
    apart = reshaped_array(node, x, [batch, steps, heads, x.shape[2] // heads], [batch])
    return ops.transpose(apart, [0, 2, 1, 3])


# --- what ONNX Runtime adds -----------------------------------------------------------------------------------

_MICROSOFT = "com.microsoft"


@operator("Gelu", "QuickGelu", "FastGelu", "BiasGelu", domain=_MICROSOFT)
def gelu(node: ImportedNode) -> Any:
    alpha = node.attribute("alpha", 1.702)

    def function(x: Any, bias: Any = None) -> Any:
        x = x if bias is None else add(x, bias)
        if node.operator == "QuickGelu":
            return ops.multiply(x, ops.sigmoid(ops.multiply(x, alpha)))
        return ops.gelu(x, approximate=node.operator == "FastGelu")

    return node.elementwise(function)


@operator("FusedMatMul", domain=_MICROSOFT)
def fused_matmul(node: ImportedNode) -> Any:
    sides = []
    for index, name in ((0, "A"), (1, "B")):
        if node.attribute(f"transBatch{name}", 0):
            node.refuse("transBatch moves the batch's axes")
        rank, axes = node.rank(index), list(range(node.rank(index)))
        if node.attribute(f"trans{name}", 0) and rank > 1:
            axes[-2:] = axes[:-3:-1]
        sides.append(node.tensor(index, axes))
    alpha = node.attribute("alpha", 1.0)
    product = ops.matmul(*sides)
    return product if alpha == 1 else ops.multiply(product, alpha)


@operator("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", domain=_MICROSOFT, constant=("gamma", "beta"))
def skip_layer_normalization(node: ImportedNode) -> Any:
    """input, skip, gamma, beta, bias; the simplified one has no beta."""
    simplified = "Simplified" in node.operator
    total = add(node.tensor(0), node.tensor(1))
    place = 3 if simplified else 4
    if node.has(place):
        total = add(total, node.tensor(place))
    # The plain operator's epsilon is 1e-5 where nothing is said.
    epsilon, rows = node.attribute("epsilon", 1e-12), [node.constant(2)]
    if simplified:
        y = node.layer(keras.layers.RMSNormalization, total, weights=rows, axis=-1, epsilon=epsilon)
    else:
        rows += [node.constant(3)] if node.has(3) else []
        settings = {"axis": -1, "epsilon": epsilon, "center": node.has(3)}
        y = node.layer(keras.layers.LayerNormalization, total, weights=rows, **settings)
    return [node.output(y, None, node.shape(0)), None, None, node.output(total, None, node.shape(0))][: node.outputs]


@operator("MultiHeadAttention", domain=_MICROSOFT, refuses="packed inputs, masks, past states")
def contributed_attention(node: ImportedNode) -> Any:
    heads = node.attribute("num_heads")
    if any(node.has(index) for index in range(4, len(node.inputs))) or node.outputs > 1 or node.rank(0) != 3:
        node.refuse("packed inputs, masks and past states aren't handled")
    if node.attribute("unidirectional", 0):
        node.refuse("unidirectional attention isn't handled")
    rows: list[Any] = [node.tensor(index) for index in range(3)]
    if node.has(3):
        widths = np.cumsum([node.known_shape(index, [2])[0] for index in range(2)])
        rows = [add(row, part) for row, part in zip(rows, np.split(node.constant(3), widths), strict=True)]
    query, key, values = (_split_heads(node, row, index, heads) for index, row in enumerate(rows))
    scale = node.attribute("scale", 0.0) or 1 / math.sqrt(query.shape[3])
    scores = ops.matmul(ops.multiply(query, scale), ops.transpose(key, [0, 1, 3, 2]))
    y = ops.transpose(ops.matmul(ops.softmax(scores, axis=-1), values), [0, 2, 1, 3])
    shape = [*node.shape(0)[:2], heads * y.shape[3]]
    return node.output(reshaped_array(node, y, shape, shape), None, shape)
