"""Attention whose float mask is made in `forward`, in types that it names, as most code of that kind does."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from conrepair.ground.graph.layer_graph import Array


class MaskedAttention(nn.Module):
    """Every position sees itself and those before it; inputs (batch, length, 8)."""

    def __init__(self) -> None:
        """Draw its weights."""
        super().__init__()
        torch.manual_seed(5)
        self.project = nn.Linear(8, 24)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of one head."""
        length = x.shape[1]
        mask = torch.zeros(length, length) + torch.full((length, length), torch.finfo(torch.float32).min).triu(1)
        q, k, v = self.project(x.to(torch.float32)).chunk(3, dim=-1)
        return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    def exactly(self, x: Array) -> Array:
        """The same in float64, without PyTorch."""
        weight, bias = (item.detach().numpy().astype(np.float64) for item in (self.project.weight, self.project.bias))
        q, k, v = np.split(x.astype(np.float64) @ weight.T + bias, 3, axis=-1)
        scores = q @ k.transpose(0, 2, 1) / np.sqrt(8)
        scores[:, np.triu(np.ones(scores.shape[1:], bool), 1)] = -np.inf
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        result: Array = shares / shares.sum(-1, keepdims=True) @ v
        return result


def steps() -> Array:
    """An input of two samples."""
    return np.random.default_rng(3).standard_normal((2, 5, 8)).astype(np.float32)
