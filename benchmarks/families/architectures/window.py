"""Window attention as Swin's (Liu et al. 2021): shifted windows, a table of relative positions, patch merging."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.families.architecture import Architecture
from benchmarks.families.pictures import pictures
from benchmarks.families.torch_faults import (
    attribute,
    bias_lost,
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

_SIZE, _SIDE, _WINDOW, _WIDTH, _HEADS = 32, 8, 4, 24, 3


def _relative() -> Tensor:
    places = torch.stack(torch.meshgrid(torch.arange(_WINDOW), torch.arange(_WINDOW), indexing="ij")).flatten(1)
    apart = (places[:, :, None] - places[:, None]).permute(1, 2, 0) + _WINDOW - 1
    return apart[..., 0] * (2 * _WINDOW - 1) + apart[..., 1]


class WindowAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.proj = nn.Linear(_WIDTH, 3 * _WIDTH), nn.Linear(_WIDTH, _WIDTH)
        self.table = nn.Parameter(torch.zeros((2 * _WINDOW - 1) ** 2, _HEADS))
        self.register_buffer("relative", _relative())

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        count, length, width = x.shape
        q, k, v = self.qkv(x).reshape(count, length, 3, _HEADS, -1).permute(2, 0, 3, 1, 4)
        scores = (q * (width // _HEADS) ** -0.5) @ k.transpose(-2, -1) + self.bias(length)
        if mask is not None:
            windows = mask.shape[0]
            scores = scores.view(count // windows, windows, _HEADS, length, length) + mask[:, None]
            scores = scores.view(-1, _HEADS, length, length)
        return self.proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(count, length, width))

    def bias(self, length: int) -> Tensor:
        return self.table[self.relative.view(-1)].view(length, length, -1).permute(2, 0, 1)


class BiasTurned(WindowAttention):
    def bias(self, length: int) -> Tensor:
        return self.table[self.relative.T.reshape(-1)].view(length, length, -1).permute(2, 0, 1)


class BiasLost(WindowAttention):
    def bias(self, length: int) -> Tensor:
        return torch.zeros(_HEADS, length, length)


class BiasInOrder(WindowAttention):
    def bias(self, length: int) -> Tensor:
        return self.table[self.relative.view(-1)].view(-1, length, length)


class Block(nn.Module):
    def __init__(self, shift: int) -> None:
        super().__init__()
        self.shift, self.norm1, self.attn = shift, nn.LayerNorm(_WIDTH), WindowAttention()
        self.norm2, self.fc1 = nn.LayerNorm(_WIDTH), nn.Linear(_WIDTH, 48)
        self.act, self.fc2 = nn.GELU(), nn.Linear(48, _WIDTH)
        self.register_buffer("mask", self.made() if shift else None)

    def made(self) -> Tensor:
        areas = torch.zeros(1, _SIDE, _SIDE, 1)
        parts = (slice(0, -_WINDOW), slice(-_WINDOW, -self.shift), slice(-self.shift, None))
        for number, (rows, columns) in enumerate((one, two) for one in parts for two in parts):
            areas[:, rows, columns] = number
        areas = windows_of(areas).view(-1, _WINDOW * _WINDOW)
        return torch.where(areas[:, None] != areas[:, :, None], -100.0, 0.0)

    def forward(self, x: Tensor) -> Tensor:
        found = self.there(self.norm1(x))
        found = self.back(self.together(self.attn(windows_of(found), self.mask), x.shape[0]))
        x = x + found
        return x + self.fc2(self.act(self.fc1(self.norm2(x))))

    def together(self, x: Tensor, batch: int) -> Tensor:
        side = _SIDE // _WINDOW
        x = x.view(batch, side, side, _WINDOW, _WINDOW, _WIDTH).permute(0, 1, 3, 2, 4, 5)
        return x.reshape(batch, _SIDE, _SIDE, _WIDTH)

    def there(self, x: Tensor) -> Tensor:
        return torch.roll(x, (-self.shift, -self.shift), (1, 2)) if self.shift else x

    def back(self, x: Tensor) -> Tensor:
        return torch.roll(x, (self.shift, self.shift), (1, 2)) if self.shift else x


def windows_of(x: Tensor) -> Tensor:
    side = _SIDE // _WINDOW
    x = x.view(x.shape[0], side, _WINDOW, side, _WINDOW, x.shape[-1]).permute(0, 1, 3, 2, 4, 5)
    return x.reshape(-1, _WINDOW * _WINDOW, x.shape[-1])


class NotBack(Block):
    def back(self, x: Tensor) -> Tensor:
        return x


class OtherWay(Block):
    def there(self, x: Tensor) -> Tensor:
        return torch.roll(x, (self.shift, self.shift), (1, 2)) if self.shift else x


class ByCat(Block):
    """The same."""

    def there(self, x: Tensor) -> Tensor:
        if not self.shift:
            return x
        x = torch.cat([x[:, self.shift :], x[:, : self.shift]], 1)
        return torch.cat([x[:, :, self.shift :], x[:, :, : self.shift]], 2)


class Merging(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.reduction = nn.LayerNorm(4 * _WIDTH), nn.Linear(4 * _WIDTH, _WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.reduction(self.norm(torch.cat(self.parts(x), -1)))

    def parts(self, x: Tensor) -> list[Tensor]:
        return [x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]]


class RowsFirst(Merging):
    def parts(self, x: Tensor) -> list[Tensor]:
        return [x[:, 0::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 0::2], x[:, 1::2, 1::2]]


class Swin(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patch_embed, self.norm0 = nn.Conv2d(3, _WIDTH, 4, 4), nn.LayerNorm(_WIDTH)
        self.blocks, self.merging = nn.Sequential(Block(0), Block(2)), Merging()
        self.norm, self.head = nn.LayerNorm(_WIDTH), nn.Linear(_WIDTH, 8)

    def forward(self, image: Tensor) -> Tensor:
        x = self.norm0(self.patch_embed(image).permute(0, 2, 3, 1))
        return self.head(self.norm(self.merging(self.blocks(x))).mean((1, 2)))


def _keys_first(numbers: Tensor) -> Tensor:
    queries, keys, values = numbers.chunk(3)
    return torch.cat([keys, queries, values])


def _samples(generator: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    return {"image": 3 * pictures(generator, count, _SIZE) - 1.3}


def _built() -> nn.Module:
    network = drawn(Swin(), 304, gain=1.5)
    with torch.no_grad():
        for block in network.blocks:
            block.attn.table.mul_(3.0)
    return network


ARCHITECTURE = Architecture(
    "window",
    "torch",
    _built,
    _samples,
    {
        "bgr": input_as(lambda image: image.flip(1)),
        "not-rolled-back": other_class(Kind.GRAPH, Block, NotBack),
        "rolled-the-other-way": other_class(Kind.HYPERPARAMETERS, Block, OtherWay),
        "mask-lost": attribute("mask", None, "blocks.1", kind=Kind.GRAPH),
        "bias-turned": other_class(Kind.PARAMETERS, WindowAttention, BiasTurned),
        "bias-of-positions-lost": other_class(Kind.GRAPH, WindowAttention, BiasLost),
        "bias-in-order": other_class(Kind.STRUCTURE, WindowAttention, BiasInOrder),
        "rows-first": other_class(Kind.GRAPH, Merging, RowsFirst),
        "epsilon": attribute("eps", 1e-2, "LayerNorm"),
        "gelu-tanh": attribute("approximate", "tanh", "GELU", kind=Kind.GRAPH),
        "weight-transposed": transposed("blocks.0.attn.proj.weight"),
        "norm-scaled": scaled("merging.norm.weight", 1.05),
        "bias-lost": bias_lost("blocks.1.fc1"),
        "queries-and-keys": tensor(Kind.PARAMETERS, "blocks.1.attn.qkv.weight", _keys_first),
    },
    {"rolled-by-cat": written_as(Block, ByCat)},
)
