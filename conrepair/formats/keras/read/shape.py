"""Layers of Keras that move numbers around, and those that merge tensors."""

from __future__ import annotations

import numpy as np
from keras import layers

from conrepair.formats.keras.read.ops import BINARY, along, shaped
from conrepair.formats.keras.read.parts import KerasCall, channels_last
from conrepair.formats.networks.parts import PREVIOUS, LayerPart, Rules
from conrepair.ground.graph.layer_graph import Attribute

RULES = Rules()
RULES.of("Reshape", layers.Reshape)(shaped)
RULES.of("Concat", layers.Concatenate)(along)


@RULES.of("Reshape", layers.Flatten)
def _flatten(op: str, call: KerasCall) -> list[LayerPart]:
    if not channels_last(call.operation) and call.rank > 2:
        raise ValueError("moves the channels before it flattens")
    return shaped(op, call)


@RULES.of("Transpose", layers.Permute)
def _permute(op: str, call: KerasCall) -> list[LayerPart]:
    return [LayerPart(op, {"perm": (0, *map(int, call.operation.dims))})]


def _spatial_axes(call: KerasCall) -> tuple[int, ...]:
    first = 1 if channels_last(call.operation) else 2
    return tuple(range(first, first + call.rank - 2))


def _pairs(value: object) -> tuple[tuple[int, int], ...]:
    """Paddings and croppings of one axis are a pair, of several a pair for each."""
    numbers = np.asarray(value).reshape(-1, 2)
    return tuple((int(begin), int(end)) for begin, end in numbers)


@RULES.of("Pad", layers.ZeroPadding1D, layers.ZeroPadding2D, layers.ZeroPadding3D)
def _padding(op: str, call: KerasCall) -> list[LayerPart]:
    begins, ends = [0] * call.rank, [0] * call.rank
    for axis, (begin, end) in zip(_spatial_axes(call), _pairs(call.operation.padding), strict=True):
        begins[axis], ends[axis] = begin, end
    attributes: dict[str, Attribute] = {"pads": (*begins, *ends), "mode": "constant", "value": 0.0}
    return [LayerPart(op, attributes, channels_last=channels_last(call.operation))]


@RULES.of("Slice", layers.Cropping1D, layers.Cropping2D, layers.Cropping3D)
def _cropping(op: str, call: KerasCall) -> list[LayerPart]:
    axes, pairs, shape = _spatial_axes(call), _pairs(call.operation.cropping), call.shapes[0]
    if shape is None:
        raise ValueError("unknown sizes")
    attributes: dict[str, Attribute] = {
        "starts": tuple(begin for begin, _ in pairs),
        "ends": tuple(shape[axis] - end for axis, (_, end) in zip(axes, pairs, strict=True)),
        "axes": axes,
        "steps": (1,) * len(axes),
    }
    return [LayerPart(op, attributes, channels_last=channels_last(call.operation))]


_INTERPOLATIONS = {"nearest": "nearest", "bilinear": "linear", "bicubic": "cubic"}


@RULES.of("Resize", layers.UpSampling1D, layers.UpSampling2D, layers.UpSampling3D)
def _up_sampling(op: str, call: KerasCall) -> list[LayerPart]:
    layer = call.operation
    mode = _INTERPOLATIONS.get(getattr(layer, "interpolation", "nearest"))
    if mode is None:
        raise ValueError("an interpolation that the vocabulary doesn't have")
    scales = [1.0] * call.rank
    for axis, scale in zip(_spatial_axes(call), np.atleast_1d(layer.size), strict=True):
        scales[axis] = float(scale)
    attributes: dict[str, Attribute] = {
        "mode": mode,
        "coordinate_transformation_mode": "asymmetric" if mode == "nearest" else "half_pixel",
        "nearest_mode": "floor",
        "cubic_coeff_a": -0.5 if mode == "cubic" else -0.75,
        "scales": tuple(scales),
    }
    return [LayerPart(op, attributes, channels_last=channels_last(layer))]


def _merge(op: str, call: KerasCall) -> list[LayerPart]:
    """A sum (product, ...) of any number of tensors as one operator after the other.

    Raises:
        ValueError: if the tensors have different numbers of axes: Keras aligns them in a way of its own.
    """
    shapes = call.shapes
    if len({None if shape is None else len(shape) for shape in shapes}) > 1 or call.masked:
        raise ValueError("of tensors of different ranks")
    parts = [LayerPart(op, {"constant_first": False}, reads=(0, 1), shape=_broadcast(shapes[:2]))]
    for index in range(2, len(shapes)):
        shape = _broadcast(shapes[: index + 1])
        parts.append(LayerPart(op, {"constant_first": False}, reads=(PREVIOUS, index), shape=shape))
    return parts


def _broadcast(shapes: tuple[tuple[int, ...] | None, ...]) -> tuple[int, ...] | None:
    known = [shape for shape in shapes if shape is not None]
    return np.broadcast_shapes(*known) if len(known) == len(shapes) else None


RULES.named({getattr(layers, name): op for name, op in BINARY.items() if hasattr(layers, name)}, _merge)
