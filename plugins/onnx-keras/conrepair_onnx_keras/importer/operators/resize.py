"""Resize and Upsample: every axis on its own, by index, by Keras's own layer, or by a matrix."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import keras
import numpy as np
import sympy
from keras import ops

from conrepair.formats.converters.interpolation import Axis, coordinates, cubic, linear, nearest, weights
from conrepair_onnx_keras.importer.node import ImportedNode, operator
from conrepair_onnx_keras.importer.values import Array, Size, channels_last, known

_PROBES = (2, 3, 4, 5, 7, 8, 16, 31, 64)
_HALF_PIXEL = {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel"}


@operator(
    "Resize",
    "Upsample",
    constant=("roi", "scales", "sizes"),
    # looked at where they make a difference
    ignores=("antialias", "cubic_coeff_a", "exclude_outside", "extrapolation_value", "nearest_mode"),
    refuses="fractional factors of unknown sizes",
)
def resize(node: ImportedNode) -> Any:
    lengths, scales = _targets(node)
    order = channels_last(node.rank(0)) if node.rank(0) > 2 else tuple(range(node.rank(0)))
    mode, x = node.attribute("mode", "nearest"), node.tensor(0, order)
    changed = [axis for axis, scale in enumerate(scales) if scale != 1 or lengths[axis] != node.shape(0)[axis]]
    if _coordinate_mode(node) == "tf_crop_and_resize":
        _check_unscaled(node, _cropped_axes(node), scales)
    if _coordinate_mode(node) == "align_corners":
        _check_whole(node, changed, scales)
    factors = _factors(node, changed, lengths, scales)
    if factors is not None:
        x = _upsampled(node, x, factors, "nearest" if mode == "nearest" else "bilinear")
        return node.output(x, order, lengths)
    for axis in sorted(changed, key=lambda axis: scales[axis]):  # what shrinks goes first: less to compute
        x = _along(node, x, axis, order[axis], lengths, scales)
    return node.output(x, order, lengths)


def _check_whole(node: ImportedNode, changed: list[int], scales: list[float]) -> None:
    """The standard aligns with the corner of size x scale, ONNX Runtime and PyTorch with that of the rounded size."""
    for axis in changed:
        size = node.shape(0)[axis]
        whole = known(size) and float(np.float32(int(size)) * np.float32(scales[axis])).is_integer()
        if known(size) and not whole and not node.has(3):
            node.refuse(
                f"with align_corners and a factor of {scales[axis]:g} of {size} cells, runtimes disagree; give sizes"
            )


def _targets(node: ImportedNode) -> tuple[list[Size], list[float]]:
    """Sizes of the output and, for each axis, the factor that coordinates are computed with."""
    source, place = list(node.shape(0)), 2 if node.operator == "Resize" and node.opset > 10 else 1
    axes = [int(axis) % len(source) for axis in node.attribute("axes", range(len(source)))]
    lengths, scales = list(source), [1.0] * len(source)
    if node.has(3):
        wanted = node.sizes(3)
        given = [_ratio(node, wanted[index], source[axis]) for index, axis in enumerate(axes)]
        policy = node.attribute("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            one = (min if policy == "not_larger" else max)(given)
            node.known_shape(0, axes)
            wanted = [math.floor(float(one) * int(source[axis]) + 0.5) for axis in axes]
            given = [one] * len(axes)
        for index, axis in enumerate(axes):
            lengths[axis], scales[axis] = wanted[index], float(given[index])
        return lengths, scales
    for index, axis in enumerate(axes):
        scale = np.float32(np.asarray(node.constant_or_attribute("scales", place))[index])
        lengths[axis], scales[axis] = _scaled(source[axis], scale), float(scale)
    return lengths, scales


def _scaled(size: Size, scale: np.float32) -> Size:
    if known(size):
        return int(np.float32(int(size)) * scale)
    return size if scale == 1 else sympy.floor(size * sympy.nsimplify(float(scale)))


def _ratio(node: ImportedNode, length: Size, size: Size) -> Fraction:
    ratio = sympy.cancel(sympy.sympify(length) / sympy.sympify(size))
    if not ratio.is_rational or ratio.free_symbols:
        node.refuse(f"the factor {length} / {size} must be known; fix sizes with --input")
    return Fraction(int(ratio.p), int(ratio.q))


def _coordinate_mode(node: ImportedNode) -> str:
    if node.operator == "Upsample" or node.opset < 11:
        return "asymmetric"
    return str(node.attribute("coordinate_transformation_mode", "half_pixel"))


def _cropped_axes(node: ImportedNode) -> list[int]:
    rank = node.rank(0)
    return [int(axis) % rank for axis in node.attribute("axes", range(rank))]


def _region(node: ImportedNode, axis: int) -> tuple[float, float]:
    if _coordinate_mode(node) != "tf_crop_and_resize":
        return 0.0, 1.0
    axes, region = _cropped_axes(node), np.asarray(node.constant(1)).tolist()
    place = axes.index(axis)
    return region[place], region[len(axes) + place]


def _check_unscaled(node: ImportedNode, changed: list[int], scales: list[float]) -> None:
    """Where an axis keeps its size, the standard crops it and ONNX Runtime doesn't."""
    for axis in changed:
        if scales[axis] == 1 and _region(node, axis) != (0.0, 1.0):
            node.refuse(f"axis {axis} keeps its size and has a region of interest, on which implementations disagree")


# --- Keras's own layer ------------------------------------------------------------------------------------


