"""Convolutions: weights go into Keras's own layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from conrepair.importer.addition import add
from conrepair.importer.node import Node
from conrepair.importer.registry import operator
from conrepair.importer.values import Array, Size, known
from conrepair.importer.window import Window, padded, window_of

_CONV = {1: keras.layers.Conv1D, 2: keras.layers.Conv2D, 3: keras.layers.Conv3D}
_DEPTHWISE = {1: keras.layers.DepthwiseConv1D, 2: keras.layers.DepthwiseConv2D}
_TRANSPOSED = {1: keras.layers.Conv1DTranspose, 2: keras.layers.Conv2DTranspose, 3: keras.layers.Conv3DTranspose}


@operator("Conv", ignores=("kernel_shape",), refuses="more than three spatial axes")
def convolution(node: Node) -> Any:
    apply = _layer if node.is_constant(1) else _with_tensor_weights
    return node.from_channels_last(
        convolved(node, node.channels_last(0), node.shape(1), lambda x, settings: apply(node, x, settings))
    )


def convolved(node: Node, x: Any, weights: Sequence[Size], apply: Callable[[Any, dict[str, Any]], Any]) -> Any:
    """What a function gives that convolves, with the window that a node's attributes describe.

    Args:
        node: Whose first input has the sizes of what is convolved.
        x: What is convolved, channels last.
        weights: Shape of the weights, in ONNX's order.
        apply: Gets `x` (padded, if need be) and arguments of a Keras layer.
    """
    spatial = len(weights) - 2
    if spatial not in _CONV:
        node.refuse(f"Keras has no convolution over {spatial} spatial axes")
    if not all(map(known, weights)):
        node.refuse("the shape of its weights must be known")
    window = window_of(node, [int(size) for size in weights[2:]])
    padding = "valid"
    # Keras computes either strides or dilation: the positions in between are computed and left out.
    skips = _unsupported_strides(node, window, weights)
    if not window.unpadded and window.is_same and not skips:
        padding = "same"
    else:
        x = padded(x, window.pads)
    strides = (1,) * spatial if skips else window.strides
    y = apply(x, {"strides": strides, "padding": padding, "dilation_rate": window.dilations})
    return y[(slice(None), *(slice(None, None, stride) for stride in window.strides))] if skips else y


def _unsupported_strides(node: Node, window: Window, weights: Sequence[Size]) -> bool:
    mixed = max(window.strides) > 1 and max(window.dilations) > 1
    return mixed or (_is_depthwise(node, weights) and len(set(window.strides)) > 1)


def _is_depthwise(node: Node, weights: Sequence[Size]) -> bool:
    return bool(node.attribute("group", 1) > 1 and weights[1] == 1 and len(weights) - 2 in _DEPTHWISE)


def _layer(node: Node, x: Any, settings: dict[str, Any]) -> Any:
    own_bias = node.is_constant(2) or not node.has(2)
    y = layer_of(node, x, node.constant(1), [node.constant(2)] if node.has(2) and own_bias else [], settings)
    return y if own_bias else add(y, node.tensor(2))


def layer_of(node: Node, x: Any, weights: Array, biases: Sequence[Array], settings: dict[str, Any]) -> Any:
    """Apply the layer with some weights (in ONNX's order) and at most one bias; see `convolved`."""
    groups, kernel = node.attribute("group", 1), weights.shape[2:]
    common = {"kernel_size": kernel, "use_bias": bool(biases), "data_format": "channels_last"} | settings
    if _is_depthwise(node, weights.shape):
        depth = weights.shape[0] // groups
        taps = np.moveaxis(weights.reshape(groups, depth, *kernel), (0, 1), (-2, -1))
        return node.layer(_DEPTHWISE[len(kernel)], x, weights=[taps, *biases], depth_multiplier=depth, **common)
    taps = np.moveaxis(weights, (1, 0), (-2, -1))
    kind = _CONV[len(kernel)]
    return node.layer(kind, x, weights=[taps, *biases], filters=weights.shape[0], groups=groups, **common)


def _with_tensor_weights(node: Node, x: Any, settings: dict[str, Any]) -> Any:
    if node.attribute("group", 1) != 1:
        node.refuse("input W must be constant where there are groups")
    kernel = node.tensor(1, (len(node.shape(1)) - 1, len(node.shape(1)) - 2, *range(node.rank(1) - 2)))
    y = ops.conv(
        x,
        kernel,
        strides=settings["strides"],
        padding=settings["padding"],
        data_format="channels_last",
        dilation_rate=settings["dilation_rate"],
    )
    return add(y, node.tensor(2)) if node.has(2) else y


@operator("ConvTranspose", constant=("W",), ignores=("kernel_shape",), refuses="more than three spatial axes")
def transposed_convolution(node: Node) -> Any:
    spatial = node.rank(0) - 2
    if spatial not in _TRANSPOSED:
        node.refuse(f"Keras has no transposed convolution over {spatial} spatial axes")
    weights = _dilated(node.constant(1), node.attribute("dilations", [1] * spatial))
    groups, kernel = node.attribute("group", 1), weights.shape[2:]
    strides = tuple(node.attribute("strides", [1] * spatial))
    crops = _crops(node, kernel, strides)
    inside = node.is_constant(2) and groups == 1 and all(behind >= 0 for _, behind in crops)
    biases: list[Array] = [node.constant(2)] if inside else []
    x = node.channels_last(0)
    parts = [x] if groups == 1 else ops.split(x, groups, axis=-1)
    results = [
        node.layer(
            _TRANSPOSED[spatial],
            part,
            weights=[np.moveaxis(taps, (1, 0), (-2, -1)), *biases],
            filters=taps.shape[1],
            kernel_size=kernel,
            strides=strides,
            padding="valid",
            use_bias=inside,
            data_format="channels_last",
        )
        for part, taps in zip(parts, np.split(weights, groups), strict=True)
    ]
    y = results[0] if groups == 1 else ops.concatenate(results, axis=-1)
    y = padded(y, [(-before, -behind) for before, behind in crops])
    if node.has(2) and not inside:
        y = add(y, node.tensor(2))
    return node.from_channels_last(y)


def _dilated(weights: Array, dilations: list[int]) -> Array:
    """Weights with zeros between the taps: Keras has no dilation here beside strides."""
    shape = [(taps - 1) * step + 1 for taps, step in zip(weights.shape[2:], dilations, strict=True)]
    result = np.zeros((*weights.shape[:2], *shape), weights.dtype)
    taps: list[Any] = [slice(None, None, step) for step in dilations]
    result[(..., *taps)] = weights
    return result


def _crops(node: Node, kernel: tuple[int, ...], strides: tuple[int, ...]) -> list[tuple[int, int]]:
    """Cells to cut off in front of and behind what Keras computes without padding; negative: to add.

    Keras computes in * stride + max(kernel - stride, 0) cells.
    """
    axes = len(kernel)
    extra = node.attribute("output_padding", [0] * axes)
    surplus = [max(taps, stride) - taps for taps, stride in zip(kernel, strides, strict=True)]
    mode, wanted = node.attribute("auto_pad", "NOTSET"), node.attribute("output_shape")
    if mode == "NOTSET" and wanted is None:
        flat = node.attribute("pads", [0] * 2 * axes)
        return [(flat[i], flat[axes + i] + surplus[i] - extra[i]) for i in range(axes)]
    if mode == "VALID":
        return [(0, surplus[i] - extra[i]) for i in range(axes)]
    if wanted is None:
        # SAME: in * stride cells come out; like ONNX Runtime, nothing is added where that is more than there is.
        totals = [max(kernel[i] - strides[i] + extra[i], 0) for i in range(axes)]
    else:
        sizes = node.known_shape(0)[2:]
        totals = [strides[i] * (sizes[i] - 1) + extra[i] + kernel[i] - wanted[-axes + i] for i in range(axes)]
    result = []
    for i, total in enumerate(totals):
        before = total // 2 if mode == "SAME_UPPER" else total - total // 2
        before = max(before, 0) if total >= 0 else 0
        result.append((before, total - before + surplus[i] - extra[i]))
    return result
