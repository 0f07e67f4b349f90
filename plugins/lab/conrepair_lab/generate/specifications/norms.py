"""Normalizations: operators that give elements a fixed mean and spread."""

from __future__ import annotations

from conrepair_lab.generate.settings.expressions import product
from conrepair_lab.generate.settings.setting import Setting
from conrepair_lab.generate.settings.shapes import Broadcast
from conrepair_lab.generate.specifications.specification import operator

_POSITIVE = (1e-2, float("inf"))


@operator()
def batch_normalization(s: Setting) -> None:
    training = s.flag("training_mode")
    x = s.input("X", rank=range(2 if training else 1, 7))  # ONNX's reference trains with a channel alone
    channels = x.shape[1] if x.rank > 1 else 1
    for name in ("scale", "B"):
        s.input(name, [channels])
    own = ("float32", "float64") if training else None  # of float16 ONNX Runtime overwrites what others read
    s.input("input_mean", [channels], dtypes=own)
    s.input("input_var", [channels], dtypes=own, domain=_POSITIVE)
    _epsilon(s)
    s.real("momentum", 0.0, 1.0, usual=(0.9,))
    s.output(x.shape)
    if training:  # outputs that nobody reads, as of an unknown size: else ONNX Runtime writes them into its inputs
        s.output([None])
        s.output([None])


@operator()
def instance_normalization(s: Setting) -> None:
    x = s.input("input", rank=range(3, 7))
    s.require(product(x.shape[2:]) > 0, "an image without elements")
    s.input("scale", [x.shape[1]])
    s.input("B", [x.shape[1]])
    _epsilon(s)
    s.output(x.shape)


@operator(least_opset=21)
def group_normalization(s: Setting) -> None:
    x = s.input("X", rank=range(2, 7), least=1)
    channels = x.shape[1]
    groups = s.integer("num_groups", 1, channels)
    s.require(channels % groups == 0, "channels that are no multiple of the groups")
    for name in ("scale", "bias"):
        s.input(name, [channels])
    _epsilon(s)
    s.choice("stash_type", (1, 10, 11))
    s.output(x.shape)


@operator()
def layer_normalization(s: Setting) -> None:
    x = s.input("X", rank=range(1, 7))
    axis = s.axis("axis", x.rank)
    s.require(product(x.shape[axis:]) > 0, "a mean of nothing")
    s.input("Scale", Broadcast(x.shape, one_way=True))
    s.maybe(s.input, "B", Broadcast(x.shape, one_way=True))
    _epsilon(s)
    s.choice("stash_type", (1,))
    s.output(x.shape)
    for name in ("Mean", "InvStdDev"):
        if s.has(name):
            s.output([*x.shape[:axis], *(1 for _ in x.shape[axis:])], "float32")


@operator()
def rms_normalization(s: Setting) -> None:
    x = s.input("X", rank=range(1, 7))
    axis = s.axis("axis", x.rank)
    s.require(product(x.shape[axis:]) > 0, "a mean of nothing")
    s.input("scale", Broadcast(x.shape[axis:], one_way=True))
    _epsilon(s)
    s.choice("stash_type", (1, 10, 11))
    s.output(x.shape)


@operator()
def lrn(s: Setting) -> None:
    x = s.input("X", rank=4)
    size = s.integer("size", 1)
    s.require(size % 2 == 1, "ONNX Runtime has as many neighbours before as behind")
    s.real("alpha", 1e-7, 100.0, usual=(1e-4,))
    s.real("beta", 1e-7, 100.0, usual=(0.75,))
    s.real("bias", 1e-7, 100.0, usual=(1.0,))
    s.output(x.shape)


@operator()
def mean_variance_normalization(s: Setting) -> None:
    x = s.input("X", rank=range(1, 7), dtypes=["float32"])
    s.require(s.has("axes"), "ONNX's shape inference knows no usual axes")
    s.axes("axes", x.rank, distinct=False)
    s.output(x.shape)


def _epsilon(s: Setting) -> None:
    s.real("epsilon", 1e-7, 100.0, usual=(1e-5, 1e-3))
