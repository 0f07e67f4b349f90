"""Operators that make one number of many."""

from __future__ import annotations

from conrepair.generate.setting import Setting
from conrepair.generate.specifications.registry import operator


@operator("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin")
@operator("ReduceProd", "ReduceSum", "ReduceSumSquare", least_opset=18)
def over_axes(s: Setting) -> None:
    x = s.input("data", rank=range(1, 7), least=1)
    axes = s.axes("axes", x.rank) if s.has("axes") else tuple(range(x.rank))
    if s.flag("keepdims"):
        s.output([1 if axis in axes else size for axis, size in enumerate(x.shape)])
    else:
        s.output([size for axis, size in enumerate(x.shape) if axis not in axes])


@operator("ArgMax", "ArgMin")
def place(s: Setting) -> None:
    x = s.input("data", rank=range(1, 7), least=1)
    axis = s.axis("axis", x.rank)
    kept = [1] if s.flag("keepdims") else []
    s.flag("select_last_index")
    s.output([*x.shape[:axis], *kept, *x.shape[axis + 1 :]])
