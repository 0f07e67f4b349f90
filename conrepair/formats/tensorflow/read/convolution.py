"""Operators of TensorFlow and TFLite with weights or windows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from conrepair.formats.networks.parts import LayerPart, Shape, transposed_window, window
from conrepair.formats.tensorflow.read.view import TensorflowView
from conrepair.ground.graph.layer_graph import Attribute
from conrepair.ground.graph.operators import OPERATORS


def _spatial(view: TensorflowView, values: Sequence[int]) -> tuple[int, ...]:
    """The entries of the axes that a window slides along."""
    return tuple(map(int, values[1:-1] if view.channels_last else values[2:]))


def _sizes(view: TensorflowView, shape: Shape) -> Shape:
    return None if shape is None else _spatial(view, shape)


def _steps(view: TensorflowView, axes: int) -> tuple[tuple[int, ...], tuple[int, ...], str | Sequence[int]]:
    """Strides, dilations and pads."""
    try:
        dilations = _spatial(view, view.option("dilations"))
    except KeyError:
        dilations = (1,) * axes
    padding: str | Sequence[int] = str(view.option("padding")).lower()
    if padding == "explicit":
        pairs = np.reshape(view.option("explicit_paddings"), (-1, 2))
        inner = pairs[1:-1] if view.channels_last else pairs[2:]
        padding = (*inner[:, 0], *inner[:, 1])
    return _spatial(view, view.option("strides")), dilations, padding


def constant_bias(view: TensorflowView, position: int) -> int:
    """The place of a bias that is constant, or isn't there.

    Raises:
        ValueError: if it's computed.
    """
    if view.has(position) and not view.is_constant(position):
        raise ValueError("a bias that is computed")
    return position


def convolution(op: str, view: TensorflowView) -> list[LayerPart]:
    """A convolution, of all channels, of some, or of each by itself; TFLite's have their bias."""
    weight = view.weight()
    kernel = weight.shape[2:]
    attributes = window(kernel, *_steps(view, len(kernel)), _sizes(view, view.shape(0)))
    attributes |= {"group": view.channels() // weight.shape[1]}
    parameters = {"weight": weight, **view.optional(bias=constant_bias(view, 2))}
    return [LayerPart(op, attributes, parameters, view.channels_last, reads=(0,))]


def transposed_convolution(op: str, view: TensorflowView) -> list[LayerPart]:
    """The gradient of the convolution that makes the input's sizes from the output's."""
    weight = view.weight()
    kernel, sizes = weight.shape[2:], (_spatial(view, view.sizes(2)), _spatial(view, view.result_sizes()))
    attributes = transposed_window(kernel, *_steps(view, len(kernel)), sizes)
    parameters = {"weight": weight, **view.optional(bias=constant_bias(view, 3))}
    return [LayerPart(op, attributes, parameters, view.channels_last, reads=(2,))]


def pooling(op: str, view: TensorflowView) -> list[LayerPart]:
    """The largest number of each window, or the mean."""
    kernel = _spatial(view, view.option("ksize"))
    attributes = window(kernel, *_steps(view, len(kernel)), _sizes(view, view.shape(0)))
    return [LayerPart(op, {**OPERATORS[op].attributes, **attributes}, channels_last=view.channels_last)]


def matrix_product(op: str, view: TensorflowView, *, left: str, right: str) -> list[LayerPart]:
    """A product; `left` and `right` are what the options that transpose are called."""
    turned = {"transpose_a": bool(view.option(left)), "transpose_b": bool(view.option(right))}
    attributes: dict[str, Attribute] = {**turned}
    parameters = {}
    for position, (role, name) in enumerate((("left", "transpose_a"), ("weight", "transpose_b"))):
        if view.is_constant(position):  # its numbers are turned
            arrange = (lambda matrix: np.swapaxes(matrix, -1, -2)) if turned[name] else None
            parameters[role], attributes[name] = view.parameter(position, arrange), False
    return [LayerPart(op, attributes, parameters, True)]
