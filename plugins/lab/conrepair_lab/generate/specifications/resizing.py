"""Images made larger or smaller."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from conrepair_lab.generate.settings.expressions import Number, known
from conrepair_lab.generate.settings.ports import NotAllowedError
from conrepair_lab.generate.settings.setting import Setting
from conrepair_lab.generate.settings.shapes import Dims, Either, Size
from conrepair_lab.generate.settings.tensors import FLOATS, Range
from conrepair_lab.generate.specifications.specification import operator

_COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize")
_ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
_FACTORS = (1.0, 1.0, 1.0, 0.5, 1.5, 2.0, 3.0)
_POLICIES = ("stretch", "not_larger", "not_smaller")


@operator()
def resize(s: Setting) -> None:
    mode = s.choice("mode", ("nearest", "linear", "cubic"))
    smooth = s.has("antialias") and s.flag("antialias")
    s.require(mode != "nearest" or not smooth, "nearest pixels are not smooth")
    x = s.input("X", rank=range(1, 7), least=1, dtypes=FLOATS if mode == "cubic" and not smooth else None)
    free = _free(mode, x.rank, smooth=smooth)
    s.require(bool(free), "ONNX Runtime resizes 2 to 5 axes smoothly")
    policy = None
    if s.has("sizes"):
        stated = s.has("keep_aspect_ratio_policy")
        policy = s.choice("keep_aspect_ratio_policy", _POLICIES) if stated else "stretch"
    negative = policy in (None, "stretch")  # otherwise ONNX Runtime leaves such axes as they are
    axes = s.axes("axes", x.rank, negative=negative) if s.has("axes") else tuple(range(x.rank))
    coordinates = _COORDINATES if s.opset < 19 else (*_COORDINATES, "half_pixel_symmetric")
    if s.choice("coordinate_transformation_mode", coordinates) == "tf_crop_and_resize":
        s.input("roi", [2 * len(axes)], values=Range(0.0, 1.0), dtypes=("float32",))
        s.real("extrapolation_value", -10.0, 10.0, usual=(0.0,))
    if mode == "nearest":
        s.choice("nearest_mode", _ROUNDINGS)
    elif mode == "cubic":
        s.real("cubic_coeff_a", -2.0, 2.0, usual=(-0.75, -0.5))
    if s.has("exclude_outside"):
        excludes = s.flag("exclude_outside")
        s.require(not excludes or mode == "cubic" or smooth, "pixels outside that aren't looked at")
    shape = list(x.shape)
    for axis, size in zip(axes, _sizes(s, [shape[axis] for axis in axes], axes, free, policy), strict=True):
        s.require(size >= 1, "an image without elements")
        shape[axis] = size
    s.output(shape)


class _Free(NamedTuple):
    """Axes that ONNX Runtime resizes together, and whether only to larger sizes."""

    axes: Collection[int]
    larger: bool = False


def _free(mode: str, rank: int, *, smooth: bool) -> list[_Free]:
    if mode == "nearest":
        return [_Free(range(rank))]
    if rank == 4:
        return [_Free((2, 3)), _Free((1, 2), larger=mode == "cubic" and not smooth)]
    if rank == 2 or (rank in (3, 5) and mode == "linear"):
        return [_Free(range(rank)[-3:])]
    return []


def _sizes(
    s: Setting, space: Sequence[Number], axes: Sequence[int], free: Sequence[_Free], policy: str | None
) -> list[Number]:
    if policy is None:
        factors = s.reals("scales", 2**-10, float("inf"), len(axes), usual=_FACTORS, step=2**-3)
        _fit(s, factors, axes, free)
        return [_scaled(size, factor) for size, factor in zip(space, factors, strict=True)]
    if policy == "stretch":
        choices = [
            Dims(
                tuple(
                    Size(size if some.larger else 1) if axis in some.axes else size
                    for axis, size in zip(axes, space, strict=True)
                )
            )
            for some in free
        ]
        return list(s.sizes("sizes", Either(choices)))
    wanted = s.sizes("sizes", [Size() for _ in axes])
    if not all(map(known, (*wanted, *space))):
        raise NotAllowedError("a ratio that is kept isn't solved for")
    ratios = [np.float32(new) / np.float32(size) for new, size in zip(wanted, space, strict=True)]
    ratio = min(ratios) if policy == "not_larger" else max(ratios)
    _fit(s, [float(ratio) for _ in axes], axes, free)
    return [int(np.floor(ratio * np.float32(size) + np.float32(0.5))) for size in space]


def _fit(s: Setting, factors: Sequence[float], axes: Sequence[int], free: Sequence[_Free]) -> None:
    changed = {axis: factor for axis, factor in zip(axes, factors, strict=True) if factor != 1}
    fits = [
        changed.keys() <= set(some.axes) and (not some.larger or min(changed.values(), default=1) >= 1)
        for some in free
    ]
    s.require(any(fits), "axes that ONNX Runtime doesn't resize together")


def _scaled(size: Number, factor: float) -> Number:
    """A size, multiplied in 32 bits and rounded down."""
    if known(size):
        return int(np.float32(factor) * np.float32(size))
    over, under = float(factor).as_integer_ratio()
    return size * over // under
