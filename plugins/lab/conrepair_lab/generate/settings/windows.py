"""Windows that slide over axes: what convolutions and pools share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from conrepair_lab.generate.settings.expressions import Number, ceil_div, known, least
from conrepair_lab.generate.settings.setting import Setting

AUTO_PAD = ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")


@dataclass(frozen=True)
class Sliding:
    """How a window slides over axes, whatever its own size.

    Attributes:
        space: Sizes of the axes.
        strides: How far it goes, for each axis.
        dilations: How far its elements are from each other.
        pads: What is before the axes, then what is behind; None for as much as it takes ("SAME").
    """

    space: Sequence[Number]
    strides: Sequence[int]
    dilations: Sequence[int]
    pads: Sequence[int] | None

    def widest(self) -> list[Number | None]:
        """The largest windows that fit; None for any."""
        if self.pads is None:
            return [None for _ in self.space]
        return [
            (size - 1) // step + 1 if known(size) else None
            for size, step in zip(self._padded(self.pads), self.dilations, strict=True)
        ]

    def reach(self, kernel: Sequence[Number]) -> list[Number]:
        """How wide a window is with its dilations."""
        return [(size - 1) * step + 1 for size, step in zip(kernel, self.dilations, strict=True)]

    def places(self, s: Setting, kernel: Sequence[Number], *, ceiled: bool = False) -> list[Number]:
        """How many places a window has along each axis.

        Args:
            s: The node.
            kernel: Sizes of the window.
            ceiled: Whether the last place may lie half outside, if it begins inside.
        """
        if self.pads is None:
            s.require(
                all(step == 1 for step in self.dilations), "ONNX Runtime pads to the same size without dilations"
            )
            return [ceil_div(size, stride) for size, stride in zip(self.space, self.strides, strict=True)]
        wide = self.reach(kernel)
        result: list[Number] = []
        for axis, (size, padded) in enumerate(zip(self.space, self._padded(self.pads), strict=True)):
            stride = self.strides[axis]
            beyond = padded - wide[axis]
            s.require(beyond >= 0, "a window that is wider than what it slides over")
            if ceiled:
                places, inside = ceil_div(beyond, stride) + 1, ceil_div(size + self.pads[axis], stride)
                s.require((places <= inside) | (s.opset >= 22), "a last place outside, which ONNX Runtime leaves out")
                result.append(least(places, inside))
            else:
                result.append(beyond // stride + 1)
        return result

    def _padded(self, pads: Sequence[int]) -> list[Number]:
        return [size + pads[axis] + pads[axis + len(self.space)] for axis, size in enumerate(self.space)]


def sliding(s: Setting, space: Sequence[Number]) -> Sliding:
    """Draw how a window slides over axes."""
    count = len(space)
    strides = s.integers("strides", 1, None, count) if s.has("strides") else (1,) * count
    dilations = s.integers("dilations", 1, None, count) if s.has("dilations") else (1,) * count
    mode = s.choice("auto_pad", AUTO_PAD) if s.has("auto_pad") else "NOTSET"
    if mode.startswith("SAME"):
        return Sliding(space, strides, dilations, None)
    pads = s.integers("pads", 0, None, 2 * count) if mode == "NOTSET" and s.has("pads") else (0,) * (2 * count)
    return Sliding(space, strides, dilations, pads)


def image(s: Setting, name: str = "X", ranks: Sequence[int] = (3, 4, 5)) -> tuple[Number, ...]:
    """Draw an input of which only the first axis, the batch, may have no elements, and give its sizes."""
    shape = s.input(name, rank=ranks).shape
    for size in shape[1:]:
        s.require(size >= 1, "an image without elements")
    return shape
