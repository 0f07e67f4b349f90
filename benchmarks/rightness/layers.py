"""Parts that the networks of this benchmark are put together from, in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

__all__ = [
    "Attention",
    "Branches",
    "Channels",
    "Gate",
    "Mixer",
    "Residual",
    "Shuffle",
    "activation",
    "conv",
    "inverted",
    "transformer",
]


def activation(draw: np.random.Generator) -> nn.Module:
    """One of many."""
    sorts: list[Any] = [
        nn.ReLU,
        nn.ReLU6,
        nn.SiLU,
        nn.GELU,
        nn.Hardswish,
        lambda: nn.LeakyReLU(0.1),
        nn.ELU,
        lambda: nn.GELU("tanh"),
        nn.Mish,
        nn.PReLU,
    ]
    return sorts[int(draw.integers(len(sorts)))]()


def conv(draw: np.random.Generator, given: int, made: int, size: int = 3, **more: Any) -> nn.Sequential:
    """A convolution that keeps sizes, BatchNorm, an activation."""
    pads = more.pop("dilation", 1) * (size // 2)
    dilation = {"dilation": pads // (size // 2)} if size > 1 else {}
    layer = nn.Conv2d(given, made, size, padding=pads, bias=bool(draw.integers(2)), **dilation, **more)
    return nn.Sequential(layer, nn.BatchNorm2d(made), activation(draw))


def inverted(draw: np.random.Generator, given: int, made: int) -> nn.Module:
    """Wider, by channel, gated, narrower; with a shortcut where that fits."""
    wide = given * int(draw.integers(2, 4))
    depthwise = conv(draw, wide, wide, int(draw.choice([3, 5])), groups=wide)
    gate = [Gate(wide)] if draw.integers(2) else []
    body = nn.Sequential(
        conv(draw, given, wide, 1), depthwise, *gate, nn.Conv2d(wide, made, 1, bias=False), nn.BatchNorm2d(made)
    )
    return Residual(body) if given == made else body


class Residual(nn.Module):
    """The sum of what's given and what's made of it."""

    def __init__(self, body: nn.Module, after: nn.Module | None = None) -> None:
        super().__init__()
        self.body, self.after = body, after

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of any shape that the body keeps."""
        total = x + self.body(x)
        return total if self.after is None else self.after(total)


class Gate(nn.Module):
    """Squeeze and excitation."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.less, self.more = nn.Conv2d(size, max(size // 4, 2), 1), nn.Conv2d(max(size // 4, 2), size, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of pictures."""
        mean = nn.functional.adaptive_avg_pool2d(x, 1)
        return x * nn.functional.hardsigmoid(self.more(torch.relu(self.less(mean))))


class Branches(nn.Module):
    """Side by side, joined by channels."""

    def __init__(self, *branches: nn.Module, keep: bool = False) -> None:
        super().__init__()
        self.branches, self.keep = nn.ModuleList(branches), keep

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of pictures."""
        return torch.cat([*([x] if self.keep else []), *(branch(x) for branch in self.branches)], 1)


class Shuffle(nn.Module):
    """Channels of groups in turn."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of pictures."""
        count, channels, height, width = x.shape
        parts = x.view(count, self.groups, channels // self.groups, height, width)
        return parts.transpose(1, 2).reshape(count, channels, height, width)


class Channels(nn.Module):
    """What's inside gets channels last."""

    def __init__(self, *body: nn.Module) -> None:
        super().__init__()
        self.body = nn.Sequential(*body)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of pictures."""
        return self.body(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Attention(nn.Module):
    """Of several heads over [batch, tokens, size]."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads, self.all, self.out = heads, nn.Linear(size, 3 * size), nn.Linear(size, size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Each token from all."""
        count, tokens, size = x.shape
        parts = self.all(x).reshape(count, tokens, 3, self.heads, size // self.heads).permute(2, 0, 3, 1, 4)
        queries, keys, values = parts.unbind(0)
        shares = (queries @ keys.transpose(-2, -1) * (size // self.heads) ** -0.5).softmax(-1)
        return self.out((shares @ values).transpose(1, 2).reshape(count, tokens, size))


def transformer(draw: np.random.Generator, size: int, heads: int) -> nn.Module:
    """Attention and an MLP, with norms before."""
    wide = size * int(draw.integers(2, 4))
    dense = nn.Sequential(nn.LayerNorm(size), nn.Linear(size, wide), activation(draw), nn.Linear(wide, size))
    return nn.Sequential(Residual(nn.Sequential(nn.LayerNorm(size), Attention(size, heads))), Residual(dense))


class Mixer(nn.Module):
    """Products over tokens, and over channels."""

    def __init__(self, draw: np.random.Generator, tokens: int, size: int) -> None:
        super().__init__()
        self.one, self.two = nn.LayerNorm(size), nn.LayerNorm(size)
        self.over_tokens = nn.Sequential(
            nn.Linear(tokens, 2 * tokens), activation(draw), nn.Linear(2 * tokens, tokens)
        )
        self.over_channels = nn.Sequential(nn.Linear(size, 2 * size), activation(draw), nn.Linear(2 * size, size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of [batch, tokens, size]."""
        x = x + self.over_tokens(self.one(x).transpose(1, 2)).transpose(1, 2)
        return x + self.over_channels(self.two(x))
