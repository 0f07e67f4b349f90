"""BERT (Devlin et al. 2019), as it's written by hand: a float mask is made in `forward`."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.families.architecture import Architecture, Array
from benchmarks.families.torch_faults import attribute, bias_lost, other_class, scaled, tensor, written_as
from benchmarks.families.weights import drawn
from conrepair.ground.graph.kinds import Kind

__all__ = ["ARCHITECTURE"]

_WORDS, _POSITIONS, _WIDTH, _HEADS, _LENGTH = 120, 32, 48, 4, 16


class Embeddings(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(_WORDS, _WIDTH)
        self.position_embeddings = nn.Embedding(_POSITIONS, _WIDTH)
        self.token_type_embeddings = nn.Embedding(2, _WIDTH)
        self.norm = nn.LayerNorm(_WIDTH, eps=1e-12)

    def forward(self, ids: Tensor, types: Tensor) -> Tensor:
        positions = torch.arange(ids.shape[1], device=ids.device)[None]
        found = self.word_embeddings(ids) + self.token_type_embeddings(types)
        return self.norm(found + self.position_embeddings(positions))


class PositionsFromOne(Embeddings):
    def forward(self, ids: Tensor, types: Tensor) -> Tensor:
        positions = torch.arange(1, ids.shape[1] + 1, device=ids.device)[None]
        found = self.word_embeddings(ids) + self.token_type_embeddings(types)
        return self.norm(found + self.position_embeddings(positions))


class NoTypes(Embeddings):
    def forward(self, ids: Tensor, types: Tensor) -> Tensor:
        positions = torch.arange(ids.shape[1], device=ids.device)[None]
        found = self.word_embeddings(ids) + self.token_type_embeddings(types * 0)
        return self.norm(found + self.position_embeddings(positions))


class SelfAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(_WIDTH, _WIDTH) for _ in range(3))

    def heads(self, x: Tensor) -> Tensor:
        return x.view(x.shape[0], x.shape[1], _HEADS, _WIDTH // _HEADS).transpose(1, 2)

    def joined(self, x: Tensor) -> Tensor:
        return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], _WIDTH)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        q, k, v = self.heads(self.query(x)), self.heads(self.key(x)), self.heads(self.value(x))
        return self.joined(F.scaled_dot_product_attention(q, k, v, attn_mask=mask))


class SwappedAttention(SelfAttention):
    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        q, k, v = self.heads(self.query(x)), self.heads(self.key(x)), self.heads(self.value(x))
        return self.joined(F.scaled_dot_product_attention(k, q, v, attn_mask=mask))


class UnmaskedAttention(SelfAttention):
    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        q, k, v = self.heads(self.query(x)), self.heads(self.key(x)), self.heads(self.value(x))
        return self.joined(F.scaled_dot_product_attention(q, k, v))


class UnscaledAttention(SelfAttention):
    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        q, k, v = self.heads(self.query(x)), self.heads(self.key(x)), self.heads(self.value(x))
        return self.joined(F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=_WIDTH**-0.5))


class HeadsLast(SelfAttention):
    def heads(self, x: Tensor) -> Tensor:
        return x.view(x.shape[0], x.shape[1], _WIDTH // _HEADS, _HEADS).permute(0, 3, 1, 2)


class SoftmaxOverQueries(SelfAttention):
    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        q, k, v = self.heads(self.query(x)), self.heads(self.key(x)), self.heads(self.value(x))
        scores = q @ k.transpose(-1, -2) / (_WIDTH // _HEADS) ** 0.5 + mask
        return self.joined(torch.softmax(scores, 2) @ v)


class AttentionByHand(SelfAttention):
    """The same."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        q, k, v = self.heads(self.query(x)), self.heads(self.key(x)), self.heads(self.value(x))
        scores = q @ k.transpose(-1, -2) / (_WIDTH // _HEADS) ** 0.5
        return self.joined(torch.softmax(scores + mask, -1) @ v)


class AttentionInOneProduct(SelfAttention):
    """The same."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        layers = self.query, self.key, self.value
        weight, bias = torch.cat([item.weight for item in layers]), torch.cat([item.bias for item in layers])
        q, k, v = map(self.heads, F.linear(x, weight, bias).chunk(3, -1))
        return self.joined(F.scaled_dot_product_attention(q, k, v, attn_mask=mask > -1))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention, self.dense = SelfAttention(), nn.Linear(_WIDTH, _WIDTH)
        self.attention_norm, self.norm = nn.LayerNorm(_WIDTH, eps=1e-12), nn.LayerNorm(_WIDTH, eps=1e-12)
        self.intermediate, self.activation = nn.Linear(_WIDTH, 2 * _WIDTH), nn.GELU()
        self.output = nn.Linear(2 * _WIDTH, _WIDTH)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.attention_norm(x + self.dense(self.attention(x, mask)))
        return self.norm(x + self.output(self.activation(self.intermediate(x))))


class NormBefore(Block):
    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = x + self.dense(self.attention(self.attention_norm(x), mask))
        return x + self.output(self.activation(self.intermediate(self.norm(x))))


class Bert(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embeddings, self.layers = Embeddings(), nn.ModuleList(Block() for _ in range(2))
        self.pooler, self.classifier = nn.Linear(_WIDTH, _WIDTH), nn.Linear(_WIDTH, 5)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        seen = attention_mask[:, None, None, :].to(torch.float32)
        mask = (1.0 - seen) * torch.finfo(torch.float32).min
        x = self.embeddings(input_ids, token_type_ids)
        for layer in self.layers:
            x = layer(x, mask)
        return self.classifier(torch.tanh(self.pooler(self.pooled(x))))

    def pooled(self, x: Tensor) -> Tensor:
        return x[:, 0]


class LastToken(Bert):
    def pooled(self, x: Tensor) -> Tensor:
        return x[:, -1]


def _samples(generator: np.random.Generator, count: int) -> dict[str, Array]:
    lengths = generator.integers(_LENGTH // 2, _LENGTH + 1, (count, 1))
    return {
        "input_ids": generator.integers(0, _WORDS, (count, _LENGTH)),
        "attention_mask": (np.arange(_LENGTH) < lengths).astype(np.int64),
        "token_type_ids": (np.arange(_LENGTH) >= lengths // 2).astype(np.int64),
    }


ARCHITECTURE = Architecture(
    "bert",
    "torch",
    lambda: drawn(Bert(), 101),
    _samples,
    {
        "swapped-qk": other_class(Kind.GRAPH, SelfAttention, SwappedAttention),
        "mask-ignored": other_class(Kind.GRAPH, SelfAttention, UnmaskedAttention),
        "softmax-over-queries": other_class(Kind.HYPERPARAMETERS, SelfAttention, SoftmaxOverQueries),
        "scale-of-the-width": other_class(Kind.HYPERPARAMETERS, SelfAttention, UnscaledAttention),
        "heads-last": other_class(Kind.STRUCTURE, SelfAttention, HeadsLast, first=True),
        "epsilon": attribute("eps", 1e-2, "LayerNorm"),
        "gelu-tanh": attribute("approximate", "tanh", "GELU", kind=Kind.GRAPH),
        "value-scaled": scaled("layers.1.attention.value.weight", 1.1),
        "bias-lost": bias_lost("layers.1.intermediate"),
        "norm-before": other_class(Kind.GRAPH, Block, NormBefore),
        "positions-from-one": other_class(Kind.PARAMETERS, Embeddings, PositionsFromOne),
        "types-ignored": other_class(Kind.GRAPH, Embeddings, NoTypes),
        "last-token": other_class(Kind.HYPERPARAMETERS, Bert, LastToken),
        "labels-off-by-one": tensor(Kind.PARAMETERS, "classifier.weight", lambda numbers: numbers.roll(1, 0)),
    },
    {
        "attention-by-hand": written_as(SelfAttention, AttentionByHand),
        "one-product-and-boolean-mask": written_as(SelfAttention, AttentionInOneProduct),
    },
    ("dynamo", "script", "tflite"),
)
