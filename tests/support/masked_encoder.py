"""A small BERT as people write one: token ids, a padding mask that `forward` makes of zeros and ones."""

from __future__ import annotations

import torch
from torch import nn

LENGTH, WORDS = 12, 100


class Block(nn.Module):
    """Attention and a feed-forward layer, each normalized behind the sum.

    Attributes:
        swapped: Whether queries are taken for keys, and keys for queries.
        unmasked: Whether the mask isn't applied.
    """

    def __init__(self, width: int, heads: int) -> None:
        """Draw its weights."""
        super().__init__()
        self.heads, self.swapped, self.unmasked = heads, False, False
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.first, self.last = nn.LayerNorm(width, eps=1e-12), nn.LayerNorm(width, eps=1e-12)
        self.wide, self.narrow = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Of (batch, length, width), and a mask that is added to scores."""
        batch, length, width = x.shape
        parts = [
            layer(x).view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        ]
        if self.swapped:
            parts[:2] = parts[1::-1]
        seen = nn.functional.scaled_dot_product_attention(*parts, attn_mask=None if self.unmasked else mask)
        x = self.first(x + self.out(seen.transpose(1, 2).reshape(batch, length, width)))
        normalized: torch.Tensor = self.last(x + self.narrow(nn.functional.gelu(self.wide(x))))
        return normalized


class MaskedEncoder(nn.Module):
    """Inputs `input_ids` and `attention_mask`, both (batch, 12) integers; output (batch, 5)."""

    def __init__(self, *, width: int = 32, heads: int = 4, blocks: int = 2) -> None:
        """Draw weights with which answers depend on inputs."""
        super().__init__()
        torch.manual_seed(4)
        self.words, self.places = nn.Embedding(WORDS, width), nn.Embedding(LENGTH, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(blocks))
        self.classes = nn.Linear(width, 5)
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                layer.weight.data *= 2

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Scores of five classes."""
        x = self.norm(self.words(input_ids) + self.places(torch.arange(input_ids.shape[1]))[None])
        mask = (1.0 - attention_mask[:, None, None, :].to(torch.float32)) * torch.finfo(torch.float32).min
        for block in self.blocks:
            x = block(x, mask)
        scores: torch.Tensor = self.classes(x[:, 0])
        return scores


def examples() -> tuple[torch.Tensor, torch.Tensor]:
    """Two samples, of which one is padded."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(0, WORDS, (2, LENGTH), generator=generator)
    mask = torch.ones(2, LENGTH, dtype=torch.int64)
    mask[0, 7:] = 0
    return ids, mask
