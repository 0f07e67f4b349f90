"""A GRU over frames with a convolution in front, as keyword spotters and forecasters are written."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.families.architecture import Architecture, Fault
from benchmarks.families.torch_faults import (
    attribute,
    bias_lost,
    exchanged,
    other_class,
    replaced,
    scaled,
    tensor,
    written_as,
)
from benchmarks.families.weights import drawn
from conrepair.ground.graph.kinds import Kind

__all__ = ["ARCHITECTURE"]

_BINS, _FRAMES, _HIDDEN, _CLASSES = 12, 20, 20, 8


class Spotter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(_BINS)
        self.conv, self.relu = nn.Conv1d(_BINS, _HIDDEN, 3, padding=1), nn.ReLU()
        self.gru = nn.GRU(_HIDDEN, _HIDDEN, batch_first=True)
        self.dense, self.act, self.head = nn.Linear(2 * _HIDDEN, 24), nn.ELU(), nn.Linear(24, _CLASSES)

    def forward(self, frames: Tensor) -> Tensor:
        x = self.relu(self.conv(self.norm(frames.transpose(1, 2)))).transpose(1, 2)
        states, last = self.read(x)
        return self.head(self.act(self.dense(torch.cat([self.last(states, last), states.mean(1)], -1))))

    def read(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.gru(x)

    def last(self, states: Tensor, last: Tensor) -> Tensor:
        return last[-1]


class FirstState(Spotter):
    def last(self, states: Tensor, last: Tensor) -> Tensor:
        return states[:, 0]


class Reversed(Spotter):
    def read(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.gru(x.flip(1))


class BeginsWithOnes(Spotter):
    def read(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.gru(x, torch.ones(1, x.shape[0], _HIDDEN))


class LastOfStates(Spotter):
    """The same."""

    def last(self, states: Tensor, last: Tensor) -> Tensor:
        return states[:, -1]


class Unrolled(Spotter):
    """The same."""

    def read(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h, found = torch.zeros(x.shape[0], _HIDDEN), []
        for step in range(x.shape[1]):
            h = self.cell(x[:, step], h)
            found.append(h)
        return torch.stack(found, 1), h[None]

    def cell(self, x: Tensor, h: Tensor) -> Tensor:
        own = nn.functional.linear(x, self.gru.weight_ih_l0, self.gru.bias_ih_l0).chunk(3, -1)
        before = nn.functional.linear(h, self.gru.weight_hh_l0, self.gru.bias_hh_l0).chunk(3, -1)
        reset, update = torch.sigmoid(own[0] + before[0]), torch.sigmoid(own[1] + before[1])
        new = torch.tanh(own[2] + reset * before[2])
        return (1 - update) * new + update * h


class ResetBefore(Unrolled):
    """As Keras does without `reset_after`: in unrolled form, the only one that can say it."""

    def cell(self, x: Tensor, h: Tensor) -> Tensor:
        own = nn.functional.linear(x, self.gru.weight_ih_l0, self.gru.bias_ih_l0).chunk(3, -1)
        weights, biases = self.gru.weight_hh_l0.chunk(3), self.gru.bias_hh_l0.chunk(3)
        reset = torch.sigmoid(own[0] + h @ weights[0].T + biases[0])
        update = torch.sigmoid(own[1] + h @ weights[1].T + biases[1])
        new = torch.tanh(own[2] + (reset * h) @ weights[2].T + biases[2])
        return (1 - update) * new + update * h


def _gates(*order: int) -> Fault:
    def change(network: nn.Module) -> None:
        with torch.no_grad():
            for parameter in network.gru.parameters():
                parts = parameter.chunk(3)
                parameter.copy_(torch.cat([parts[place] for place in order]))

    return Fault(Kind.PARAMETERS, change)


def _samples(generator: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    loud = generator.random((count, 1, _BINS)) + 0.3
    noise = generator.standard_normal((count, _FRAMES, _BINS))
    return {"frames": (loud * np.cumsum(noise, 1) / 3).astype(np.float32)}


ARCHITECTURE = Architecture(
    "gru",
    "torch",
    lambda: drawn(Spotter(), 309, _samples(np.random.default_rng(1), 64), gain=1.5),
    _samples,
    {
        "gates-of-onnx": _gates(1, 0, 2),
        "new-gate-first": _gates(2, 1, 0),
        "first-state": other_class(Kind.GRAPH, Spotter, FirstState),
        "reversed": other_class(Kind.GRAPH, Spotter, Reversed),
        "begins-with-ones": other_class(Kind.GRAPH, Spotter, BeginsWithOnes),
        "reset-before": other_class(Kind.GRAPH, Spotter, ResetBefore),
        "biases-exchanged": exchanged("gru.bias_ih_l0", "gru.bias_hh_l0"),
        "recurrent-bias-lost": tensor(Kind.PARAMETERS, "gru.bias_hh_l0", torch.zeros_like),
        "recurrent-scaled": scaled("gru.weight_hh_l0", 1.1),
        "kernel-turned": tensor(Kind.PARAMETERS, "conv.weight", lambda numbers: numbers.flip(2)),
        "channels-permuted": tensor(Kind.PARAMETERS, "gru.weight_ih_l0", lambda numbers: numbers.roll(1, 1)),
        "edges-repeated": attribute("padding_mode", "replicate", "conv", kind=Kind.GRAPH),
        "activation-lost": replaced(Kind.GRAPH, "relu", nn.Identity),
        "alpha": attribute("alpha", 0.5, "act"),
        "epsilon": attribute("eps", 1e-1, "norm"),
        "bias-lost": bias_lost("dense"),
    },
    {"last-of-states": written_as(Spotter, LastOfStates), "unrolled": written_as(Spotter, Unrolled)},
    routes=("script", "dynamo", "tflite"),
)
