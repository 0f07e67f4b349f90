"""ResNet (He et al. 2016), with basic blocks; takes pictures of 0 to 1 and normalizes them itself."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.fusion import fuse_conv_bn_eval

from benchmarks.families.architecture import Architecture, Fault, Writing
from benchmarks.families.pictures import MEAN, STD, pictures
from benchmarks.families.torch_faults import attribute, input_as, other_class, replaced, scaled, tensor, transposed
from benchmarks.families.weights import drawn
from conrepair.ground.graph.kinds import Kind

__all__ = ["ARCHITECTURE"]

_SIZE, _WIDTH, _CLASSES = 32, 16, 10


class Normalize(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(MEAN)[:, None, None])
        self.register_buffer("std", torch.tensor(STD)[:, None, None])

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) / self.std


class NotNormalized(Normalize):
    def forward(self, x: Tensor) -> Tensor:
        return x


class BasicBlock(nn.Module):
    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.relu = nn.ReLU()
        self.downsample = nn.Sequential()
        if stride > 1:
            self.downsample = nn.Sequential(
                nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside)
            )

    def forward(self, x: Tensor) -> Tensor:
        found = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(found + self.downsample(x))


class ReluBeforeSum(BasicBlock):
    def forward(self, x: Tensor) -> Tensor:
        found = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(found) + self.downsample(x)


class NoShortcut(BasicBlock):
    def forward(self, x: Tensor) -> Tensor:
        return self.relu(self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x))))))


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.normalize = Normalize()
        self.conv1, self.bn1 = nn.Conv2d(3, _WIDTH, 7, 2, 3, bias=False), nn.BatchNorm2d(_WIDTH)
        self.relu, self.maxpool = nn.ReLU(), nn.MaxPool2d(3, 2, 1)
        self.layer1 = BasicBlock(_WIDTH, _WIDTH, 1)
        self.layer2 = BasicBlock(_WIDTH, 2 * _WIDTH, 2)
        self.layer3 = BasicBlock(2 * _WIDTH, 2 * _WIDTH, 1)
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(2 * _WIDTH, _CLASSES)

    def forward(self, image: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(self.normalize(image)))))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(torch.flatten(self.avgpool(x), 1))


class MaxInPlaceOfMean(ResNet):
    def forward(self, image: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(self.normalize(image)))))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(torch.flatten(F.adaptive_max_pool2d(x, 1), 1))


def _training(network: nn.Module) -> None:
    """BatchNorm by the statistics of the batch, as of a network that nobody called `eval` of."""
    norm = network.layer2.bn1
    norm.track_running_stats, norm.running_mean, norm.running_var = False, None, None


def _folded(network: nn.Module) -> None:
    """Fold BatchNorm into convolutions."""
    for part in (network, network.layer1, network.layer2, network.layer3):
        for conv, norm in (("conv1", "bn1"), ("conv2", "bn2")):
            if hasattr(part, conv):
                setattr(part, conv, fuse_conv_bn_eval(getattr(part, conv), getattr(part, norm)))
                setattr(part, norm, nn.Identity())


def _mean_by_hand(network: nn.Module) -> None:
    class Mean(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.mean((2, 3), keepdim=True)

    network.avgpool = Mean()


def _samples(generator: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    return {"image": pictures(generator, count, _SIZE)}


ARCHITECTURE = Architecture(
    "resnet",
    "torch",
    lambda: drawn(ResNet(), 201, _samples(np.random.default_rng(1), 64)),
    _samples,
    {
        "bgr": input_as(lambda image: image.flip(1)),
        "not-normalized": other_class(Kind.PREPROCESSING, Normalize, NotNormalized),
        "epsilon": attribute("eps", 1e-2, "BatchNorm2d"),
        "statistics-of-the-batch": Fault(Kind.PARAMETERS, _training, routes=("dynamo",)),  # the other can't write it
        "mean-lost": tensor(Kind.PARAMETERS, "layer1.bn1.running_mean", lambda numbers: numbers * 0),
        "relu-before-sum": other_class(Kind.GRAPH, BasicBlock, ReluBeforeSum, first=True),
        "shortcut-lost": other_class(Kind.GRAPH, BasicBlock, NoShortcut, first=True),
        "pool-padding": replaced(Kind.HYPERPARAMETERS, "maxpool", lambda: nn.MaxPool2d(3, 2, 0, ceil_mode=True)),
        "kernel-transposed": transposed("layer3.conv1.weight"),
        "channels-permuted": tensor(Kind.PARAMETERS, "layer2.conv2.weight", lambda numbers: numbers.roll(1, 0)),
        "weight-scaled": scaled("layer2.conv1.weight", 1.1),
        "dilation": Fault(Kind.HYPERPARAMETERS, lambda network: _dilated(network.layer3.conv2)),
        "activation-lost": replaced(Kind.GRAPH, "layer2.relu", nn.Identity),
        "max-in-place-of-mean": other_class(Kind.GRAPH, ResNet, MaxInPlaceOfMean),
        "labels-off-by-one": tensor(Kind.PARAMETERS, "fc.weight", lambda numbers: numbers.roll(1, 0)),
    },
    {"folded": Writing(_folded), "mean-by-hand": Writing(_mean_by_hand)},
    open_batch=True,
)


def _dilated(convolution: nn.Module) -> None:
    convolution.dilation = convolution.padding = (2, 2)
