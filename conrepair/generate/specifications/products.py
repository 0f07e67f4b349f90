"""Products of matrices."""

from __future__ import annotations

from conrepair.generate.setting import Setting
from conrepair.generate.shapes import Broadcast, Size
from conrepair.generate.specifications.registry import operator


@operator("MatMul")
def matrices(s: Setting) -> None:
    *batch, rows, depth = s.input("A", rank=range(2, 7), least=1).shape
    *others, _, columns = s.input("B", [*batch, depth, Size()]).shape
    s.output([*s.broadcast(batch, others), rows, columns])


@operator("Gemm")
def general(s: Setting) -> None:
    a = s.input("A", rank=2, least=1)
    rows, depth = reversed(a.shape) if s.flag("transA") else a.shape
    turned = s.flag("transB")
    b = s.input("B", [Size(), depth] if turned else [depth, Size()])
    result = (rows, b.shape[0 if turned else 1])
    s.real("alpha", -10.0, 10.0, usual=(1.0, 0.5))
    s.real("beta", -10.0, 10.0, usual=(1.0, 0.0))
    if s.has("C"):
        s.input("C", Broadcast(result, one_way=True))
    s.output(result)
