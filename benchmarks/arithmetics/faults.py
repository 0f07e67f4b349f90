"""Faults that a module of PyTorch gets: one in each."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

__all__ = ["FAULTS", "Fault", "faulty"]

_WEIGHTS: tuple[type[nn.Module], ...] = (nn.Conv1d, nn.Conv2d, nn.ConvTranspose2d, nn.Linear, nn.LSTM, nn.GRU)
_BIASES = _WEIGHTS[:4]
_ACTIVATIONS: tuple[type[nn.Module], ...] = (
    *(nn.ReLU, nn.ReLU6, nn.SiLU, nn.GELU, nn.Hardswish, nn.LeakyReLU, nn.ELU, nn.Mish, nn.PReLU),
    *(nn.Sigmoid, nn.Tanh, nn.Softplus),
)
_NORMS = (nn.LayerNorm, nn.BatchNorm1d, nn.BatchNorm2d, nn.GroupNorm)

FAULTS = ("weights 1 %", "weights 3 %", "weights 10 %", "no activation", "no bias", "epsilon")
"""Names."""


@dataclass(frozen=True)
class Fault:
    """A fault in a module.

    Attributes:
        module: With the fault.
        place: Name of the part that has it.
        words: What was done.
    """

    module: nn.Module
    place: str
    words: str


def faulty(right: nn.Module, name: str, draw: np.random.Generator) -> Fault | None:
    """Put a fault into a copy; None where the module has no place for it.

    Args:
        right: The module; it stays as it is.
        name: One of `FAULTS`.
        draw: Of the place and the numbers.
    """
    module = copy.deepcopy(right)
    places = list(_places(module, name))
    if not places:
        return None
    place = places[int(draw.integers(len(places)))]
    part = module.get_submodule(place)
    with torch.no_grad():
        if name.startswith("weights"):
            words = _off(part, float(name.split()[1]) / 100, draw)
        elif name == "no activation":
            parent, _, last = place.rpartition(".")
            setattr(module.get_submodule(parent), last, nn.Identity())
            words = f"{type(part).__name__} lost"
        elif name == "no bias":
            assert isinstance(part.bias, torch.Tensor)
            part.bias.zero_()
            words = "bias lost"
        else:
            assert isinstance(part.eps, float)
            before, part.eps = part.eps, float(draw.choice([1e-3, 1e-2, 1e-1]))
            words = f"epsilon {part.eps} in place of {before}"
    return Fault(module, place, f"{place}: {words}")


def _places(module: nn.Module, name: str) -> Iterator[str]:
    for place, part in module.named_modules():
        if isinstance(part, _sorts(name)) and (name != "no bias" or getattr(part, "bias", None) is not None):
            yield place


def _sorts(name: str) -> tuple[type[nn.Module], ...]:
    return {"no activation": _ACTIVATIONS, "no bias": _BIASES, "epsilon": _NORMS}.get(name, _WEIGHTS)


def _off(part: nn.Module, share: float, draw: np.random.Generator) -> str:
    """Weights off by a share of their norm: all larger, or by random numbers."""
    larger = bool(draw.integers(2))
    for key, weights in part.named_parameters():
        if not key.startswith("weight"):
            continue
        if larger:
            weights.mul_(1 + share)
            continue
        noise = torch.from_numpy(draw.standard_normal(tuple(weights.shape)).astype(np.float32))
        weights.add_(noise * (share * weights.norm() / noise.norm()))
    return f"weights {100 * share:g} % {'larger' if larger else 'of noise'}"
