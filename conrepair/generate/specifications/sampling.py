"""Images read between their pixels."""

from __future__ import annotations

from conrepair.generate.setting import Setting
from conrepair.generate.shapes import Dims, Either, Size
from conrepair.generate.specifications.specification import operator
from conrepair.generate.windows import image


@operator("GridSample")
def at_a_grid(s: Setting) -> None:
    n, c, *space = image(s, ranks=(4, 5))
    places = s.input("grid", [n, *(Size(0) for _ in space), len(space)]).shape[1:-1]
    linear, cubic = ("linear", "cubic") if s.opset >= 20 else ("bilinear", "bicubic")
    s.choice("mode", (linear, "nearest", cubic) if len(space) == 2 else (linear, "nearest"))
    s.choice("padding_mode", ("zeros", "border", "reflection"))
    s.flag("align_corners")
    s.output([n, c, *places])


@operator("AffineGrid")
def grid(s: Setting) -> None:
    theta = s.input("theta", Either((Dims((Size(0), 2, 3)), Dims((Size(0), 3, 4)))))
    n, dims, _ = theta.shape
    kernel = theta.dtype != "float16" or dims != 2
    s.require((n != 1) | kernel, "ONNX Runtime has no kernel for 16 bits, and the body that it takes then fails")
    _, _, *space = s.sizes("size", [n, Size(0), *(Size() for _ in range(dims))])
    s.flag("align_corners")
    s.output([n, *space, dims])
