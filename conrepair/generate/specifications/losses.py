"""Losses of classes."""

from __future__ import annotations

from conrepair.generate.setting import Setting
from conrepair.generate.specifications.specification import operator
from conrepair.generate.tensors import Range


@operator("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def of_classes(s: Setting) -> None:
    x = s.input(rank=range(2, 7), least=1)
    n, classes, *space = x.shape
    s.input(None, [n, *space], values=Range(0, classes - 1))
    for name in ("weight", "weights"):
        if s.has(name):
            s.input(name, [classes])
    if s.has("ignore_index"):
        s.integer("ignore_index", None)
    summed = s.choice("reduction", ("none", "mean", "sum")) != "none"
    s.output(() if summed else [n, *space])
    if s.has("log_prob"):
        s.output(x.shape)
