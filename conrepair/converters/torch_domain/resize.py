"""ONNX's Resize in PyTorch: every axis is interpolated by a matrix, in all modes and coordinate systems.

torch.nn.functional.interpolate knows some of them only, and onnx2torch takes it for all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

__all__ = ["resize"]

Array = npt.NDArray[np.float64]


def resize(
    tensor: torch.Tensor,
    region: Any = None,
    scales: Any = None,
    sizes: Any = None,
    *,
    mode: str = "nearest",
    coordinate_transformation_mode: str = "half_pixel",
    nearest_mode: str = "round_prefer_floor",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
) -> torch.Tensor:
    """Resize the axes whose sizes change, which must be known (not symbolic).

    Args:
        tensor: Of any rank.
        region: Only used by a coordinate system that isn't known here.
        scales: A number for each axis, or empty.
        sizes: Used when there are no scales.
        mode: "nearest", "linear" or "cubic".
        coordinate_transformation_mode: ONNX's, without "tf_crop_and_resize".
        nearest_mode: ONNX's.
        cubic_coeff_a: Of cubic interpolation.
        exclude_outside: Whether weights outside the tensor count as 0.
        extrapolation_value: Not used by the coordinate systems that are known.

    Raises:
        NotImplementedError: for "tf_crop_and_resize".
    """
    del region, extrapolation_value
    if coordinate_transformation_mode == "tf_crop_and_resize":
        raise NotImplementedError("Resize with tf_crop_and_resize")
    given = [] if scales is None else [float(scale) for scale in scales]
    wanted = [] if sizes is None or given else list(sizes)
    for axis in range(tensor.ndim):
        if (given and given[axis] == 1) or (not given and wanted[axis] == tensor.shape[axis]):
            continue
        length = int(tensor.shape[axis])
        new = int(np.floor(length * np.float32(given[axis]))) if given else int(wanted[axis])
        scale = given[axis] if given else new / length
        places = _coordinates(new, length, scale, coordinate_transformation_mode)
        if mode == "nearest":
            indices = torch.from_numpy(_nearest(places, length, nearest_mode))
            tensor = tensor.index_select(axis, indices)
        else:
            matrix = _matrix(places, length, mode, cubic_coeff_a, bool(exclude_outside))
            weights = torch.from_numpy(matrix).to(tensor.dtype)
            tensor = torch.matmul(tensor.movedim(axis, -1), weights.T).movedim(-1, axis)
    return tensor


def _coordinates(new: int, length: int, scale: float, system: str) -> Array:
    """Where each new element lies in the old axis."""
    index = np.arange(new, dtype=np.float64)
    if system == "align_corners":
        stretched = length * scale  # not rounded, as ONNX defines it
        return index * (length - 1) / (stretched - 1) if stretched != 1 else np.zeros(new)
    if system == "asymmetric":
        return index / scale
    if system == "pytorch_half_pixel" and new == 1:
        return np.zeros(1)
    return (index + 0.5) / scale - 0.5


def _nearest(places: Array, length: int, rounding: str) -> npt.NDArray[np.int64]:
    if rounding == "ceil":
        rounded = np.ceil(places)
    elif rounding == "floor":
        rounded = np.floor(places)
    elif rounding == "round_prefer_ceil":
        rounded = np.floor(places + 0.5)
    else:
        rounded = np.ceil(places - 0.5)
    result: npt.NDArray[np.int64] = np.clip(rounded, 0, length - 1).astype(np.int64)
    return result


def _matrix(places: Array, length: int, mode: str, a: float, exclude: bool) -> Array:
    """Weights of the old elements (columns) in the new ones (rows)."""
    base = np.floor(places)
    offset = places - base
    if mode == "linear":
        neighbours = {0: 1 - offset, 1: offset}
    else:
        near, far = 1 - offset, 2 - offset
        neighbours = {
            -1: ((a * (offset + 1) - 5 * a) * (offset + 1) + 8 * a) * (offset + 1) - 4 * a,
            0: ((a + 2) * offset - (a + 3)) * offset**2 + 1,
            1: ((a + 2) * near - (a + 3)) * near**2 + 1,
            2: ((a * far - 5 * a) * far + 8 * a) * far - 4 * a,
        }
    matrix = np.zeros((len(places), length))
    for step, weights in neighbours.items():
        columns = (base + step).astype(np.int64)
        inside = (columns >= 0) & (columns < length)
        kept = np.where(inside, weights, 0) if exclude else weights
        np.add.at(matrix, (np.arange(len(places)), np.clip(columns, 0, length - 1)), kept)
    return matrix / matrix.sum(axis=1, keepdims=True) if exclude else matrix
