"""Families of networks: a seed draws depths, widths, activations."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from benchmarks.rightness import sequences
from benchmarks.rightness.layers import Branches, Channels, Residual, Shuffle, activation, conv, inverted
from conrepair.ground.data.tensor_spec import TensorSpec

__all__ = ["FAMILIES", "inputs_of", "network"]

Draw = np.random.Generator
Shape = tuple[int, ...]


def network(family: str, seed: int) -> nn.Module:
    """A network; what's drawn depends on the arguments only."""
    return FAMILIES[family](np.random.default_rng(seed))[0]


def inputs_of(family: str, seed: int) -> tuple[TensorSpec, ...]:
    """What it takes."""
    _, shape = FAMILIES[family](np.random.default_rng(seed))
    if family == "text":
        return (TensorSpec("", ("batch", *shape), "int64", high=sequences.WORDS),)
    return (TensorSpec("", ("batch", *shape), "float32"),)


def _head(draw: Draw, channels: int) -> list[nn.Module]:
    """Pictures to classes."""
    classes = int(draw.integers(4, 12))
    if draw.integers(2):
        return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(channels, classes)]
    return [nn.MaxPool2d(2), nn.Conv2d(channels, classes, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()]


def _picture(draw: Draw) -> Shape:
    return 3, int(draw.choice([12, 16, 20])), int(draw.choice([12, 16, 20]))


def _plain(draw: Draw) -> tuple[nn.Module, Shape]:
    widths = [3, *(int(draw.integers(6, 20)) for _ in range(int(draw.integers(2, 5))))]
    body = [conv(draw, one, two, int(draw.choice([1, 3, 5]))) for one, two in itertools.pairwise(widths)]
    return nn.Sequential(*body[:1], nn.MaxPool2d(3, 2, 1), *body[1:], *_head(draw, widths[-1])), _picture(draw)


def _resnet(draw: Draw) -> tuple[nn.Module, Shape]:
    width = int(draw.integers(8, 20))
    blocks = [
        Residual(
            nn.Sequential(conv(draw, width, width), nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width)),
            nn.ReLU(),
        )
        for _ in range(int(draw.integers(2, 4)))
    ]
    return nn.Sequential(conv(draw, 3, width, stride=2), *blocks, *_head(draw, width)), _picture(draw)


def _mobile(draw: Draw) -> tuple[nn.Module, Shape]:
    width = 4 * int(draw.integers(2, 5))
    blocks = [inverted(draw, width, width) for _ in range(int(draw.integers(1, 4)))]
    body = nn.Sequential(conv(draw, 3, width, stride=2), *blocks, inverted(draw, width, width + 4))
    return nn.Sequential(body, *_head(draw, width + 4)), _picture(draw)


