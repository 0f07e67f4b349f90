"""ONNX's Resize in PyTorch: every axis is interpolated by a matrix, in all modes and coordinate systems.

torch.nn.functional.interpolate knows some of them only, and onnx2torch takes it for all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from conrepair.importer.interpolation import Axis, coordinates, cubic, linear, nearest, weights

__all__ = ["resize"]


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
        size = int(tensor.shape[axis])
        length = int(np.floor(size * np.float32(given[axis]))) if given else int(wanted[axis])
        resized = Axis(size, length, given[axis] if given else length / size)
        where = coordinates(resized, coordinate_transformation_mode)
        if mode == "nearest":
            tensor = tensor.index_select(axis, torch.from_numpy(nearest(where, nearest_mode, resized)))
        else:
            kernel = linear if mode == "linear" else cubic(cubic_coeff_a)
            matrix = weights(where, resized, kernel, antialias=False, exclude_outside=bool(exclude_outside))
            factors = torch.from_numpy(matrix).to(tensor.dtype)
            tensor = torch.matmul(tensor.movedim(axis, -1), factors.T).movedim(-1, axis)
    return tensor
