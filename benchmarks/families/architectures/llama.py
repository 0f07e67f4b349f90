"""A decoder as Llama's (Touvron et al. 2023): RMSNorm, rotary positions, grouped queries, SwiGLU, a causal mask."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.families.architecture import Architecture
from benchmarks.families.torch_faults import attribute, exchanged, other_class, scaled, tensor, written_as
from benchmarks.families.weights import drawn
from conrepair.ground.graph.kinds import Kind

__all__ = ["ARCHITECTURE"]

_WORDS, _WIDTH, _HEADS, _GROUPS, _LENGTH = 100, 48, 4, 2, 12
_HEAD = _WIDTH // _HEADS


class RMSNorm(nn.Module):
    def __init__(self, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(_WIDTH)), eps

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))


class PlusOne(RMSNorm):
    """As Gemma's."""

    def forward(self, x: Tensor) -> Tensor:
        return (1 + self.weight) * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))


class Rotation(nn.Module):
    base = 10000.0

    def tables(self, length: int) -> tuple[Tensor, Tensor]:
        steps = 1.0 / self.base ** (torch.arange(0, _HEAD, 2).float() / _HEAD)
        angles = torch.outer(torch.arange(length).float(), steps)
        return angles.cos(), angles.sin()

    def forward(self, x: Tensor) -> Tensor:
        cos, sin = self.tables(x.shape[2])
        one, two = x[..., : _HEAD // 2], x[..., _HEAD // 2 :]
        return torch.cat([one * cos - two * sin, two * cos + one * sin], -1)


class Interleaved(Rotation):
    """The other form: neighbours turn together."""

    def forward(self, x: Tensor) -> Tensor:
        cos, sin = self.tables(x.shape[2])
        one, two = x[..., 0::2], x[..., 1::2]
        return torch.stack([one * cos - two * sin, two * cos + one * sin], -1).flatten(-2)


class Backwards(Rotation):
    def forward(self, x: Tensor) -> Tensor:
        cos, sin = self.tables(x.shape[2])
        one, two = x[..., : _HEAD // 2], x[..., _HEAD // 2 :]
        return torch.cat([one * cos + two * sin, two * cos + one * sin], -1)


class OtherBase(Rotation):
    base = 500000.0


class RotateHalf(Rotation):
    """The same."""

    def forward(self, x: Tensor) -> Tensor:
        cos, sin = (torch.cat([item, item], -1) for item in self.tables(x.shape[2]))
        half = torch.cat([-x[..., _HEAD // 2 :], x[..., : _HEAD // 2]], -1)
        return x * cos + half * sin


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q_proj, self.o_proj = nn.Linear(_WIDTH, _WIDTH, bias=False), nn.Linear(_WIDTH, _WIDTH, bias=False)
        self.k_proj = nn.Linear(_WIDTH, _GROUPS * _HEAD, bias=False)
        self.v_proj = nn.Linear(_WIDTH, _GROUPS * _HEAD, bias=False)
        self.rotation = Rotation()

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        batch, length, _ = x.shape
        q = self.q_proj(x).view(batch, length, _HEADS, _HEAD).transpose(1, 2)
        k = self.k_proj(x).view(batch, length, _GROUPS, _HEAD).transpose(1, 2)
        v = self.v_proj(x).view(batch, length, _GROUPS, _HEAD).transpose(1, 2)
        q, k = self.turned(q, k)
        found = self.attend(q, self.repeated(k), self.repeated(v), mask)
        return self.o_proj(found.transpose(1, 2).reshape(batch, length, _WIDTH))

    def turned(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        return self.rotation(q), self.rotation(k)

    def repeated(self, x: Tensor) -> Tensor:
        batch, groups, length, size = x.shape
        wide = x[:, :, None].expand(batch, groups, _HEADS // _GROUPS, length, size)
        return wide.reshape(batch, _HEADS, length, size)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


class GroupsTiled(Attention):
    def repeated(self, x: Tensor) -> Tensor:
        return torch.cat([x] * (_HEADS // _GROUPS), 1)


class KeysNotTurned(Attention):
    def turned(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        return self.rotation(q), k


class SwappedQueries(Attention):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(k, q, v, attn_mask=mask)


class ByHand(Attention):
    """The same."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        return torch.softmax(torch.matmul(q, k.transpose(2, 3)) / _HEAD**0.5 + mask, dim=-1) @ v


class SwiGLU(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate_proj, self.up_proj = (nn.Linear(_WIDTH, 2 * _WIDTH, bias=False) for _ in range(2))
        self.down_proj = nn.Linear(2 * _WIDTH, _WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class GeGLU(SwiGLU):
    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.gelu(self.gate_proj(x)) * self.up_proj(x))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.input_layernorm, self.self_attn = RMSNorm(), Attention()
        self.post_attention_layernorm, self.mlp = RMSNorm(), SwiGLU()

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), mask)
        return x + self.mlp(self.post_attention_layernorm(x))


class Llama(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed_tokens, self.layers = nn.Embedding(_WORDS, _WIDTH), nn.ModuleList(Block() for _ in range(2))
        self.norm, self.lm_head = RMSNorm(), nn.Linear(_WIDTH, _WORDS, bias=False)

    def forward(self, input_ids: Tensor) -> Tensor:
        x, mask = self.embed_tokens(input_ids), self.mask(input_ids.shape[1])
        for layer in self.layers:
            x = layer(x, mask)
        return self.lm_head(self.norm(x))

    def mask(self, length: int) -> Tensor:
        return torch.triu(torch.full((length, length), float("-inf"), dtype=torch.float32), diagonal=1)


class SeesTheNext(Llama):
    def mask(self, length: int) -> Tensor:
        return torch.triu(torch.full((length, length), float("-inf"), dtype=torch.float32), diagonal=2)


class SeesAll(Llama):
    def mask(self, length: int) -> Tensor:
        return torch.zeros(length, length)


def _samples(generator: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    return {"input_ids": generator.integers(0, _WORDS, (count, _LENGTH))}


ARCHITECTURE = Architecture(
    "llama",
    "torch",
    lambda: drawn(Llama(), 102),
    _samples,
    {
        "rotation-interleaved": other_class(Kind.STRUCTURE, Rotation, Interleaved),
        "rotation-backwards": other_class(Kind.GRAPH, Rotation, Backwards),
        "rotation-base": other_class(Kind.PARAMETERS, Rotation, OtherBase),
        "keys-not-turned": other_class(Kind.GRAPH, Attention, KeysNotTurned),
        "groups-tiled": other_class(Kind.STRUCTURE, Attention, GroupsTiled),
        "swapped-qk": other_class(Kind.GRAPH, Attention, SwappedQueries),
        "sees-the-next": other_class(Kind.PARAMETERS, Llama, SeesTheNext),
        "sees-all": other_class(Kind.GRAPH, Llama, SeesAll),
        "epsilon": attribute("eps", 1e-2, "RMSNorm"),
        "norm-plus-one": other_class(Kind.GRAPH, RMSNorm, PlusOne),
        "gelu-for-silu": other_class(Kind.GRAPH, SwiGLU, GeGLU),
        "gate-and-up": exchanged("layers.1.mlp.gate_proj.weight", "layers.1.mlp.up_proj.weight"),
        "value-scaled": scaled("layers.0.self_attn.v_proj.weight", 1.1),
        "word-shifted": tensor(Kind.PARAMETERS, "embed_tokens.weight", lambda numbers: numbers.roll(1, 0)),
    },
    {
        "rotate-half": written_as(Rotation, RotateHalf),
        "attention-by-hand": written_as(Attention, ByHand),
    },
    open_batch=True,
)
