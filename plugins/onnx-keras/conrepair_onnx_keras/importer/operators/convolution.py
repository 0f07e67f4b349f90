"""Convolutions: weights go into Keras's own layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from conrepair_onnx_keras.importer.indexing import add
from conrepair_onnx_keras.importer.node import ImportedNode, operator
from conrepair_onnx_keras.importer.values import Array, Size, known
from conrepair_onnx_keras.importer.window import Window, padded, window_of

_CONV = {1: keras.layers.Conv1D, 2: keras.layers.Conv2D, 3: keras.layers.Conv3D}
_DEPTHWISE = {1: keras.layers.DepthwiseConv1D, 2: keras.layers.DepthwiseConv2D}
_TRANSPOSED = {1: keras.layers.Conv1DTranspose, 2: keras.layers.Conv2DTranspose, 3: keras.layers.Conv3DTranspose}


@operator(ignores=("kernel_shape",), refuses="more than three spatial axes")
def conv(node: ImportedNode) -> Any:
    apply = _layer if node.is_constant(1) else _with_tensor_weights
    return node.from_channels_last(
        convolved(node, node.channels_last(0), node.shape(1), lambda x, settings: apply(node, x, settings))
    )


def convolved(
    node: ImportedNode, x: Any, weights: Sequence[Size], apply: Callable[[Any, dict[str, Any]], Any]
) -> Any:
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


def _unsupported_strides(node: ImportedNode, window: Window, weights: Sequence[Size]) -> bool:
    mixed = max(window.strides) > 1 and max(window.dilations) > 1
    return mixed or (_is_depthwise(node, weights) and len(set(window.strides)) > 1)


def _is_depthwise(node: ImportedNode, weights: Sequence[Size]) -> bool:
    return bool(node.attribute("group", 1) > 1 and weights[1] == 1 and len(weights) - 2 in _DEPTHWISE)


def _layer(node: ImportedNode, x: Any, settings: dict[str, Any]) -> Any:
    own_bias = node.is_constant(2) or not node.has(2)
    y = layer_of(node, x, node.constant(1), [node.constant(2)] if node.has(2) and own_bias else [], settings)
    return y if own_bias else add(y, node.tensor(2))


def layer_of(node: ImportedNode, x: Any, weights: Array, biases: Sequence[Array], settings: dict[str, Any]) -> Any:
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


def _with_tensor_weights(node: ImportedNode, x: Any, settings: dict[str, Any]) -> Any:
    y = convolved_with_tensor(node, x, node.tensor(1), settings)
    return add(y, node.tensor(2)) if node.has(2) else y


def convolved_with_tensor(node: ImportedNode, x: Any, weights: Any, settings: dict[str, Any]) -> Any:
    """As `layer_of`, with weights that the model computes; those of groups `keras.ops` doesn't take at once."""
    groups, rank = node.attribute("group", 1), len(weights.shape)
    taps = ops.transpose(weights, (*range(2, rank), 1, 0))
    if groups == 1:
        return ops.conv(x, taps, data_format="channels_last", **settings)
    pairs = zip(ops.split(x, groups, axis=-1), ops.split(taps, groups, axis=-1), strict=True)
    return ops.concatenate([ops.conv(*pair, data_format="channels_last", **settings) for pair in pairs], axis=-1)