def _factors(node: ImportedNode, changed: list[int], lengths: list[Size], scales: list[float]) -> list[int] | None:
    """Whole factors of the spatial axes, where Keras's UpSampling layers do exactly what is asked for."""
    mode, rank = node.attribute("mode", "nearest"), node.rank(0)
    if not changed or rank not in {3, 4, 5} or min(changed) < 2:
        return None
    if not all(scales[axis].is_integer() and scales[axis] >= 1 for axis in changed):
        return None
    if mode == "nearest":
        exact = all(_repeats(node, axis, lengths, scales) for axis in changed)
    else:
        exact = mode != "cubic" and _coordinate_mode(node) in _HALF_PIXEL and rank == 4 and "float" in node.dtype(0)
    # A single cell is where pytorch_half_pixel differs, but a factor above 1 leads to more than one.
    return [int(scale) for scale in scales[2:]] if exact else None


def _repeats(node: ImportedNode, axis: int, lengths: list[Size], scales: list[float]) -> bool:
    """Whether taking the nearest cell means repeating each; unknown sizes are tried out."""
    size, factor = node.shape(0)[axis], int(scales[axis])
    tried = [int(size)] if known(size) else _PROBES
    return all(
        np.array_equal(_chosen(node, _axis(node, axis, one, one * factor, scales)), np.repeat(np.arange(one), factor))
        for one in tried
    )


def _upsampled(node: ImportedNode, x: Any, factors: list[int], interpolation: str) -> Any:
    if len(factors) == 2:
        return node.layer(keras.layers.UpSampling2D, x, size=tuple(factors), interpolation=interpolation)
    kind = keras.layers.UpSampling1D if len(factors) == 1 else keras.layers.UpSampling3D
    return node.layer(kind, x, size=factors[0] if len(factors) == 1 else tuple(factors))


# --- axis by axis -----------------------------------------------------------------------------------------


def _along(node: ImportedNode, x: Any, axis: int, place: int, lengths: list[Size], scales: list[float]) -> Any:
    """Resize one axis, which lies at `place` of the Keras tensor."""
    size, length = node.shape(0)[axis], lengths[axis]
    mode = node.attribute("mode", "nearest")
    if not (known(size) and known(length)):
        if mode == "nearest" and scales[axis].is_integer() and _repeats(node, axis, lengths, scales):
            return ops.repeat(x, int(scales[axis]), axis=place)
        node.refuse(f"the size of axis {axis} must be known for this mode and factor; fix it with --input")
    described = _axis(node, axis, int(size), int(length), scales)
    if mode == "nearest":
        return _filled(node, _picked(x, _chosen(node, described), place), described, place)
    if "float" not in node.dtype(0):
        node.refuse(f"{node.dtype(0)} would have to be interpolated, where rounding isn't defined")
    kernel = cubic(node.attribute("cubic_coeff_a", -0.75)) if mode == "cubic" else linear
    matrix = weights(
        coordinates(described, _coordinate_mode(node)),
        described,
        kernel,
        antialias=bool(node.attribute("antialias", 0)),
        exclude_outside=bool(node.attribute("exclude_outside", 0)),
    )
    return _filled(node, _multiplied(node, x, matrix.astype(node.dtype(0)), place), described, place)


def _axis(node: ImportedNode, axis: int, size: int, length: int, scales: list[float]) -> Axis:
    return Axis(size, length, scales[axis], _region(node, axis))


def _chosen(node: ImportedNode, axis: Axis) -> Array:
    mode = node.attribute("nearest_mode", "round_prefer_floor")
    if node.operator == "Upsample" or node.opset < 11:
        mode = "simple"
    return nearest(coordinates(axis, _coordinate_mode(node)), mode, axis)


def _picked(x: Any, indices: Array, place: int) -> Any:
    """The cells of an axis in a new order: by a slice if that says it, else by their numbers."""
    start, step = int(indices[0]), int(indices[1] - indices[0]) if len(indices) > 1 else 1
    if step > 0 and np.array_equal(indices, start + step * np.arange(len(indices))):
        index = [slice(None)] * len(x.shape)
        index[place] = slice(start, int(indices[-1]) + 1, step)
        return x[tuple(index)]
    return ops.take(x, indices, axis=place)


def _multiplied(node: ImportedNode, x: Any, matrix: Array, place: int) -> Any:
    """Each row of cells along an axis times a matrix, without moving the axis."""
    if place == len(x.shape) - 1:
        return ops.matmul(x, matrix.T)
    behind = x.shape[place + 1 :]
    if len(behind) == 1:
        return ops.matmul(matrix, x)
    if None in behind or x.shape[:place].count(None) > 1:
        node.refuse("the sizes of all its axes but the batch must be known; fix them with --input")
    front = [-1 if size is None else size for size in x.shape[:place]]
    flat = ops.reshape(x, [*front, x.shape[place], math.prod(behind)])
    return ops.reshape(ops.matmul(matrix, flat), [*front, len(matrix), *behind])


def _filled(node: ImportedNode, x: Any, axis: Axis, place: int) -> Any:
    """With tf_crop_and_resize, cells that look outside the input get a value of their own."""
    if _coordinate_mode(node) != "tf_crop_and_resize":
        return x
    where = coordinates(axis, "tf_crop_and_resize")
    outside = (where < 0) | (where > axis.size - 1)
    if not outside.any():
        return x
    mask = outside.reshape([-1 if other == place else 1 for other in range(len(x.shape))])
    return ops.where(mask, node.attribute("extrapolation_value", 0.0), x)
