"""A U-Net (Ronneberger et al. 2015): a transposed convolution, a bilinear resize, skips by concatenation."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.families.architecture import Architecture, Fault, Writing
from benchmarks.families.pictures import pictures
from benchmarks.families.torch_faults import attribute, bias_lost, other_class, replaced, scaled, tensor
from benchmarks.families.weights import drawn
from conrepair.ground.graph.kinds import Kind

__all__ = ["ARCHITECTURE"]

_SIZE = 24


def _double(inside: int, outside: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inside, outside, 3, padding=1),
        nn.BatchNorm2d(outside),
        nn.LeakyReLU(0.1),
        nn.Conv2d(outside, outside, 3, padding=1),
        nn.GroupNorm(4, outside),
        nn.ELU(),
    )


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down1, self.down2, self.bottom = _double(3, 8), _double(8, 16), _double(16, 16)
        self.pool = nn.MaxPool2d(2)
        self.up2, self.up1 = nn.ConvTranspose2d(16, 16, 2, 2), nn.Conv2d(16, 8, 1)
        self.left2, self.left1 = _double(32, 16), _double(16, 8)
        self.head = nn.Conv2d(8, 2, 1)

    def forward(self, image: Tensor) -> Tensor:
        one = self.down1(image)
        two = self.down2(self.pool(one))
        x = self.left2(self.joined(self.up2(self.bottom(self.pool(two))), two))
        x = self.left1(self.joined(self.up1(self.resized(x)), one))
        return torch.sigmoid(self.head(x))

    def joined(self, x: Tensor, skip: Tensor) -> Tensor:
        return torch.cat([skip, x], 1)

    def resized(self, x: Tensor) -> Tensor:
        return F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)


class SkipBehind(UNet):
    def joined(self, x: Tensor, skip: Tensor) -> Tensor:
        return torch.cat([x, skip], 1)


class Nearest(UNet):
    def resized(self, x: Tensor) -> Tensor:
        return F.interpolate(x, scale_factor=2.0, mode="nearest")


class Corners(UNet):
    def resized(self, x: Tensor) -> Tensor:
        return F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=True)


class Bicubic(UNet):
    def resized(self, x: Tensor) -> Tensor:
        return F.interpolate(x, scale_factor=2.0, mode="bicubic", align_corners=False)


class ToSize(UNet):
    """The same."""

    def resized(self, x: Tensor) -> Tensor:
        size = (2 * x.shape[2], 2 * x.shape[3])
        return F.interpolate(x, size=size, mode="bilinear", align_corners=False)


def _slope_by_max(network: nn.Module) -> None:
    class Slope(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.maximum(x, 0.1 * x)

    for name, module in list(network.named_modules()):
        if isinstance(module, nn.LeakyReLU):
            network.set_submodule(name, Slope())


def _grouped(network: nn.Module) -> None:
    """GroupNorm with other groups: the parameters fit."""
    network.left2[4].num_groups = 2


def _samples(generator: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    return {"image": pictures(generator, count, _SIZE) - 0.5}


ARCHITECTURE = Architecture(
    "unet",
    "torch",
    lambda: drawn(UNet(), 204, _samples(np.random.default_rng(1), 64), gain=1.5),
    _samples,
    {
        "nearest": other_class(Kind.HYPERPARAMETERS, UNet, Nearest),
        "corners": other_class(Kind.HYPERPARAMETERS, UNet, Corners),
        "bicubic": other_class(Kind.HYPERPARAMETERS, UNet, Bicubic),
        "skip-behind": other_class(Kind.GRAPH, UNet, SkipBehind),
        "up-transposed": tensor(Kind.PARAMETERS, "up2.weight", lambda numbers: numbers.transpose(0, 1)),
        "up-turned": tensor(Kind.PARAMETERS, "up2.weight", lambda numbers: numbers.flip(2, 3)),
        "groups": Fault(Kind.HYPERPARAMETERS, _grouped),
        "slope": attribute("negative_slope", 0.3, "LeakyReLU"),
        "alpha": attribute("alpha", 0.5, "down2.5"),
        "mean-pool": replaced(Kind.GRAPH, "pool", lambda: nn.AvgPool2d(2)),
        "activation-lost": replaced(Kind.GRAPH, "bottom.2", nn.Identity),
        "bias-lost": bias_lost("up2"),
        "epsilon": attribute("eps", 1e-1, "GroupNorm"),
        "weight-scaled": scaled("left1.0.weight", 1.1),
        "edges-repeated": attribute("padding_mode", "replicate", "down1.0", kind=Kind.GRAPH),
    },
    {
        "to-size": Writing(lambda network: setattr(network, "__class__", ToSize)),
        "slope-by-max": Writing(_slope_by_max),
    },
)
