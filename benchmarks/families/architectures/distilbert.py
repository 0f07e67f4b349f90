"""DistilBERT (Sanh et al. 2019) for questions: no token types, a mask by `masked_fill`, starts and ends."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.families.architecture import Architecture
from benchmarks.families.torch_faults import attribute, bias_lost, exchanged, other_class, scaled, tensor, written_as
from benchmarks.families.weights import drawn
from conrepair.ground.graph.kinds import Kind

__all__ = ["ARCHITECTURE"]

_WORDS, _WIDTH, _HEADS, _LENGTH = 90, 40, 4, 14


class Embeddings(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.word_embeddings, self.position_embeddings = nn.Embedding(_WORDS, _WIDTH), nn.Embedding(32, _WIDTH)
        self.LayerNorm = nn.LayerNorm(_WIDTH, eps=1e-12)
        self.register_buffer("position_ids", torch.arange(32)[None], persistent=False)

    def forward(self, ids: Tensor) -> Tensor:
        positions = self.position_embeddings(self.position_ids[:, : ids.shape[1]])
        return self.LayerNorm(self.word_embeddings(ids) + positions)


class PositionsAfterNorm(Embeddings):
    def forward(self, ids: Tensor) -> Tensor:
        positions = self.position_embeddings(self.position_ids[:, : ids.shape[1]])
        return self.LayerNorm(self.word_embeddings(ids)) + positions


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q_lin, self.k_lin, self.v_lin, self.out_lin = (nn.Linear(_WIDTH, _WIDTH) for _ in range(4))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        size = x.shape[0], -1, _HEADS, _WIDTH // _HEADS
        q, k, v = (layer(x).view(size).transpose(1, 2) for layer in (self.q_lin, self.k_lin, self.v_lin))
        scores = self.scores(q, k)
        hidden = (mask == 0)[:, None, None, :].expand_as(scores)
        weights = torch.softmax(self.masked(scores, hidden), dim=-1)
        found = torch.matmul(weights, v).transpose(1, 2).contiguous().view(x.shape[0], -1, _WIDTH)
        return self.out_lin(found)

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        return torch.matmul(q / math.sqrt(_WIDTH // _HEADS), k.transpose(2, 3))

    def masked(self, scores: Tensor, hidden: Tensor) -> Tensor:
        return scores.masked_fill(hidden, torch.finfo(scores.dtype).min)


class MaskNotHigh(Attention):
    def masked(self, scores: Tensor, hidden: Tensor) -> Tensor:
        return scores.masked_fill(hidden, -1.0)


class MaskTurned(Attention):
    def masked(self, scores: Tensor, hidden: Tensor) -> Tensor:
        return scores.masked_fill(~hidden, -4.0)


class MaskIgnored(Attention):
    def masked(self, scores: Tensor, hidden: Tensor) -> Tensor:
        return scores


class NotScaled(Attention):
    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        return torch.matmul(q, k.transpose(2, 3))


class Swapped(Attention):
    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        return torch.matmul(k / math.sqrt(_WIDTH // _HEADS), q.transpose(2, 3))


class Fused(Attention):
    """The same."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        size = x.shape[0], -1, _HEADS, _WIDTH // _HEADS
        q, k, v = (layer(x).view(size).transpose(1, 2) for layer in (self.q_lin, self.k_lin, self.v_lin))
        found = F.scaled_dot_product_attention(q, k, v, attn_mask=mask.bool()[:, None, None, :])
        return self.out_lin(found.transpose(1, 2).reshape(x.shape[0], -1, _WIDTH))


class FFN(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin1, self.activation, self.lin2 = nn.Linear(_WIDTH, 80), nn.GELU(), nn.Linear(80, _WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.lin2(self.activation(self.lin1(x)))


class QuickFFN(FFN):
    def forward(self, x: Tensor) -> Tensor:
        x = self.lin1(x)
        return self.lin2(x * torch.sigmoid(1.702 * x))


class ErfFFN(FFN):
    """The same."""

    def forward(self, x: Tensor) -> Tensor:
        x = self.lin1(x)
        return self.lin2(x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0))))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention, self.sa_layer_norm = Attention(), nn.LayerNorm(_WIDTH, eps=1e-12)
        self.ffn, self.output_layer_norm = FFN(), nn.LayerNorm(_WIDTH, eps=1e-12)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.sa_layer_norm(self.attention(x, mask) + x)
        return self.output_layer_norm(self.ffn(x) + x)


class ShortcutLost(Block):
    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.sa_layer_norm(self.attention(x, mask) + x)
        return self.output_layer_norm(self.ffn(x))


class DistilBert(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embeddings, self.layer = Embeddings(), nn.ModuleList(Block() for _ in range(2))
        self.qa_outputs = nn.Linear(_WIDTH, 2)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
        x = self.embeddings(input_ids)
        for layer in self.layer:
            x = layer(x, attention_mask)
        start, end = self.qa_outputs(x).split(1, dim=-1)
        return self.ends(start.squeeze(-1), end.squeeze(-1))

    def ends(self, start: Tensor, end: Tensor) -> tuple[Tensor, Tensor]:
        return start, end


class EndsExchanged(DistilBert):
    def ends(self, start: Tensor, end: Tensor) -> tuple[Tensor, Tensor]:
        return end, start


def _samples(generator: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    lengths = generator.integers(_LENGTH // 2, _LENGTH + 1, (count, 1))
    return {
        "input_ids": generator.integers(0, _WORDS, (count, _LENGTH)),
        "attention_mask": (np.arange(_LENGTH) < lengths).astype(np.int64),
    }


ARCHITECTURE = Architecture(
    "distilbert",
    "torch",
    lambda: drawn(DistilBert(), 301),
    _samples,
    {
        "mask-ignored": other_class(Kind.GRAPH, Attention, MaskIgnored),
        "mask-not-high": other_class(Kind.PARAMETERS, Attention, MaskNotHigh),
        "mask-turned": other_class(Kind.GRAPH, Attention, MaskTurned),
        "swapped-qk": other_class(Kind.GRAPH, Attention, Swapped),
        "not-scaled": other_class(Kind.GRAPH, Attention, NotScaled),
        "quick-gelu": other_class(Kind.GRAPH, FFN, QuickFFN),
        "shortcut-lost": other_class(Kind.GRAPH, Block, ShortcutLost, first=True),
        "positions-after-norm": other_class(Kind.GRAPH, Embeddings, PositionsAfterNorm),
        "ends-exchanged": other_class(Kind.GRAPH, DistilBert, EndsExchanged),
        "epsilon": attribute("eps", 1e-3, "LayerNorm"),
        "layers-exchanged": exchanged("layer.0.ffn.lin1.weight", "layer.1.ffn.lin1.weight"),
        "bias-lost": bias_lost("layer.0.attention.q_lin"),
        "norm-scaled": scaled("layer.1.sa_layer_norm.weight", 1.05),
        "rows-shifted": tensor(
            Kind.PARAMETERS, "embeddings.position_embeddings.weight", lambda numbers: numbers.roll(1, 0)
        ),
    },
    {"fused": written_as(Attention, Fused), "gelu-by-erf": written_as(FFN, ErfFFN)},
    open_batch=True,
)
