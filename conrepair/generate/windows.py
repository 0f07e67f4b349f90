"""Sizes behind windows that slide over axes: what convolutions and pools share."""

from __future__ import annotations

from collections.abc import Sequence

from conrepair.generate.expressions import Number, ceil_div, most
from conrepair.generate.setting import Setting

__all__ = ["slid"]


def slid(
    s: Setting, space: Sequence[Number], kernel: Sequence[Number], *, dilated: bool = True, ceiled: bool = False
) -> list[Number]:
    """Draw how a window slides over axes, and say how many places it has along each.

    Args:
        s: The node.
        space: Sizes of the axes.
        kernel: Of the window.
        dilated: Whether the operator has dilations.
        ceiled: Whether the last place may lie half outside.
    """
    count = len(space)
    strides = s.integers("strides", 1, 4, count) if s.has("strides") else (1,) * count
    dilations = s.integers("dilations", 1, 3, count) if dilated and s.has("dilations") else (1,) * count
    reach = [(size - 1) * step + 1 for size, step in zip(kernel, dilations, strict=True)]
    mode = s.choice("auto_pad", ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")) if s.has("auto_pad") else "NOTSET"
    if mode.startswith("SAME"):
        return [ceil_div(size, step) for size, step in zip(space, strides, strict=True)]
    padded = list(space)
    if mode == "NOTSET" and s.has("pads"):
        pads = s.integers("pads", 0, [size - 1 for size in (*kernel, *kernel)])
        padded = [size + pads[axis] + pads[axis + count] for axis, size in enumerate(space)]
    result: list[Number] = []
    for size, wide, step in zip(padded, reach, strides, strict=True):
        s.require(wide <= size, "a window that is wider than what it slides over")
        places = ceil_div(size - wide, step) if ceiled else (size - wide) // step
        result.append(most(places + 1, 0))
    return result
