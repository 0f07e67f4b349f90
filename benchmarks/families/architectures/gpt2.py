"""GPT-2 (Radford et al. 2019): Conv1D's transposed weights, a causal buffer, GELU by tanh, tied embeddings."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.families.architecture import Architecture
from benchmarks.families.torch_faults import attribute, other_class, scaled, tensor, transposed, written_as
from benchmarks.families.weights import drawn
from conrepair.ground.graph.kinds import Kind

__all__ = ["ARCHITECTURE"]

_WORDS, _WIDTH, _HEADS, _LENGTH, _CONTEXT = 100, 48, 4, 12, 24


class Conv1D(nn.Module):
    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.zeros(inside, outside)), nn.Parameter(torch.zeros(outside))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight + self.bias


class ByAddmm(Conv1D):
    """The same."""

    def forward(self, x: Tensor) -> Tensor:
        flat = torch.addmm(self.bias, x.reshape(-1, x.shape[-1]), self.weight)
        return flat.view(*x.shape[:-1], self.weight.shape[1])


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.c_attn, self.c_proj = Conv1D(_WIDTH, 3 * _WIDTH), Conv1D(_WIDTH, _WIDTH)
        self.register_buffer("causal", torch.tril(torch.ones(_CONTEXT, _CONTEXT, dtype=torch.bool))[None, None])

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.order(*(self.heads(part) for part in self.c_attn(x).split(_WIDTH, 2)))
        scores = torch.matmul(q, k.transpose(-1, -2)) / self.root()
        length = scores.shape[-1]
        scores = torch.where(self.seen(length), scores, torch.full([], torch.finfo(scores.dtype).min))
        found = self.weights(scores) @ v
        return self.c_proj(found.transpose(1, 2).reshape(x.shape))

    def heads(self, x: Tensor) -> Tensor:
        return x.view(x.shape[0], x.shape[1], _HEADS, _WIDTH // _HEADS).transpose(1, 2)

    def order(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return q, k, v

    def root(self) -> float:
        return float((_WIDTH // _HEADS) ** 0.5)

    def seen(self, length: int) -> Tensor:
        return self.causal[:, :, :length, :length]

    def weights(self, scores: Tensor) -> Tensor:
        return torch.softmax(scores, dim=-1)


class QueriesAndKeys(Attention):
    def order(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return k, q, v


class ValuesFirst(Attention):
    def order(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return v, k, q


class WrongRoot(Attention):
    def root(self) -> float:
        return float(_WIDTH**0.5)


class NotCausal(Attention):
    def seen(self, length: int) -> Tensor:
        return torch.ones_like(self.causal[:, :, :length, :length])


class Anticausal(Attention):
    def seen(self, length: int) -> Tensor:
        return self.causal[:, :, :length, :length].transpose(2, 3)


class OverHeads(Attention):
    def weights(self, scores: Tensor) -> Tensor:
        return torch.softmax(scores, dim=1)


class Fused(Attention):
    """The same."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (self.heads(part) for part in self.c_attn(x).split(_WIDTH, 2))
        found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(found.transpose(1, 2).reshape(x.shape))


class MLP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.c_fc, self.act, self.c_proj = Conv1D(_WIDTH, 96), nn.GELU("tanh"), Conv1D(96, _WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.c_proj(self.act(self.c_fc(x)))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ln_1, self.attn, self.ln_2, self.mlp = nn.LayerNorm(_WIDTH), Attention(), nn.LayerNorm(_WIDTH), MLP()

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Parallel(Block):
    """As GPT-J's."""

    def forward(self, x: Tensor) -> Tensor:
        return x + self.attn(self.ln_1(x)) + self.mlp(self.ln_2(x))


class GPT2(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(_WORDS, _WIDTH), nn.Embedding(_CONTEXT, _WIDTH)
        self.h, self.ln_f = nn.ModuleList(Block() for _ in range(2)), nn.LayerNorm(_WIDTH)

    def forward(self, input_ids: Tensor) -> Tensor:
        x = self.wte(input_ids) + self.wpe(torch.arange(input_ids.shape[1]))
        for block in self.h:
            x = block(x)
        return self.last(x) @ self.wte.weight.T

    def last(self, x: Tensor) -> Tensor:
        return self.ln_f(x)


class NoLastNorm(GPT2):
    def last(self, x: Tensor) -> Tensor:
        return x


def _samples(generator: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    return {"input_ids": generator.integers(0, _WORDS, (count, _LENGTH))}


ARCHITECTURE = Architecture(
    "gpt2",
    "torch",
    lambda: drawn(GPT2(), 302),
    _samples,
    {
        "queries-and-keys": other_class(Kind.GRAPH, Attention, QueriesAndKeys),
        "values-first": other_class(Kind.GRAPH, Attention, ValuesFirst),
        "wrong-root": other_class(Kind.PARAMETERS, Attention, WrongRoot),
        "not-causal": other_class(Kind.PARAMETERS, Attention, NotCausal),
        "anticausal": other_class(Kind.PARAMETERS, Attention, Anticausal),
        "softmax-over-heads": other_class(Kind.HYPERPARAMETERS, Attention, OverHeads),
        "parallel-block": other_class(Kind.GRAPH, Block, Parallel, first=True),
        "last-norm-lost": other_class(Kind.GRAPH, GPT2, NoLastNorm),
        "exact-gelu": attribute("approximate", "none", "GELU", kind=Kind.GRAPH),
        "epsilon": attribute("eps", 1e-2, "LayerNorm"),
        "weight-transposed": transposed("h.1.attn.c_proj.weight"),
        "projection-scaled": scaled("h.0.mlp.c_proj.weight", 1.1),
        "bias-lost": tensor(Kind.PARAMETERS, "h.1.mlp.c_fc.bias", torch.zeros_like),
        "one-word": tensor(Kind.PARAMETERS, "wpe.weight", lambda numbers: numbers.roll(-1, 0)),
    },
    {"fused": written_as(Attention, Fused), "by-addmm": written_as(Conv1D, ByAddmm)},
)
