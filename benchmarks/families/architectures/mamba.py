"""A selective state space as Mamba's (Gu and Dao 2023): a causal depthwise convolution, a scan over time, a gate."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.families.architecture import Architecture
from benchmarks.families.torch_faults import attribute, bias_lost, other_class, scaled, tensor, written_as
from benchmarks.families.weights import drawn
from conrepair.ground.graph.kinds import Kind

__all__ = ["ARCHITECTURE"]

_WORDS, _WIDTH, _WIDE, _STATE, _RANK, _LENGTH = 70, 24, 32, 4, 4, 8


class RMSNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(_WIDTH)), 1e-5

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class Mixer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.in_proj = nn.Linear(_WIDTH, 2 * _WIDE, bias=False)
        self.conv1d = nn.Conv1d(_WIDE, _WIDE, 3, padding=2, groups=_WIDE)
        self.x_proj, self.dt_proj = nn.Linear(_WIDE, _RANK + 2 * _STATE, bias=False), nn.Linear(_RANK, _WIDE)
        self.A_log = nn.Parameter(torch.zeros(_WIDE, _STATE))
        self.D = nn.Parameter(torch.ones(_WIDE))
        self.out_proj = nn.Linear(_WIDE, _WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[1]
        u, gate = self.in_proj(x).chunk(2, -1)
        u = F.silu(self.cut(self.conv1d(u.transpose(1, 2)), length)).transpose(1, 2)
        step, b, c = self.x_proj(u).split((_RANK, _STATE, _STATE), -1)
        step = self.positive(self.dt_proj(step))
        y = self.scan(u, step, self.decay(), b, c)
        return self.out_proj(self.gated(self.with_input(y, u), gate))

    def cut(self, x: Tensor, length: int) -> Tensor:
        return x[..., :length]

    def positive(self, step: Tensor) -> Tensor:
        return F.softplus(step)

    def decay(self) -> Tensor:
        return -torch.exp(self.A_log)

    def scan(self, u: Tensor, step: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        h, found = torch.zeros(u.shape[0], _WIDE, _STATE), []
        for place in range(u.shape[1]):
            kept = torch.exp(step[:, place, :, None] * a)
            new = step[:, place, :, None] * b[:, place, None, :] * u[:, place, :, None]
            h = kept * h + new
            found.append((h * c[:, place, None, :]).sum(-1))
        return torch.stack(found, 1)

    def with_input(self, y: Tensor, u: Tensor) -> Tensor:
        return y + u * self.D

    def gated(self, y: Tensor, gate: Tensor) -> Tensor:
        return y * F.silu(gate)


class CutInFront(Mixer):
    def cut(self, x: Tensor, length: int) -> Tensor:
        return x[..., -length:]


class ReluSteps(Mixer):
    def positive(self, step: Tensor) -> Tensor:
        return F.relu(step)


class PlainDecay(Mixer):
    def decay(self) -> Tensor:
        return -self.A_log.abs()


class Swapped(Mixer):
    def scan(self, u: Tensor, step: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        return super().scan(u, step, a, c, b)


class Forgets(Mixer):
    def scan(self, u: Tensor, step: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        return ((step * u)[..., None] * b[:, :, None] * c[:, :, None]).sum(-1)


class NoInput(Mixer):
    def with_input(self, y: Tensor, u: Tensor) -> Tensor:
        return y


class SigmoidGate(Mixer):
    def gated(self, y: Tensor, gate: Tensor) -> Tensor:
        return y * torch.sigmoid(gate)


class Cumulative(Mixer):
    """The same, in closed form: sums of what is left of each input."""

    def scan(self, u: Tensor, step: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        passed = torch.cumsum(step, 1)
        apart = passed[:, :, None] - passed[:, None]  # (batch, now, then, width)
        length = u.shape[1]
        causal = torch.tril(torch.ones(length, length))[None, :, :, None, None]
        left = torch.exp(apart.clamp(min=0)[..., None] * a) * causal
        new = (step * u)[..., None] * b[:, :, None]
        return ((left * new[:, None]).sum(2) * c[:, :, None]).sum(-1)


class ByEinsum(Mixer):
    """The same."""

    def scan(self, u: Tensor, step: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        kept = torch.exp(torch.einsum("btd,dn->btdn", step, a))
        new = torch.einsum("btd,btn,btd->btdn", step, b, u)
        h, found = new[:, 0], [torch.einsum("bdn,bn->bd", new[:, 0], c[:, 0])]
        for place in range(1, u.shape[1]):
            h = h * kept[:, place] + new[:, place]
            found.append(torch.einsum("bdn,bn->bd", h, c[:, place]))
        return torch.stack(found, 1)


class Mamba(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(_WORDS, _WIDTH)
        self.norms, self.mixers = nn.ModuleList([RMSNorm(), RMSNorm()]), nn.ModuleList([Mixer(), Mixer()])
        self.norm_f, self.lm_head = RMSNorm(), nn.Linear(_WIDTH, _WORDS, bias=False)

    def forward(self, input_ids: Tensor) -> Tensor:
        x = self.embedding(input_ids)
        for norm, mixer in zip(self.norms, self.mixers, strict=True):
            x = x + mixer(norm(x))
        return self.lm_head(self.norm_f(x))


def _samples(generator: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    return {"input_ids": generator.integers(0, _WORDS, (count, _LENGTH))}


ARCHITECTURE = Architecture(
    "mamba",
    "torch",
    lambda: drawn(Mamba(), 311, gain=1.5),
    _samples,
    {
        "cut-in-front": other_class(Kind.HYPERPARAMETERS, Mixer, CutInFront),
        "relu-for-softplus": other_class(Kind.GRAPH, Mixer, ReluSteps),
        "decay-not-exponential": other_class(Kind.GRAPH, Mixer, PlainDecay),
        "b-and-c": other_class(Kind.GRAPH, Mixer, Swapped),
        "forgets": other_class(Kind.GRAPH, Mixer, Forgets, first=True),
        "input-lost": other_class(Kind.GRAPH, Mixer, NoInput),
        "sigmoid-for-silu": other_class(Kind.GRAPH, Mixer, SigmoidGate),
        "epsilon": attribute("eps", 1e-2, "RMSNorm"),
        "kernel-turned": tensor(Kind.PARAMETERS, "mixers.1.conv1d.weight", lambda numbers: numbers.flip(2)),
        "decay-scaled": tensor(Kind.PARAMETERS, "mixers.0.A_log", lambda numbers: numbers + 0.3),
        "steps-biased": bias_lost("mixers.1.dt_proj"),
        "states-permuted": tensor(Kind.PARAMETERS, "mixers.1.x_proj.weight", lambda numbers: numbers.roll(1, 0)),
        "weight-scaled": scaled("mixers.0.out_proj.weight", 1.1),
        "words-shifted": tensor(Kind.PARAMETERS, "lm_head.weight", lambda numbers: numbers.roll(1, 0)),
    },
    {"in-closed-form": written_as(Mixer, Cumulative), "by-einsum": written_as(Mixer, ByEinsum)},
)