@operator(ignores=("kernel_shape",), refuses="more than three spatial axes")
def conv_transpose(node: ImportedNode) -> Any:
    spatial = node.rank(0) - 2
    if spatial not in _TRANSPOSED:
        node.refuse(f"Keras has no transposed convolution over {spatial} spatial axes")
    dilations = node.attribute("dilations", [1] * spatial)
    kernel = tuple((n - 1) * step + 1 for n, step in zip(node.known_shape(1)[2:], dilations, strict=True))
    strides = tuple(node.attribute("strides", [1] * spatial))
    crops = _crops(node, kernel, strides)
    groups, x = node.attribute("group", 1), node.channels_last(0)
    parts = [x] if groups == 1 else ops.split(x, groups, axis=-1)
    biases: list[Array] = []
    if node.is_constant(1):
        # Keras computes in * stride + max(kernel - stride, 0) cells.
        surplus = [max(stride - taps, 0) for taps, stride in zip(kernel, strides, strict=True)]
        crops = [(before, behind + more) for (before, behind), more in zip(crops, surplus, strict=True)]
        if node.is_constant(2) and groups == 1 and all(behind >= 0 for _, behind in crops):
            biases = [node.constant(2)]
        weights = np.split(_dilated(node.constant(1), dilations), groups)
        results = [
            node.layer(
                _TRANSPOSED[taps.ndim - 2],
                part,
                weights=[np.moveaxis(taps, (1, 0), (-2, -1)), *biases],
                filters=taps.shape[1],
                kernel_size=taps.shape[2:],
                strides=strides,
                padding="valid",
                use_bias=bool(biases),
                data_format="channels_last",
            )
            for part, taps in zip(parts, weights, strict=True)
        ]
    else:
        if max(strides) > 1:
            node.known_shape(0, range(2, spatial + 2))
        order = (spatial, spatial + 1, *range(spatial))
        weights = ops.split(node.tensor(1, order), groups, axis=spatial)
        results = [
            _turned_convolution(part, taps, strides, dilations) for part, taps in zip(parts, weights, strict=True)
        ]
    y = results[0] if groups == 1 else ops.concatenate(results, axis=-1)
    y = padded(y, [(-before, -behind) for before, behind in crops])
    return node.from_channels_last(add(y, node.tensor(2)) if node.has(2) and not biases else y)


def _turned_convolution(x: Any, taps: Any, strides: Sequence[int], dilations: Sequence[int]) -> Any:
    """A transposed convolution as a convolution of cells that lie apart: that of `keras.ops` 3.15 fails in files."""
    spatial = len(strides)
    for axis, step in enumerate(strides, 1):
        if step > 1:
            x = _spaced(x, axis, step)
    around = [(n - 1) * step for n, step in zip(taps.shape[:spatial], dilations, strict=True)]
    x = padded(x, [(more, more) for more in around])
    turned = ops.flip(taps, axis=tuple(range(spatial)))
    return ops.conv(x, turned, 1, "valid", data_format="channels_last", dilation_rate=tuple(dilations))


def _spaced(x: Any, axis: int, step: int) -> Any:
    """Zeros between the cells of an axis."""
    shape = [-1 if size is None else size for size in x.shape]
    pads = [(0, 0)] * (axis + 1) + [(0, step - 1)] + [(0, 0)] * (len(shape) - axis - 1)
    apart = ops.pad(ops.expand_dims(x, axis + 1), pads)
    long = ops.reshape(apart, [*shape[:axis], max(shape[axis] * step, -1), *shape[axis + 1 :]])
    return long[(*[slice(None)] * axis, slice(0, 1 - step))]


def _dilated(weights: Array, dilations: list[int]) -> Array:
    """Weights with zeros between the taps: Keras has no dilation here beside strides."""
    shape = [(taps - 1) * step + 1 for taps, step in zip(weights.shape[2:], dilations, strict=True)]
    result = np.zeros((*weights.shape[:2], *shape), weights.dtype)
    taps: list[Any] = [slice(None, None, step) for step in dilations]
    result[(..., *taps)] = weights
    return result


def _crops(node: ImportedNode, kernel: tuple[int, ...], strides: tuple[int, ...]) -> list[tuple[int, int]]:
    """Cells to cut off in front of and behind (in - 1) * stride + kernel cells; negative: to add."""
    axes = len(kernel)
    extra = node.attribute("output_padding", [0] * axes)
    mode, wanted = node.attribute("auto_pad", "NOTSET"), node.attribute("output_shape")
    if mode == "NOTSET" and wanted is None:
        flat = node.attribute("pads", [0] * 2 * axes)
        return [(flat[i], flat[axes + i] - extra[i]) for i in range(axes)]
    if mode == "VALID":
        return [(0, -extra[i]) for i in range(axes)]
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
        result.append((before, total - before - extra[i]))
    return result
