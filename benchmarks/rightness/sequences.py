"""Families of networks of texts, series, tokens and vectors: a seed draws depths, widths, activations."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.rightness.layers import Mixer, Residual, activation, transformer

__all__ = ["WORDS", "gru", "lstm", "mixer", "perceptron", "series", "text", "vit"]

WORDS = 43
"""Of texts."""

Draw = np.random.Generator
Shape = tuple[int, ...]


def text(draw: Draw) -> tuple[nn.Module, Shape]:
    """Ids to scores for each."""
    heads, tokens = int(draw.choice([2, 3, 4])), int(draw.integers(5, 12))
    size = heads * int(draw.choice([6, 8]))
    blocks = [transformer(draw, size, heads) for _ in range(int(draw.integers(1, 4)))]
    return nn.Sequential(nn.Embedding(WORDS, size), *blocks, nn.LayerNorm(size), nn.Linear(size, 7)), (tokens,)


def vit(draw: Draw) -> tuple[nn.Module, Shape]:
    """Patches of a picture to classes."""
    heads = int(draw.choice([2, 3]))
    size = heads * int(draw.choice([8, 10]))
    blocks = [transformer(draw, size, heads) for _ in range(int(draw.integers(1, 4)))]
    patches = nn.Sequential(nn.Conv2d(3, size, 4, 4), nn.Flatten(2))
    return nn.Sequential(patches, _Turned(), *blocks, nn.LayerNorm(size), _First(), nn.Linear(size, 9)), (3, 16, 16)


class _Turned(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.transpose(1, 2)


class _First(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, 0]


class _Recurrent(nn.Module):
    def __init__(self, draw: Draw, sort: Any, features: int) -> None:
        super().__init__()
        size, both = int(draw.integers(6, 16)), bool(draw.integers(2))
        self.layers = sort(features, size, int(draw.integers(1, 3)), batch_first=True, bidirectional=both)
        self.norm = nn.LayerNorm(size * (1 + both))
        self.out = nn.Linear(size * (1 + both), 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.norm(self.layers(x)[0])[:, -1])


def lstm(draw: Draw) -> tuple[nn.Module, Shape]:
    """A series to classes."""
    shape = int(draw.integers(5, 10)), int(draw.integers(4, 9))
    return _Recurrent(draw, nn.LSTM, shape[1]), shape


def gru(draw: Draw) -> tuple[nn.Module, Shape]:
    """A series to classes."""
    shape = int(draw.integers(5, 10)), int(draw.integers(4, 9))
    return _Recurrent(draw, nn.GRU, shape[1]), shape


def mixer(draw: Draw) -> tuple[nn.Module, Shape]:
    """Products over tokens and channels."""
    tokens, size = int(draw.integers(6, 12)), int(draw.integers(10, 24))
    body = [Mixer(draw, tokens, size) for _ in range(int(draw.integers(1, 4)))]
    return nn.Sequential(nn.Linear(5, size), *body, nn.LayerNorm(size), nn.Linear(size, 4)), (tokens, 5)


def series(draw: Draw) -> tuple[nn.Module, Shape]:
    """Convolutions of one dimension."""
    width, dilation = int(draw.integers(6, 16)), int(draw.choice([1, 2, 3]))

    def layer() -> nn.Module:
        one = nn.Conv1d(width, width, 3, padding=dilation, dilation=dilation)
        return nn.Sequential(one, nn.BatchNorm1d(width), activation(draw))

    body = [Residual(layer()) for _ in range(int(draw.integers(1, 4)))]
    ends = nn.Conv1d(4, width, 5, padding=2), nn.Conv1d(width, 3, 1)
    return nn.Sequential(ends[0], *body, ends[1]), (4, int(draw.integers(12, 24)))


def perceptron(draw: Draw) -> tuple[nn.Module, Shape]:
    """A vector to shares."""
    widths = [int(draw.integers(10, 40)) for _ in range(int(draw.integers(3, 6)))]
    body = [nn.Sequential(nn.Linear(one, two), activation(draw)) for one, two in itertools.pairwise(widths)]
    return nn.Sequential(*body, nn.LayerNorm(widths[-1]), nn.Linear(widths[-1], 6), nn.Softmax(1)), (widths[0],)
