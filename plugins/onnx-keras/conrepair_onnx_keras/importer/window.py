"""Sliding windows: how far an input is padded, and what TensorFlow calls the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from keras import ops

from conrepair.formats.onnx.passes.explicit_pads import same_padding
from conrepair_onnx_keras.importer.values import Size, known

if TYPE_CHECKING:
    from conrepair_onnx_keras.importer.node import ImportedNode


@dataclass(frozen=True)
class Window:
    """A window that slides over the spatial axes.

    Attributes:
        kernel: Cells along each axis.
        strides: Cells from one position to the next.
        dilations: Cells from one tap to the next.
        pads: Cells put in front of and behind each axis.
        sizes: Spatial sizes of the input.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    sizes: tuple[Size, ...]

    @property
    def extent(self) -> tuple[int, ...]:
        """Cells from the first tap to the last, both included."""
        return tuple((taps - 1) * step + 1 for taps, step in zip(self.kernel, self.dilations, strict=True))

    @property
    def unpadded(self) -> bool:
        """Whether nothing is put around the input."""
        return not any(map(any, self.pads))

    @property
    def is_same(self) -> bool:
        """Whether TensorFlow's SAME puts exactly these cells around the input."""
        return all(
            same_pads(size, extent, stride) == pads
            for size, extent, stride, pads in zip(self.sizes, self.extent, self.strides, self.pads, strict=True)
        )


def window_of(node: ImportedNode, kernel: Sequence[int]) -> Window:
    """The window that a node's attributes describe; refuses where it depends on sizes that aren't known."""
    sizes = tuple(node.shape(0)[2:])
    axes = len(kernel)
    strides = tuple(node.attribute("strides", [1] * axes))
    dilations = tuple(node.attribute("dilations", [1] * axes))
    window = Window(tuple(kernel), strides, dilations, ((0, 0),) * axes, sizes)
    mode = node.attribute("auto_pad", "NOTSET")
    if mode == "VALID":
        return window
    if mode == "NOTSET":
        flat = node.attribute("pads", [0] * 2 * axes)
        pads = tuple(zip(flat[:axes], flat[axes:], strict=True))
        return Window(window.kernel, strides, dilations, pads, sizes)
    found = [same_pads(*item) for item in zip(sizes, window.extent, strides, strict=True)]
    if any(pads is None for pads in found):
        node.refuse(f"with auto_pad={mode} the spatial sizes must be known; fix them with --input")
    pads = tuple(pads[::-1] if mode == "SAME_LOWER" else pads for pads in found if pads is not None)
    return Window(window.kernel, strides, dilations, pads, sizes)


def same_pads(size: Size, extent: int, stride: int) -> tuple[int, int] | None:
    """What SAME puts around an axis, the odd cell behind; None when that depends on an unknown size."""
    total = same_padding(int(size) if known(size) else None, extent, stride)
    return None if total is None else (total // 2, total - total // 2)


def padded(x: Any, pads: Sequence[tuple[int, int]], value: Any = 0) -> Any:
    """A channels-last Keras tensor with cells put around its spatial axes; negative numbers cut off."""
    if any(number < 0 for pair in pads for number in pair):
        cut = [slice(max(-before, 0), -max(-behind, 0) or None) for before, behind in pads]
        x = x[(slice(None), *cut)]
        pads = [(max(before, 0), max(behind, 0)) for before, behind in pads]
    if not any(map(any, pads)):
        return x
    # numpy's bool and int types aren't kept by Keras's files.
    return ops.pad(x, [(0, 0), *pads, (0, 0)], constant_values=np.asarray(value).item())
