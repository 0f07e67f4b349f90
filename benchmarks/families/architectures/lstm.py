"""A bidirectional LSTM over words, with attention over time, as taggers and sentiment models are written."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.families.architecture import Architecture, Fault
from benchmarks.families.torch_faults import bias_lost, exchanged, other_class, scaled, tensor, written_as
from benchmarks.families.weights import drawn
from conrepair.ground.graph.kinds import Kind

__all__ = ["ARCHITECTURE"]

_WORDS, _WIDTH, _HIDDEN, _LENGTH, _CLASSES = 60, 24, 16, 10, 6


class Pooling(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.score = nn.Linear(2 * _HIDDEN, 1)

    def forward(self, x: Tensor) -> Tensor:
        return (x * torch.softmax(self.score(torch.tanh(x)), 1)).sum(1)


class OverFeatures(Pooling):
    def forward(self, x: Tensor) -> Tensor:
        return (x * torch.softmax(self.score(torch.tanh(x)), 2)).sum(1)


class NoTanh(Pooling):
    def forward(self, x: Tensor) -> Tensor:
        return (x * torch.softmax(self.score(x), 1)).sum(1)


class ByProduct(Pooling):
    """The same."""

    def forward(self, x: Tensor) -> Tensor:
        weights = torch.softmax(self.score(torch.tanh(x)), 1)
        return torch.matmul(weights.transpose(1, 2), x).squeeze(1)


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.lstm = (
            nn.Embedding(_WORDS, _WIDTH),
            nn.LSTM(_WIDTH, _HIDDEN, 2, batch_first=True, bidirectional=True),
        )
        self.pooling, self.dense, self.head = Pooling(), nn.Linear(2 * _HIDDEN, 24), nn.Linear(24, _CLASSES)

    def forward(self, words: Tensor) -> Tensor:
        return self.head(torch.relu(self.dense(self.pooling(self.read(self.embedding(words))))))

    def read(self, x: Tensor) -> Tensor:
        return self.lstm(x)[0]


class Reversed(Tagger):
    def read(self, x: Tensor) -> Tensor:
        return self.lstm(x.flip(1))[0]


class DirectionsSwapped(Tagger):
    def read(self, x: Tensor) -> Tensor:
        one, two = self.lstm(x)[0].chunk(2, -1)
        return torch.cat([two, one], -1)


class TimeFirst(Tagger):
    """The same."""

    def read(self, x: Tensor) -> Tensor:
        self.lstm.batch_first = False
        return self.lstm(x.transpose(0, 1))[0].transpose(0, 1)


def _gates(*order: int) -> Fault:
    def change(network: nn.Module) -> None:
        with torch.no_grad():
            for name, parameter in network.lstm.named_parameters():
                if "_l0" in name:
                    parts = parameter.chunk(4)
                    parameter.copy_(torch.cat([parts[place] for place in order]))

    return Fault(Kind.PARAMETERS, change)


def _samples(generator: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    return {"words": generator.integers(0, _WORDS, (count, _LENGTH))}


ARCHITECTURE = Architecture(
    "lstm",
    "torch",
    lambda: drawn(Tagger(), 205, gain=1.6),
    _samples,
    {
        "gates-of-onnx": _gates(0, 3, 1, 2),
        "forget-and-cell": _gates(0, 2, 1, 3),
        "directions-swapped": other_class(Kind.GRAPH, Tagger, DirectionsSwapped),
        "reversed": other_class(Kind.GRAPH, Tagger, Reversed),
        "directions-exchanged": exchanged("lstm.weight_hh_l0", "lstm.weight_hh_l0_reverse"),
        "recurrent-scaled": scaled("lstm.weight_hh_l1", 1.2),
        "recurrent-transposed": tensor(
            Kind.PARAMETERS,
            "lstm.weight_hh_l0",
            lambda numbers: torch.cat([part.T for part in numbers.chunk(4)]),
        ),
        "bias-of-one": tensor(Kind.PARAMETERS, "lstm.bias_hh_l0", torch.zeros_like),
        "softmax-over-features": other_class(Kind.HYPERPARAMETERS, Pooling, OverFeatures),
        "tanh-lost": other_class(Kind.GRAPH, Pooling, NoTanh),
        "bias-lost": bias_lost("dense"),
        "one-row": tensor(Kind.PARAMETERS, "embedding.weight", lambda numbers: _with_row(numbers, 7)),
        "labels-off-by-one": tensor(Kind.PARAMETERS, "head.bias", lambda numbers: numbers.roll(1)),
    },
    {"by-product": written_as(Pooling, ByProduct), "time-first": written_as(Tagger, TimeFirst)},
    routes=("script", "dynamo", "tflite"),
)


def _with_row(numbers: Tensor, row: int) -> Tensor:
    numbers[row] = -numbers[row]
    return numbers
