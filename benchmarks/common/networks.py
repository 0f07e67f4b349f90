"""Small networks of every sort that localization has to cope with, in PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.common.digits import read_digits

__all__ = [
    "FEATURES",
    "HELD_OUT",
    "STEPS",
    "TOKENS",
    "WORDS",
    "digits_cnn",
    "encoder",
    "perceptron",
    "recurrent",
    "train_on_digits",
    "two_inputs",
]

WORDS, TOKENS = 50, 12  # of the encoder's text
STEPS, FEATURES = 9, 6  # of the recurrent network's series
HELD_OUT = 297
"""Pictures, the last ones, that no network is trained on."""

_EPOCHS, _BATCH = 6, 64
_LEAST_ACCURACY = 0.8


def digits_cnn() -> Any:
    """Pictures to digits: convolutions (plain, depthwise, dilated), a shortcut, poolings, two dense layers."""
    import torch
    from torch import nn
    from torch.nn import functional

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.first_norm = nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16)
            self.depthwise = nn.Conv2d(16, 16, 3, padding=1, groups=16)
            self.depthwise_norm = nn.BatchNorm2d(16)
            self.pointwise, self.pointwise_norm = nn.Conv2d(16, 32, 1), nn.BatchNorm2d(32)
            self.dilated = nn.Conv2d(32, 32, 3, padding=2, dilation=2)
            self.dilated_norm = nn.BatchNorm2d(32)
            self.largest, self.mean = nn.MaxPool2d(3, 2, 1), nn.AvgPool2d(3, 1, 1)
            self.dense, self.classes = nn.Linear(32 * 4 * 4, 48), nn.Linear(48, 10)

        def forward(self, picture: torch.Tensor) -> torch.Tensor:
            x = torch.relu(self.first_norm(self.first(picture)))
            x = functional.relu6(self.depthwise_norm(self.depthwise(x)))
            x = functional.silu(self.pointwise_norm(self.pointwise(x)))
            x = torch.relu(self.dilated_norm(self.dilated(x)) + x)
            x = self.mean(self.largest(x))
            return self.classes(functional.gelu(self.dense(x.flatten(1))))

    return Network()


def train_on_digits(network: Any, path: Path) -> float:
    """Train on scikit-learn's digits for some seconds, and save the weights.

    Args:
        network: Takes pictures of 8 x 8.
        path: Of the state dict.

    Returns:
        The share of right answers on pictures that were held out.

    Raises:
        RuntimeError: if that's so low that the training can't have worked.
    """
    import torch

    pictures, labels = (torch.from_numpy(array) for array in read_digits())
    optimizer = torch.optim.Adam(network.parameters(), 3e-3)
    seen = len(pictures) - HELD_OUT
    for _ in range(_EPOCHS):
        for rows in torch.randperm(seen).split(_BATCH):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(network(pictures[rows]), labels[rows]).backward()
            optimizer.step()
    network.eval()
    with torch.no_grad():
        accuracy = float((network(pictures[seen:]).argmax(1) == labels[seen:]).float().mean())
    if accuracy < _LEAST_ACCURACY:
        raise RuntimeError(f"the network of digits is right on {accuracy:.2f} only: its training went wrong")
    torch.save(network.state_dict(), path)
    return accuracy


def encoder() -> Any:
    """Token ids to classes: embeddings and three equal layers of attention."""
    import torch
    from torch import nn

    torch.backends.mha.set_fastpath_enabled(False)  # a fused kernel that exporters don't know

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(WORDS, 32)
            self.places = nn.Parameter(torch.randn(TOKENS, 32))
            layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, activation="gelu")
            self.layers = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
            self.classes = nn.Linear(32, 5)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            return self.classes(self.layers(self.words(tokens) + self.places).mean(1))

    return Network()


def recurrent() -> Any:
    """A series to classes: two LSTM layers, a GRU."""
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(FEATURES, 16, 2, batch_first=True)
            self.gru = nn.GRU(16, 12, batch_first=True)
            self.classes = nn.Linear(12, 4)

        def forward(self, series: torch.Tensor) -> torch.Tensor:
            return self.classes(self.gru(self.lstm(series)[0])[0][:, -1])

    return Network()


def two_inputs() -> Any:
    """Two vectors to two results, through layers that they share."""
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.Linear(8, 16), nn.Linear(8, 16)
            self.scores, self.shares = nn.Linear(32, 8), nn.Linear(32, 8)

        def forward(self, left: torch.Tensor, right: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            both = torch.cat([torch.tanh(self.one(left)), torch.relu(self.two(right))], 1)
            return self.scores(both), torch.softmax(self.shares(both), 1)

    return Network()


def perceptron() -> Any:
    """A vector to three numbers, through one activation of every sort."""
    from torch import nn

    return nn.Sequential(
        nn.Linear(20, 64),
        nn.ELU(),
        nn.Linear(64, 64),
        nn.LeakyReLU(0.1),
        nn.Linear(64, 64),
        nn.Hardswish(),
        nn.Linear(64, 64),
        nn.LayerNorm(64),
        nn.Sigmoid(),
        nn.Linear(64, 3),
    )
