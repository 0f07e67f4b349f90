"""Small networks that are no image classifiers, for `route-matrix-other.json`."""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["encoder", "gru", "lstm", "two_inputs"]


class _Encoder(nn.Module):
    """A transformer encoder over tokens: int64 [N, length] to a vector and a score for each token."""

    def __init__(self, vocabulary: int, length: int, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.randn(1, length, width))
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.scores = nn.Linear(width, vocabulary)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.scores(self.encoder(self.words(tokens) + self.positions))


class _Recurrent(nn.Module):
    """Two bidirectional recurrent layers over float32 [N, length, width], and a linear one on the last step."""

    def __init__(self, cell: type[nn.LSTM | nn.GRU], width: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.recurrent = cell(width, hidden, num_layers=2, batch_first=True, bidirectional=True)
        self.scores = nn.Linear(2 * hidden, classes)

    def forward(self, sequence: torch.Tensor) -> torch.Tensor:
        states, _ = self.recurrent(sequence)
        return self.scores(states[:, -1])


class _TwoInputs(nn.Module):
    """Pictures float32 [N, 3, 16, 16] and vectors float32 [N, 8] to scores [N, 5] and maps [N, 4, 8, 8]."""

    def __init__(self) -> None:
        super().__init__()
        self.picture = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.vector = nn.Linear(8, 8)
        self.maps = nn.Conv2d(8, 4, 1)
        self.scores = nn.Linear(8, 5)

    def forward(self, image: torch.Tensor, vector: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        features = self.picture(image) * torch.sigmoid(self.vector(vector))[:, :, None, None]
        return self.scores(features.mean((2, 3))), self.maps(features)


def encoder(vocabulary: int = 100, length: int = 16, width: int = 64, heads: int = 4, layers: int = 2) -> nn.Module:
    """A transformer encoder over tokens."""
    return _Encoder(vocabulary, length, width, heads, layers)


def lstm(width: int = 12, hidden: int = 24, classes: int = 5) -> nn.Module:
    """A network of bidirectional LSTM layers."""
    return _Recurrent(nn.LSTM, width, hidden, classes)


def gru(width: int = 12, hidden: int = 24, classes: int = 5) -> nn.Module:
    """A network of bidirectional GRU layers."""
    return _Recurrent(nn.GRU, width, hidden, classes)


def two_inputs() -> nn.Module:
    """A network with two inputs and two outputs of different shapes."""
    return _TwoInputs()
