"""EfficientNet (Tan and Le 2019): MBConv with swish and squeeze and excitation, TensorFlow's padding."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.families.architecture import Architecture, Fault, Writing
from benchmarks.families.pictures import MEAN, STD, pictures
from benchmarks.families.torch_faults import (
    attribute,
    bias_lost,
    exchanged,
    input_as,
    other_class,
    scaled,
    tensor,
    transposed,
    written_as,
)
from benchmarks.families.weights import drawn
from conrepair.ground.graph.kinds import Kind

__all__ = ["ARCHITECTURE"]

_SIZE, _CLASSES = 32, 12


class Swish(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(x)


class BuiltinSwish(Swish):
    """The same."""

    def forward(self, x: Tensor) -> Tensor:
        return F.silu(x)


class HardSwish(Swish):
    def forward(self, x: Tensor) -> Tensor:
        return F.hardswish(x)


class SameConv(nn.Conv2d):
    """Padded as TensorFlow does: more behind than in front."""

    def forward(self, x: Tensor) -> Tensor:
        high = max((-(-x.shape[2] // self.stride[0]) - 1) * self.stride[0] + self.kernel_size[0] - x.shape[2], 0)
        return self._conv_forward(F.pad(x, self.places(high)), self.weight, self.bias)

    def places(self, whole: int) -> tuple[int, int, int, int]:
        front = whole // 2
        return front, whole - front, front, whole - front


class MoreInFront(SameConv):
    def places(self, whole: int) -> tuple[int, int, int, int]:
        behind = whole // 2
        return whole - behind, behind, whole - behind, behind


class SqueezeExcite(nn.Module):
    def __init__(self, width: int, inside: int) -> None:
        super().__init__()
        self.reduce, self.expand, self.act = nn.Conv2d(width, inside, 1), nn.Conv2d(inside, width, 1), Swish()

    def forward(self, x: Tensor) -> Tensor:
        found = self.squeezed(x)
        return torch.sigmoid(self.expand(self.act(self.reduce(found)))) * x

    def squeezed(self, x: Tensor) -> Tensor:
        return x.mean((2, 3), keepdim=True)


class SqueezedByMax(SqueezeExcite):
    def squeezed(self, x: Tensor) -> Tensor:
        return x.amax((2, 3), keepdim=True)


class NotExcited(SqueezeExcite):
    def forward(self, x: Tensor) -> Tensor:
        return x


class MBConv(nn.Module):
    def __init__(self, inside: int, outside: int, kernel: int, stride: int) -> None:
        super().__init__()
        wide = 3 * inside
        self.expand, self.bn0 = nn.Conv2d(inside, wide, 1, bias=False), nn.BatchNorm2d(wide, eps=1e-3)
        self.depthwise = SameConv(wide, wide, kernel, stride, groups=wide, bias=False)
        self.bn1, self.se, self.act = nn.BatchNorm2d(wide, eps=1e-3), SqueezeExcite(wide, 4), Swish()
        self.project, self.bn2 = nn.Conv2d(wide, outside, 1, bias=False), nn.BatchNorm2d(outside, eps=1e-3)
        self.same = inside == outside and stride == 1

    def forward(self, x: Tensor) -> Tensor:
        found = self.act(self.bn0(self.expand(x)))
        found = self.se(self.act(self.bn1(self.depthwise(found))))
        found = self.bn2(self.project(found))
        return self.with_shortcut(x, found) if self.same else found

    def with_shortcut(self, x: Tensor, found: Tensor) -> Tensor:
        return x + found


class ActivatedAtTheEnd(MBConv):
    def with_shortcut(self, x: Tensor, found: Tensor) -> Tensor:
        return self.act(x + found)


class EfficientNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(MEAN)[:, None, None])
        self.register_buffer("std", torch.tensor(STD)[:, None, None])
        self.stem, self.bn, self.act = SameConv(3, 12, 3, 2, bias=False), nn.BatchNorm2d(12, eps=1e-3), Swish()
        self.block1, self.block2, self.block3 = MBConv(12, 16, 3, 2), MBConv(16, 16, 5, 1), MBConv(16, 16, 3, 1)
        self.head_conv, self.head_bn = nn.Conv2d(16, 32, 1, bias=False), nn.BatchNorm2d(32, eps=1e-3)
        self.fc = nn.Linear(32, _CLASSES)

    def forward(self, image: Tensor) -> Tensor:
        x = (image / 255 - self.mean) / self.std
        x = self.act(self.bn(self.stem(x)))
        x = self.act(self.head_bn(self.head_conv(self.block3(self.block2(self.block1(x))))))
        return F.softmax(self.fc(x.mean((2, 3))), self.axis)

    axis = 1


def _squeezed_linearly(network: nn.Module) -> None:
    network.block2.se.act = nn.ReLU()


def _samples(generator: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    return {"image": np.round(pictures(generator, count, _SIZE, high=255.0))}


ARCHITECTURE = Architecture(
    "efficientnet",
    "torch",
    lambda: drawn(EfficientNet(), 306, _samples(np.random.default_rng(1), 64), gain=1.4),
    _samples,
    {
        "bgr": input_as(lambda image: image.flip(1)),
        "std-lost": tensor(Kind.PREPROCESSING, "std", torch.ones_like),
        "scaled-already": input_as(lambda image: image / 255),
        "more-in-front": other_class(Kind.HYPERPARAMETERS, SameConv, MoreInFront),
        "hardswish-for-swish": other_class(Kind.GRAPH, Swish, HardSwish),
        "squeezed-by-max": other_class(Kind.GRAPH, SqueezeExcite, SqueezedByMax, first=True),
        "not-excited": other_class(Kind.GRAPH, SqueezeExcite, NotExcited, first=True),
        "activated-at-the-end": other_class(Kind.GRAPH, MBConv, ActivatedAtTheEnd),
        "relu-in-the-squeeze": Fault(Kind.GRAPH, _squeezed_linearly),
        "epsilon": attribute("eps", 1e-5, "BatchNorm2d"),
        "kernels-transposed": transposed("block2.depthwise.weight"),
        "means-exchanged": exchanged("block2.bn2.running_mean", "block3.bn2.running_mean"),
        "variance-as-deviation": tensor(Kind.PARAMETERS, "block1.bn1.running_var", lambda numbers: numbers.sqrt()),
        "weight-scaled": scaled("head_conv.weight", 1.1),
        "bias-lost": bias_lost("block3.se.expand"),
    },
    {
        "builtin-swish": written_as(Swish, BuiltinSwish),
        "softmax-of-the-last-axis": Writing(lambda network: setattr(network, "axis", -1)),
    },
)
