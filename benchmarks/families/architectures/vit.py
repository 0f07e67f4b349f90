"""ViT (Dosovitskiy et al. 2021): patches by a convolution, a class token, learned positions."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.families.architecture import Architecture
from benchmarks.families.pictures import MEAN, STD, pictures
from benchmarks.families.torch_faults import (
    attribute,
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

_SIZE, _PATCH, _WIDTH, _HEADS, _CLASSES = 32, 8, 48, 4, 10
_COUNT = (_SIZE // _PATCH) ** 2


class PatchEmbed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.proj = nn.Conv2d(3, _WIDTH, _PATCH, _PATCH)

    def forward(self, x: Tensor) -> Tensor:
        return self.proj(x).flatten(2).transpose(1, 2)


class ColumnsFirst(PatchEmbed):
    def forward(self, x: Tensor) -> Tensor:
        return self.proj(x).permute(0, 3, 2, 1).reshape(x.shape[0], _COUNT, _WIDTH)


class PatchesByProduct(PatchEmbed):
    """The same."""

    def forward(self, x: Tensor) -> Tensor:
        side = _SIZE // _PATCH
        x = x.reshape(x.shape[0], 3, side, _PATCH, side, _PATCH).permute(0, 2, 4, 1, 3, 5)
        return F.linear(x.reshape(x.shape[0], _COUNT, -1), self.proj.weight.flatten(1), self.proj.bias)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.proj, self.scale = nn.Linear(_WIDTH, 3 * _WIDTH), nn.Linear(_WIDTH, _WIDTH), 12**-0.5

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = self.parts(self.qkv(x)).unbind(0)
        weights = (q * self.scale @ k.transpose(-2, -1)).softmax(dim=-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(batch, length, width))

    def parts(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[0], x.shape[1], 3, _HEADS, -1).permute(2, 0, 3, 1, 4)


class HeadsBeforeParts(Attention):
    """As another library packs them."""

    def parts(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[0], x.shape[1], _HEADS, 3, -1).permute(3, 0, 2, 1, 4)


class KeysFirst(Attention):
    def parts(self, x: Tensor) -> Tensor:
        return super().parts(x)[[1, 0, 2]]


class HeadsNotMerged(Attention):
    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = self.parts(self.qkv(x)).unbind(0)
        weights = (q * self.scale @ k.transpose(-2, -1)).softmax(dim=-1)
        return self.proj((weights @ v).reshape(batch, length, width))


class Fused(Attention):
    """The same."""

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = self.parts(self.qkv(x)).unbind(0)
        return self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.attn, self.norm2 = nn.LayerNorm(_WIDTH, 1e-6), Attention(), nn.LayerNorm(_WIDTH, 1e-6)
        self.fc1, self.act, self.fc2 = nn.Linear(_WIDTH, 96), nn.GELU(), nn.Linear(96, _WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.fc2(self.act(self.fc1(self.norm2(x))))


class ViT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(MEAN)[:, None, None])
        self.register_buffer("std", torch.tensor(STD)[:, None, None])
        self.patch_embed = PatchEmbed()
        self.cls_token = nn.Parameter(torch.zeros(1, 1, _WIDTH))
        self.pos_embed = nn.Parameter(torch.zeros(1, _COUNT + 1, _WIDTH))
        self.blocks = nn.Sequential(Block(), Block())
        self.norm, self.head = nn.LayerNorm(_WIDTH, 1e-6), nn.Linear(_WIDTH, _CLASSES)

    def forward(self, image: Tensor) -> Tensor:
        x = self.patch_embed(self.prepared(image))
        x = torch.cat([self.cls_token.expand(x.shape[0], -1, -1), x], 1) + self.pos_embed
        return self.head(self.pooled(self.norm(self.blocks(x))))

    def prepared(self, image: Tensor) -> Tensor:
        return (image - self.mean) / self.std

    def pooled(self, x: Tensor) -> Tensor:
        return x[:, 0]


class NotPrepared(ViT):
    def prepared(self, image: Tensor) -> Tensor:
        return image


class MeanPooled(ViT):
    def pooled(self, x: Tensor) -> Tensor:
        return x.mean(1)


class SecondToken(ViT):
    def pooled(self, x: Tensor) -> Tensor:
        return x[:, 1]


def _samples(generator: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    return {"image": pictures(generator, count, _SIZE)}


def _built() -> nn.Module:
    network = drawn(ViT(), 303)
    with torch.no_grad():
        network.cls_token.mul_(_WIDTH**0.5)
        network.pos_embed.mul_(2.0 * _COUNT**0.5)
    return network


ARCHITECTURE = Architecture(
    "vit",
    "torch",
    _built,
    _samples,
    {
        "bgr": input_as(lambda image: image.flip(1)),
        "not-prepared": other_class(Kind.PREPROCESSING, ViT, NotPrepared),
        "columns-first": other_class(Kind.STRUCTURE, PatchEmbed, ColumnsFirst),
        "heads-before-parts": other_class(Kind.STRUCTURE, Attention, HeadsBeforeParts),
        "keys-first": other_class(Kind.GRAPH, Attention, KeysFirst),
        "heads-not-merged": other_class(Kind.STRUCTURE, Attention, HeadsNotMerged, first=True),
        "mean-pooled": other_class(Kind.GRAPH, ViT, MeanPooled),
        "second-token": other_class(Kind.HYPERPARAMETERS, ViT, SecondToken),
        "gelu-tanh": attribute("approximate", "tanh", "GELU", kind=Kind.GRAPH),
        "epsilon": attribute("eps", 1e-2, "LayerNorm"),
        "scale": attribute("scale", 0.25, "blocks.1.attn", kind=Kind.PARAMETERS),
        "patches-transposed": transposed("patch_embed.proj.weight"),
        "positions-rolled": tensor(Kind.PARAMETERS, "pos_embed", lambda numbers: numbers.roll(1, 1)),
        "weight-scaled": scaled("blocks.1.fc1.weight", 1.1),
        "labels-off-by-one": tensor(Kind.PARAMETERS, "head.bias", lambda numbers: numbers.roll(1)),
    },
    {"fused": written_as(Attention, Fused), "patches-by-product": written_as(PatchEmbed, PatchesByProduct)},
    open_batch=True,
)
