"""Windows that are made one number."""

from __future__ import annotations

from conrepair.generate.setting import Setting
from conrepair.generate.specifications.registry import operator
from conrepair.generate.windows import slid


@operator("MaxPool")
def largest(s: Setting) -> None:
    n, c, *space = s.input("X", rank=(3, 4, 5), least=1).shape
    kernel = s.integers("kernel_shape", 1, 5, len(space))
    ceiled = s.flag("ceil_mode")
    shape = [n, c, *slid(s, space, kernel, ceiled=ceiled)]
    s.output(shape)
    if s.has("Indices"):
        s.flag("storage_order")
        s.output(shape)


@operator("GlobalAveragePool", "GlobalMaxPool")
def of_all(s: Setting) -> None:
    n, c, *space = s.input("X", rank=range(3, 6), least=1).shape
    s.output([n, c, *(1 for _ in space)])