class _UNet(nn.Module):
    def __init__(self, draw: Draw) -> None:
        super().__init__()
        width = int(draw.integers(6, 14))
        self.down, self.low = conv(draw, 3, width), conv(draw, width, 2 * width)
        up: list[nn.Module] = [nn.ConvTranspose2d(2 * width, width, 2, 2)]
        if draw.integers(2):
            mode = str(draw.choice(["nearest", "bilinear"]))
            up = [nn.Upsample(scale_factor=2, mode=mode), nn.Conv2d(2 * width, width, 1)]
        self.up, self.last = nn.Sequential(*up), conv(draw, 2 * width, width)
        self.out = nn.Conv2d(width, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = self.down(x)
        low = self.low(nn.functional.max_pool2d(kept, 2))
        return torch.sigmoid(self.out(self.last(torch.cat([kept, self.up(low)], 1))))


def _unet(draw: Draw) -> tuple[nn.Module, Shape]:
    return _UNet(draw), _picture(draw)


def _dense(draw: Draw) -> tuple[nn.Module, Shape]:
    width, more = int(draw.integers(6, 12)), int(draw.integers(4, 8))
    depth = int(draw.integers(2, 4))
    body = [Branches(conv(draw, width + place * more, more), keep=True) for place in range(depth)]
    ends = conv(draw, 3, width), conv(draw, width + depth * more, width, 1)
    return nn.Sequential(ends[0], *body, ends[1], nn.AvgPool2d(2), *_head(draw, width)), _picture(draw)


def _branched(draw: Draw) -> tuple[nn.Module, Shape]:
    width = int(draw.integers(4, 10))
    pooled = nn.Sequential(
        nn.AvgPool2d(3, 1, 1, count_include_pad=bool(draw.integers(2))), conv(draw, width, width, 1)
    )
    largest = nn.Sequential(nn.MaxPool2d(3, 1, 1), conv(draw, width, width, 1))
    wide = conv(draw, width, width, dilation=2)
    body = Branches(conv(draw, width, width, 1), conv(draw, width, width, 5), wide, pooled, largest)
    return nn.Sequential(conv(draw, 3, width, stride=2), body, *_head(draw, 5 * width)), _picture(draw)


def _grouped(draw: Draw) -> tuple[nn.Module, Shape]:
    groups = int(draw.choice([2, 3, 4]))
    width = groups * int(draw.integers(2, 5))
    body = [
        Residual(
            nn.Sequential(
                conv(draw, width, width, 1, groups=groups), Shuffle(groups), conv(draw, width, width, groups=width)
            )
        )
        for _ in range(int(draw.integers(1, 4)))
    ]
    return nn.Sequential(conv(draw, 3, width), *body, *_head(draw, width)), _picture(draw)


def _generator(draw: Draw) -> tuple[nn.Module, Shape]:
    width, noise = int(draw.integers(6, 12)), int(draw.integers(6, 14))
    up = nn.ConvTranspose2d(width, width, 4, 2, 1)
    body = [nn.BatchNorm2d(width), activation(draw), up, nn.InstanceNorm2d(width), activation(draw)]
    start = nn.Sequential(nn.Linear(noise, width * 16), nn.Unflatten(1, (width, 4, 4)))
    last = nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(width, 3, 3), nn.Tanh())
    return nn.Sequential(start, *body, nn.Upsample(scale_factor=2), last), (noise,)


def _modern(draw: Draw) -> tuple[nn.Module, Shape]:
    width = int(draw.integers(6, 14))
    body = []
    for _ in range(int(draw.integers(1, 4))):
        dense = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.GELU(), nn.Linear(3 * width, width)
        body.append(Residual(nn.Sequential(nn.Conv2d(width, width, 7, padding=3, groups=width), Channels(*dense))))
    start = nn.Sequential(nn.Conv2d(3, width, 2, 2), Channels(nn.LayerNorm(width)))
    return nn.Sequential(start, *body, *_head(draw, width)), _picture(draw)


def _group_norms(draw: Draw) -> tuple[nn.Module, Shape]:
    width = 4 * int(draw.integers(2, 5))

    def layer() -> nn.Module:
        return nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.GroupNorm(4, width), activation(draw))

    body = [Residual(layer()) for _ in range(int(draw.integers(1, 4)))]
    return nn.Sequential(nn.Conv2d(3, width, 3, 2, 1), *body, *_head(draw, width)), _picture(draw)


FAMILIES: dict[str, Callable[[Draw], tuple[nn.Module, Shape]]] = {
    "plain": _plain,
    "resnet": _resnet,
    "mobile": _mobile,
    "unet": _unet,
    "text": sequences.text,
    "lstm": sequences.lstm,
    "series": sequences.series,
    "perceptron": sequences.perceptron,
    "vit": sequences.vit,
    "gru": sequences.gru,
    "mixer": sequences.mixer,
    "dense": _dense,
    "branched": _branched,
    "grouped": _grouped,
    "generator": _generator,
    "modern": _modern,
    "group-norms": _group_norms,
}
