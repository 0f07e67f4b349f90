"""MobileNetV3-like (Howard et al. 2019): inverted residuals, depthwise convolutions, squeeze and excitation."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.families.architecture import Architecture, Fault, Writing
from benchmarks.families.pictures import pictures
from benchmarks.families.torch_faults import attribute, bias_lost, input_as, other_class, scaled, tensor, transposed
from benchmarks.families.weights import drawn
from conrepair.ground.graph.kinds import Kind

__all__ = ["ARCHITECTURE"]

_SIZE, _CLASSES = 32, 10


class SqueezeExcite(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.pool, self.fc1, self.fc2 = nn.AdaptiveAvgPool2d(1), nn.Conv2d(width, 8, 1), nn.Conv2d(8, width, 1)
        self.relu, self.gate = nn.ReLU(), nn.Hardsigmoid()

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gate(self.fc2(self.relu(self.fc1(self.pool(x)))))


class Sigmoidal(SqueezeExcite):
    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(self.fc2(self.relu(self.fc1(self.pool(x)))))


class AddsGate(SqueezeExcite):
    def forward(self, x: Tensor) -> Tensor:
        return x + self.gate(self.fc2(self.relu(self.fc1(self.pool(x)))))


class InvertedResidual(nn.Module):
    def __init__(self, inside: int, outside: int, stride: int, act: type[nn.Module]) -> None:
        super().__init__()
        wide = 3 * inside
        self.expand, self.bn1, self.act1 = nn.Conv2d(inside, wide, 1, bias=False), nn.BatchNorm2d(wide), act()
        self.depthwise = nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False)
        self.bn2, self.act2, self.se = nn.BatchNorm2d(wide), act(), SqueezeExcite(wide)
        self.project, self.bn3 = nn.Conv2d(wide, outside, 1, bias=False), nn.BatchNorm2d(outside)
        self.same = stride == 1 and inside == outside

    def forward(self, x: Tensor) -> Tensor:
        found = self.act1(self.bn1(self.expand(x)))
        found = self.se(self.act2(self.bn2(self.depthwise(found))))
        found = self.bn3(self.project(found))
        return x + found if self.same else found


class PaddedBelow(InvertedResidual):
    """As TensorFlow pads strided convolutions."""

    def forward(self, x: Tensor) -> Tensor:
        if self.same:
            return super().forward(x)
        found = nn.functional.pad(self.act1(self.bn1(self.expand(x))), (0, 1, 0, 1))
        found = nn.functional.conv2d(found, self.depthwise.weight, stride=2, groups=self.depthwise.groups)
        return self.bn3(self.project(self.se(self.act2(self.bn2(found)))))


class MobileNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.bn, self.act = nn.Conv2d(3, 12, 3, 2, 1, bias=False), nn.BatchNorm2d(12), nn.Hardswish()
        self.block1 = InvertedResidual(12, 12, 1, nn.ReLU6)
        self.block2 = InvertedResidual(12, 16, 2, nn.Hardswish)
        self.block3 = InvertedResidual(16, 16, 1, nn.Hardswish)
        self.pool, self.hidden, self.act3 = nn.AdaptiveAvgPool2d(1), nn.Linear(16, 32), nn.Hardswish()
        self.classifier = nn.Linear(32, _CLASSES)

    def forward(self, image: Tensor) -> Tensor:
        x = self.act(self.bn(self.stem(image)))
        x = self.block3(self.block2(self.block1(x)))
        return self.classifier(self.act3(self.hidden(torch.flatten(self.pool(x), 1))))


def _activation(one: type, make: type[nn.Module]) -> Fault:
    def change(network: nn.Module) -> None:
        for name, module in list(network.named_modules()):
            if type(module) is one:
                network.set_submodule(name, make())

    return Fault(Kind.GRAPH, change)


def _transposed_everywhere(network: nn.Module) -> None:
    with torch.no_grad():
        for name, module in network.named_modules():
            if name.endswith("depthwise"):
                module.weight.copy_(module.weight.transpose(2, 3).clone())


def _hardswish_in_pieces(network: nn.Module) -> None:
    class Pieces(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * nn.functional.relu6(x + 3) / 6

    for name, module in list(network.named_modules()):
        if isinstance(module, nn.Hardswish):
            network.set_submodule(name, Pieces())


def _samples(generator: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    return {"image": 2 * pictures(generator, count, _SIZE) - 1}


ARCHITECTURE = Architecture(
    "mobilenet",
    "torch",
    lambda: drawn(MobileNet(), 203, _samples(np.random.default_rng(1), 64), gain=1.4),
    _samples,
    {
        "bgr": input_as(lambda image: image.flip(1)),
        "scaled-to-one": input_as(lambda image: (image + 1) / 2),
        "depthwise-transposed": Fault(Kind.PARAMETERS, _transposed_everywhere),
        "one-depthwise-transposed": transposed("block3.depthwise.weight"),
        "padded-below": other_class(Kind.HYPERPARAMETERS, InvertedResidual, PaddedBelow),
        "relu-for-relu6": Fault(
            Kind.HYPERPARAMETERS, lambda network: network.block1.set_submodule("act1", nn.ReLU(), strict=False)
        ),
        "swish-for-hardswish": _activation(nn.Hardswish, nn.SiLU),
        "sigmoid-for-hardsigmoid": other_class(Kind.GRAPH, SqueezeExcite, Sigmoidal),
        "gate-added": other_class(Kind.GRAPH, SqueezeExcite, AddsGate, first=True),
        "epsilon": attribute("eps", 1e-2, "BatchNorm2d"),
        "variance-lost": tensor(Kind.PARAMETERS, "block3.bn2.running_var", torch.ones_like),
        "depthwise-scaled": scaled("block2.depthwise.weight", 1.1),
        "bias-lost": bias_lost("block2.se.fc2"),
        "shortcut-lost": attribute("same", False, "block3", kind=Kind.GRAPH),
    },
    {"hardswish-in-pieces": Writing(_hardswish_in_pieces)},
)
