"""Operators that compute along axes: one number of many, or as many as there are; losses of classes."""

from __future__ import annotations

from conrepair_lab.generate.settings.domains import Axes
from conrepair_lab.generate.settings.expressions import product
from conrepair_lab.generate.settings.setting import Setting
from conrepair_lab.generate.settings.tensors import Range
from conrepair_lab.generate.specifications.specification import operator


@operator("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin")
@operator("ReduceProd", "ReduceSum", "ReduceSumSquare")
def over_axes(s: Setting) -> None:
    x = s.input("data", domain=(1e-2, float("inf")) if s.op == "ReduceLogSum" else None)
    kept = s.has("noop_with_empty_axes") and s.flag("noop_with_empty_axes")
    said = s.value("axes", Axes(x.rank, 0, distinct=False)) if s.has("axes") else ()
    if any(axis < 0 for axis in said):
        s.require(product(x.shape) > 0, "ONNX Runtime doesn't find axes from the end of an empty tensor")
    axes = tuple(axis % x.rank for axis in said)
    if not axes and not kept:
        axes = tuple(range(x.rank))
    if s.op == "ReduceMean" or x.dtype == "bool":
        s.require(product(x.shape[axis] for axis in set(axes)) > 0, "the mean of nothing, or its largest truth value")
    if s.flag("keepdims"):
        s.output([1 if axis in axes else size for axis, size in enumerate(x.shape)])
    else:
        s.output([size for axis, size in enumerate(x.shape) if axis not in axes])


@operator("ArgMax", "ArgMin")
def place(s: Setting) -> None:
    x = s.input("data", rank=range(1, 7))
    axis = s.axis("axis", x.rank)
    s.require(x.shape[axis] > 0, "the largest of nothing")
    kept = [1] if s.flag("keepdims") else []
    s.flag("select_last_index")
    s.output([*x.shape[:axis], *kept, *x.shape[axis + 1 :]])


@operator("Hardmax", "LogSoftmax", "Softmax")
def shares(s: Setting) -> None:
    x = s.input("input", rank=range(1, 7))
    s.axis("axis", x.rank)
    s.output(x.shape)


@operator("CumSum")
@operator("CumProd")
def running(s: Setting) -> None:
    x = s.input("x", rank=range(1, 7))
    s.axis("axis", x.rank)
    s.flag("exclusive")
    s.flag("reverse")
    s.output(x.shape)


@operator()
def lp_normalization(s: Setting) -> None:
    x = s.input("input", rank=range(1, 7))
    s.axis("axis", x.rank)
    s.choice("p", (1, 2))
    s.output(x.shape)


@operator("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def of_classes(s: Setting) -> None:
    x = s.input(rank=range(2, 7), least=1)
    n, classes, *space = x.shape
    s.input(None, [n, *space], values=Range(0, classes - 1))
    for name in ("weight", "weights"):
        s.maybe(s.input, name, [classes])
    s.maybe(s.integer, "ignore_index", None)
    summed = s.choice("reduction", ("none", "mean", "sum")) != "none"
    s.output(() if summed else [n, *space])
    if s.has("log_prob"):
        s.output(x.shape)
