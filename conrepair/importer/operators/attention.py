"""Attention: ONNX's operators through `keras.ops`, whole blocks with their projections as MultiHeadAttention."""

from __future__ import annotations

import math
from typing import Any

import keras
import numpy as np
from keras import ops

from conrepair.importer.addition import add
from conrepair.importer.node import ImportedNode
from conrepair.importer.rules import operator


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


def _with_heads(node: ImportedNode, index: int, heads: int) -> Any:
    """An input [batch, steps, heads * width] or [batch, heads, steps, width] as the latter."""
    x = node.tensor(index)
    if node.rank(index) == 4:
        return x
    return _split_heads(node, x, heads)


def _split_heads(node: ImportedNode, x: Any, heads: int) -> Any:
    steps, width = x.shape[1], x.shape[2] // heads
    if steps is None:
        x = node.layer(keras.layers.Reshape, x, target_shape=(-1, heads, width))
    else:
        x = ops.reshape(x, [-1, steps, heads, width])
    return ops.transpose(x, [0, 2, 1, 3])


def _without_heads(y: Any) -> Any:
    y = ops.transpose(y, [0, 2, 1, 3])
    _, steps, heads, width = y.shape
    if steps is None:
        return keras.layers.Reshape((-1, heads * width), dtype=y.dtype)(y)
    return ops.reshape(y, [-1, steps, heads * width])


# --- linear attention and its kin -----------------------------------------------------------------------------


@operator("LinearAttention", refuses="more than 1024 steps, sequences of unknown length")
def linear_attention(node: ImportedNode) -> Any:
    """The recurrence, written out step by step."""
    heads, shared = node.attribute("q_num_heads"), node.attribute("kv_num_heads")
    steps = node.known_shape(0, [1])[0]
    if steps > _LONGEST:
        node.refuse(f"it takes more than {_LONGEST} steps")
    rule = node.attribute("update_rule", "gated_delta")
    # Like the standard's own function, it computes in float32.
    wide = "float64" if node.dtype(0) == "float64" else "float32"
    query, key, value = (
        ops.cast(_with_heads(node, index, count), wide) for index, count in ((0, heads), (1, shared), (2, shared))
    )
    scale = node.attribute("scale", 0.0) or 1 / math.sqrt(query.shape[3])
    decay = _rates(node, 4, shared, wide, "gated" in rule)
    beta = _rates(node, 5, shared, wide, "delta" in rule)
    state = ops.matmul(ops.expand_dims(key[:, :, 0], 3), ops.expand_dims(value[:, :, 0], 2))
    state = ops.cast(node.tensor(3), wide) if node.has(3) else ops.zeros_like(state)
    answers = []
    for step in range(steps):
        keys, values = ops.expand_dims(key[:, :, step], 3), ops.expand_dims(value[:, :, step], 2)
        if decay is not None:
            state = ops.multiply(state, ops.exp(ops.expand_dims(decay[:, :, step], 3)))
        if beta is not None:
            known_ = ops.matmul(ops.transpose(keys, [0, 1, 3, 2]), state)
            values = ops.multiply(ops.subtract(values, known_), ops.expand_dims(beta[:, :, step], 3))
        state = add(state, ops.matmul(keys, values))
        whole = state if heads == shared else ops.repeat(state, heads // shared, axis=1)
        answers.append(ops.matmul(query[:, :, step : step + 1], whole))
    y = _without_heads(ops.multiply(ops.concatenate(answers, axis=2), scale))
    dtype = node.dtype(0)
    return [node.output(ops.cast(item, dtype)) for item in (y, state)]


def _rates(node: ImportedNode, index: int, heads: int, dtype: str, used: bool) -> Any:
    """Decay or update rate as [batch, heads or 1, steps, width or 1]; None when the rule doesn't use it."""
    if not used:
        return None
    width = node.known_shape(index, [2])[0]
    return ops.cast(_with_heads(node, index, heads if width >= heads else 1), dtype)


_LONGEST = 1024


@operator("CausalConvWithState", constant=("weight",))
def causal_convolution(node: ImportedNode) -> Any:
    """A depthwise convolution that sees what came before, and hands on what comes next."""
    weight = node.constant(1)
    channels, _, taps = weight.shape
    x = node.tensor(0, (0, 2, 1))
    if node.has(3):
        x = ops.concatenate([node.tensor(3, (0, 2, 1)), x], axis=1)
    else:
        x = ops.pad(x, [(0, 0), (taps - 1, 0), (0, 0)])
    bias = node.constant(2, np.zeros(channels, weight.dtype))
    y = node.layer(keras.layers.DepthwiseConv1D, x, weights=[weight.transpose(2, 0, 1), bias], kernel_size=taps)
    if node.attribute("activation", "none") in {"silu", "swish"}:
        y = ops.silu(y)
    rest = x[:, -(taps - 1) :] if taps > 1 else x[:, :0]
    return [node.output(y, (0, 2, 1)), node.output(rest, (0, 2, 1))][: node.outputs]


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


@operator("Gelu", domain="conrepair")
def joined_gelu(node: ImportedNode) -> Any:
    """What `patterns` found."""
    return node.elementwise(lambda x: ops.gelu(x, approximate=bool(node.attribute("approximate"))))


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
    y = _normalized(node, total, node.constant(2), None if simplified else node.constant(3), simplified)
    return [node.output(y, None, node.shape(0)), None, None, node.output(total, None, node.shape(0))][: node.outputs]


@operator("SimplifiedLayerNormalization", constant=("scale",))
def simplified_layer_normalization(node: ImportedNode) -> Any:
    if node.axis(-1) != node.rank(0) - 1 or node.outputs > 1:
        node.refuse("Keras's RMSNormalization works along the last axis, with one output")
    return node.output(_normalized(node, node.tensor(0), node.constant(1), None, True), None, node.shape(0))


def _normalized(node: ImportedNode, x: Any, scale: Any, bias: Any, simplified: bool) -> Any:
    kind = keras.layers.RMSNormalization if simplified else keras.layers.LayerNormalization
    weights = [scale] if bias is None else [scale, bias]
    settings = {} if simplified else {"center": bias is not None}
    # ONNX Runtime's own defaults differ: 1e-5 for the plain one, 1e-12 with a skip connection.
    epsilon = node.attribute("epsilon", 1e-12 if node.operator.startswith("Skip") else 1e-5)
    return node.layer(kind, x, weights=weights, axis=-1, epsilon=epsilon, **settings)


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
    query, key, values = (_split_heads(node, row, heads) for row in rows)
    scale = node.attribute("scale", 0.0) or 1 / math.sqrt(query.shape[3])
    scores = ops.matmul(ops.multiply(query, scale), ops.transpose(key, [0, 1, 3, 2]))
    y = _without_heads(ops.matmul(ops.softmax(scores, axis=-1), values))
    return node.output(y, None, (*node.shape(0)[:2], y.shape[2]))
