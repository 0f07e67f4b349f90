"""An encoder and a decoder as Whisper's (Radford et al. 2022): a spectrum by convolutions, cross attention."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.families.architecture import Architecture, Fault
from benchmarks.families.torch_faults import attribute, bias_lost, other_class, scaled, tensor, written_as
from benchmarks.families.weights import drawn
from conrepair.ground.graph.kinds import Kind

__all__ = ["ARCHITECTURE"]

_BINS, _FRAMES, _WIDTH, _HEADS, _WORDS, _LENGTH = 16, 24, 32, 4, 60, 8


def sinusoids(length: int) -> Tensor:
    steps = torch.exp(-math.log(10000) / (_WIDTH // 2 - 1) * torch.arange(_WIDTH // 2))
    angles = torch.arange(length)[:, None] * steps[None]
    return torch.cat([angles.sin(), angles.cos()], 1)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.value, self.out = (nn.Linear(_WIDTH, _WIDTH) for _ in range(3))
        self.key = nn.Linear(_WIDTH, _WIDTH, bias=False)

    def forward(self, x: Tensor, other: Tensor, mask: Tensor | None = None) -> Tensor:
        q, k, v = self.query(x), self.key(other), self.value(other)
        scale = (_WIDTH // _HEADS) ** -0.25
        q = q.view(*q.shape[:2], _HEADS, -1).permute(0, 2, 1, 3) * scale
        k = k.view(*k.shape[:2], _HEADS, -1).permute(0, 2, 3, 1) * self.of_keys(scale)
        v = v.view(*v.shape[:2], _HEADS, -1).permute(0, 2, 1, 3)
        scores = q @ k
        if mask is not None:
            scores = scores + mask[: x.shape[1], : x.shape[1]]
        return self.out((F.softmax(scores, dim=-1) @ v).permute(0, 2, 1, 3).flatten(start_dim=2))

    def of_keys(self, scale: float) -> float:
        return scale


class KeysNotScaled(Attention):
    def of_keys(self, scale: float) -> float:
        return 1.0


class Fused(Attention):
    """The same."""

    def forward(self, x: Tensor, other: Tensor, mask: Tensor | None = None) -> Tensor:
        parts = self.query(x), self.key(other), self.value(other)
        q, k, v = (part.view(*part.shape[:2], _HEADS, -1).transpose(1, 2) for part in parts)
        found = F.scaled_dot_product_attention(q, k, v, is_causal=mask is not None)
        return self.out(found.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, cross: bool) -> None:
        super().__init__()
        self.attn, self.attn_ln = Attention(), nn.LayerNorm(_WIDTH)
        self.cross, self.cross_ln = (Attention(), nn.LayerNorm(_WIDTH)) if cross else (None, None)
        self.mlp = nn.Sequential(nn.Linear(_WIDTH, 64), nn.GELU(), nn.Linear(64, _WIDTH))
        self.mlp_ln = nn.LayerNorm(_WIDTH)

    def forward(self, x: Tensor, heard: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        found = self.attn_ln(x)
        x = x + self.attn(found, found, mask)
        if self.cross is not None and heard is not None:
            x = x + self.listened(self.cross_ln(x), heard)
        return x + self.mlp(self.mlp_ln(x))

    def listened(self, x: Tensor, heard: Tensor) -> Tensor:
        return self.cross(x, heard)


class ListensToItself(Block):
    def listened(self, x: Tensor, heard: Tensor) -> Tensor:
        return self.cross(x, x)


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(_BINS, _WIDTH, 3, padding=1)
        self.conv2 = nn.Conv1d(_WIDTH, _WIDTH, 3, stride=2, padding=1)
        self.register_buffer("positions", sinusoids(_FRAMES // 2))
        self.blocks, self.ln_post = nn.ModuleList([Block(False)]), nn.LayerNorm(_WIDTH)

    def forward(self, mel: Tensor) -> Tensor:
        x = self.activated(self.conv2(self.activated(self.conv1(mel)))).permute(0, 2, 1)
        x = x + self.placed()
        for block in self.blocks:
            x = block(x)
        return self.ln_post(x)

    def activated(self, x: Tensor) -> Tensor:
        return F.gelu(x)

    def placed(self) -> Tensor:
        return self.positions


class NotActivated(Encoder):
    def activated(self, x: Tensor) -> Tensor:
        return F.relu(x)


class NotPlaced(Encoder):
    def placed(self) -> Tensor:
        return torch.zeros_like(self.positions)


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.token_embedding = nn.Embedding(_WORDS, _WIDTH)
        self.positions = nn.Parameter(torch.zeros(16, _WIDTH))
        self.blocks, self.ln = nn.ModuleList([Block(True)]), nn.LayerNorm(_WIDTH)
        self.register_buffer("mask", torch.full((16, 16), float("-inf")).triu_(1), persistent=False)

    def forward(self, tokens: Tensor, heard: Tensor) -> Tensor:
        x = self.token_embedding(tokens) + self.positions[self.first() : self.first() + tokens.shape[-1]]
        for block in self.blocks:
            x = block(x, heard, self.mask)
        return self.ln(x) @ self.token_embedding.weight.transpose(0, 1)

    def first(self) -> int:
        return 0


class OneFurther(Decoder):
    def first(self) -> int:
        return 1


class Whisper(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = Encoder(), Decoder()

    def forward(self, mel: Tensor, tokens: Tensor) -> Tensor:
        return self.decoder(tokens, self.encoder(mel))


def _unmasked(network: nn.Module) -> None:
    network.decoder.mask = torch.zeros(16, 16)


def _samples(generator: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    loud = generator.random((count, _BINS, 1)) + 0.5
    return {
        "mel": (loud * generator.standard_normal((count, _BINS, _FRAMES))).astype(np.float32),
        "tokens": generator.integers(0, _WORDS, (count, _LENGTH)),
    }


def _built() -> nn.Module:
    network = drawn(Whisper(), 305)
    with torch.no_grad():
        network.decoder.positions.mul_(4.0)
    return network


ARCHITECTURE = Architecture(
    "whisper",
    "torch",
    _built,
    _samples,
    {
        "keys-not-scaled": other_class(Kind.GRAPH, Attention, KeysNotScaled),
        "listens-to-itself": other_class(Kind.GRAPH, Block, ListensToItself),
        "relu-for-gelu": other_class(Kind.GRAPH, Encoder, NotActivated),
        "positions-lost": other_class(Kind.GRAPH, Encoder, NotPlaced),
        "positions-one-further": other_class(Kind.PARAMETERS, Decoder, OneFurther),
        "not-causal": Fault(Kind.PARAMETERS, _unmasked),
        "cosines-first": tensor(Kind.PARAMETERS, "encoder.positions", lambda numbers: numbers.roll(_WIDTH // 2, 1)),
        "time-turned": tensor(Kind.PARAMETERS, "encoder.conv1.weight", lambda numbers: numbers.flip(2)),
        "edges-repeated": attribute("padding_mode", "replicate", "encoder.conv2", kind=Kind.GRAPH),
        "epsilon": attribute("eps", 1e-2, "LayerNorm"),
        "bias-lost": bias_lost("decoder.blocks.0.cross.query"),
        "value-scaled": scaled("encoder.blocks.0.attn.value.weight", 1.1),
        "heads-permuted": tensor(
            Kind.PARAMETERS,
            "decoder.blocks.0.cross.out.weight",
            lambda numbers: numbers.roll(_WIDTH // _HEADS, 1),
        ),
    },
    {"fused": written_as(Attention, Fused)},
)
