"""Transformers as they are written by hand, in PyTorch and in Keras, whose attention can be at fault."""

from __future__ import annotations

import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

WIDTH, HEADS, STEPS, WORDS = 32, 4, 10, 60
SIZE = WIDTH // HEADS


class Attention(nn.Module):
    """Queries and keys may be exchanged, or rotated by neighbours in place of halves; the mask may be ignored."""

    def __init__(self, *, fused: bool, swapped: bool, rotated: str, masked: str = "added") -> None:
        super().__init__()
        self.fused, self.swapped, self.rotated, self.masked = fused, swapped, rotated, masked
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        angles = torch.outer(torch.arange(STEPS).float(), 0.1 ** (torch.arange(SIZE // 2) / (SIZE // 2)))
        wide = torch.cat([angles, angles], -1) if rotated == "halves" else angles.repeat_interleave(2, -1)
        self.register_buffer("cos", wide.cos(), persistent=False)
        self.register_buffer("sin", wide.sin(), persistent=False)

    def turn(self, x: torch.Tensor) -> torch.Tensor:
        """Rotary embeddings, as Llama's, or as GPT-J's."""
        if self.rotated == "halves":
            one, two = x.chunk(2, -1)
            other = torch.cat([-two, one], -1)
        else:
            other = torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2)
        return x * self.cos + other * self.sin

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Attention of all to all, but for what the mask forbids."""
        heads = [
            layer(x).view(x.shape[0], STEPS, HEADS, SIZE).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        ]
        query, key, value = heads
        if self.rotated:
            query, key = self.turn(query), self.turn(key)
        if self.swapped:
            query, key = key, query
        if self.fused:
            result = nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        else:
            scores = (query @ key.transpose(-1, -2)) / math.sqrt(SIZE)
            if self.masked == "filled":
                scores = scores.masked_fill((mask < 0).expand_as(scores), torch.finfo(scores.dtype).min)
            result = (scores + mask if self.masked == "added" else scores).softmax(-1) @ value
        return self.out(result.transpose(1, 2).reshape(x.shape[0], STEPS, WIDTH))  # type: ignore[no-any-return]


class Encoder(nn.Module):
    """Of two blocks; the second one may be at fault."""

    def __init__(
        self,
        *,
        fused: bool = True,
        swapped: bool = False,
        rotated: str = "",
        right: str = "",
        masked: str = "added",
    ) -> None:
        super().__init__()
        self.words, self.segments = nn.Embedding(WORDS, WIDTH), nn.Embedding(2, WIDTH)
        self.blocks = nn.ModuleList(
            [
                Attention(fused=fused, swapped=False, rotated=right or rotated, masked=masked),
                Attention(fused=fused, swapped=swapped, rotated=rotated, masked=masked),
            ]
        )
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH) for _ in range(2)])
        self.head = nn.Linear(WIDTH, 5)
        for name, parameter in self.named_parameters():
            drawn = np.random.default_rng(zlib.crc32(name.encode())).normal(size=tuple(parameter.shape))
            scale = 1.0 if parameter.shape[0] in {WORDS, 2} else 0.3 if parameter.ndim == 2 else 0.1
            shift = 1.0 if "norms" in name and name.endswith("weight") else 0.0
            parameter.data = torch.from_numpy((scale * drawn + shift).astype(np.float32))
        self.eval()

    def forward(self, ids: torch.Tensor, mask: torch.Tensor, types: torch.Tensor) -> torch.Tensor:
        """Scores of the first token."""
        x = self.words(ids) + self.segments(types)
        bias = (1.0 - mask[:, None, None, :].to(torch.float32)) * -1e4
        for norm, block in zip(self.norms, self.blocks, strict=True):
            x = x + block(norm(x), bias)
        return self.head(x[:, 0])  # type: ignore[no-any-return]


def tokens() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Of two samples."""
    generator = torch.Generator().manual_seed(0)
    ids, types = (torch.randint(0, high, (2, STEPS), generator=generator) for high in (WORDS, 2))
    mask = torch.ones(2, STEPS, dtype=torch.int64)
    mask[1, STEPS - 3 :] = 0
    return ids, mask, types


def exported(module: nn.Module, path: Path, how: str) -> Path:
    """Write a module.

    Args:
        module: An encoder.
        path: Without the suffix.
        how: "pt2", "torchscript" for the older exporter to ONNX, or an opset of the newer one.
    """
    if how == "pt2":
        file = path.with_suffix(".pt2")
        torch.export.save(torch.export.export(module, tokens()), file)
        return file
    file = path.with_suffix(".onnx")
    names: dict[str, Any] = {"input_names": ["ids", "mask", "types"]}
    if how == "torchscript":
        torch.onnx.export(module, tokens(), str(file), dynamo=False, opset_version=17, **names)
    else:
        options: dict[str, Any] = {"verbose": False, "external_data": False}
        torch.onnx.export(module, tokens(), str(file), dynamo=True, opset_version=int(how), **names, **options)
    return file
