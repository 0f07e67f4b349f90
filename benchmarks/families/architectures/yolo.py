"""A detector as YOLO's (Redmon et al. 2016 and later): two scales, boxes and scores decoded in the graph."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.families.architecture import Architecture, Fault, Writing
from benchmarks.families.pictures import pictures
from benchmarks.families.torch_faults import (
    attribute,
    bias_lost,
    input_as,
    other_class,
    replaced,
    scaled,
    tensor,
    written_as,
)
from benchmarks.families.weights import drawn
from conrepair.ground.graph.kinds import Kind

__all__ = ["ARCHITECTURE"]

_SIZE, _CLASSES, _ANCHORS = 48, 4, 2
_PRIORS = (((6.0, 8.0), (12.0, 10.0)), ((16.0, 20.0), (30.0, 24.0)))


class ConvBlock(nn.Module):
    def __init__(self, inside: int, outside: int, kernel: int = 3, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inside, outside, kernel, stride, kernel // 2, bias=False)
        self.bn, self.act = nn.BatchNorm2d(outside, eps=1e-3), nn.SiLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.bn(self.conv(x)))


class SPPF(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.one, self.pool, self.two = ConvBlock(width, 12, 1), nn.MaxPool2d(5, 1, 2), ConvBlock(48, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.one(x)
        first = self.pool(x)
        second = self.pool(first)
        return self.two(torch.cat([x, first, second, self.pool(second)], 1))


class SPP(SPPF):
    """The same."""

    def forward(self, x: Tensor) -> Tensor:
        x = self.one(x)
        pools = [F.max_pool2d(x, size, 1, size // 2) for size in (5, 9, 13)]
        return self.two(torch.cat([x, *pools], 1))


class PoolsReversed(SPPF):
    def forward(self, x: Tensor) -> Tensor:
        x = self.one(x)
        first = self.pool(x)
        second = self.pool(first)
        return self.two(torch.cat([self.pool(second), second, first, x], 1))


class Head(nn.Module):
    def __init__(self, width: int, level: int) -> None:
        super().__init__()
        self.conv, self.stride = nn.Conv2d(width, _ANCHORS * (5 + _CLASSES), 1), 8 * 2**level
        self.register_buffer("priors", torch.tensor(_PRIORS[level]).view(1, _ANCHORS, 1, 1, 2))

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(x)
        batch, _, rows, columns = x.shape
        x = x.view(batch, _ANCHORS, 5 + _CLASSES, rows, columns).permute(0, 1, 3, 4, 2)
        place, size, scores = x.split((2, 2, 1 + _CLASSES), -1)
        place = (self.spread(place.sigmoid()) + self.grid(rows, columns)) * self.stride
        size = self.sized(size) * self.priors
        found = torch.cat([place, size, scores.sigmoid()], -1)
        return found.reshape(batch, _ANCHORS * rows * columns, 5 + _CLASSES)

    def spread(self, place: Tensor) -> Tensor:
        return place * 2 - 0.5

    def sized(self, size: Tensor) -> Tensor:
        return (size.sigmoid() * 2) ** 2

    def grid(self, rows: int, columns: int) -> Tensor:
        y, x = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
        return torch.stack([x, y], -1).float()


class RowsAndColumns(Head):
    def grid(self, rows: int, columns: int) -> Tensor:
        return super().grid(rows, columns).flip(-1)


class GridFromCentre(Head):
    def grid(self, rows: int, columns: int) -> Tensor:
        return super().grid(rows, columns) + 0.5


class ByExponential(Head):
    """As version 3 sizes boxes."""

    def sized(self, size: Tensor) -> Tensor:
        return size.exp()


class NotSpread(Head):
    def spread(self, place: Tensor) -> Tensor:
        return place


class Yolo(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(ConvBlock(3, 8, 3, 2), ConvBlock(8, 16, 3, 2))
        self.fine, self.coarse, self.spp = ConvBlock(16, 24, 3, 2), ConvBlock(24, 32, 3, 2), SPPF(32)
        self.lateral, self.merge = ConvBlock(32, 16, 1), ConvBlock(40, 24)
        self.head0, self.head1 = Head(24, 0), Head(32, 1)

    def forward(self, images: Tensor) -> Tensor:
        fine = self.fine(self.stem(images))
        coarse = self.spp(self.coarse(fine))
        fine = self.merge(self.joined(self.larger(self.lateral(coarse)), fine))
        return torch.cat([self.head0(fine), self.head1(coarse)], 1)

    def larger(self, x: Tensor) -> Tensor:
        return F.interpolate(x, scale_factor=2.0, mode="nearest")

    def joined(self, above: Tensor, fine: Tensor) -> Tensor:
        return torch.cat([above, fine], 1)


class Bilinear(Yolo):
    def larger(self, x: Tensor) -> Tensor:
        return F.interpolate(x, scale_factor=2.0, mode="bilinear")


class JoinedBehind(Yolo):
    def joined(self, above: Tensor, fine: Tensor) -> Tensor:
        return torch.cat([fine, above], 1)


class Repeated(Yolo):
    """The same."""

    def larger(self, x: Tensor) -> Tensor:
        return x.repeat_interleave(2, 2).repeat_interleave(2, 3)


def _priors_exchanged(network: nn.Module) -> None:
    one, two = network.head0.priors.clone(), network.head1.priors.clone()
    network.head0.priors, network.head1.priors = two, one


def _samples(generator: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    return {"images": pictures(generator, count, _SIZE)}


ARCHITECTURE = Architecture(
    "yolo",
    "torch",
    lambda: drawn(Yolo(), 308, _samples(np.random.default_rng(1), 64), gain=1.6),
    _samples,
    {
        "bgr": input_as(lambda images: images.flip(1)),
        "scaled-twice": input_as(lambda images: images / 255),
        "rows-and-columns": other_class(Kind.GRAPH, Head, RowsAndColumns),
        "grid-from-the-centre": other_class(Kind.PARAMETERS, Head, GridFromCentre),
        "sizes-by-exponential": other_class(Kind.GRAPH, Head, ByExponential),
        "not-spread": other_class(Kind.GRAPH, Head, NotSpread),
        "priors-exchanged": Fault(Kind.PARAMETERS, _priors_exchanged),
        "stride-of-the-other": attribute("stride", 16, "head0", kind=Kind.PARAMETERS),
        "bilinear": other_class(Kind.HYPERPARAMETERS, Yolo, Bilinear),
        "joined-behind": other_class(Kind.GRAPH, Yolo, JoinedBehind),
        "pools-reversed": other_class(Kind.GRAPH, SPPF, PoolsReversed),
        "mean-pools": replaced(Kind.GRAPH, "spp.pool", lambda: nn.AvgPool2d(5, 1, 2)),
        "epsilon": attribute("eps", 1e-5, "BatchNorm2d"),
        "weight-scaled": scaled("merge.conv.weight", 1.1),
        "bias-lost": bias_lost("head1.conv"),
        "classes-off-by-one": tensor(Kind.PARAMETERS, "head0.conv.weight", lambda numbers: numbers.roll(1, 0)),
    },
    {
        "pools-side-by-side": written_as(SPPF, SPP),
        "repeated": Writing(lambda network: setattr(network, "__class__", Repeated)),
    },
)
