"""Modules of PyTorch whose outputs are none, complex, or of types that NumPy hasn't."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn


class Module(nn.Module):
    """A linear layer, and something made of what it gives."""

    def __init__(self, made: Callable[[torch.Tensor], Any], scale: float = 1.0) -> None:
        super().__init__()
        self.made, self.layer = made, nn.Linear(3, 3)
        with torch.no_grad():
            self.layer.weight.copy_(torch.eye(3) * scale)
            self.layer.bias.zero_()

    def forward(self, value: torch.Tensor) -> Any:
        return self.made(self.layer(value))


ROWS = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
ODD_OUTPUTS: Mapping[str, Callable[[torch.Tensor], Any]] = {
    "bfloat16": lambda value: value.bfloat16(),
    "complex": lambda value: torch.complex(value, 2 * value),
    "with None": lambda value: (value, None),
}


def odd_output(_: Path, *, made: str, scale: float = 1.0) -> Module:
    """The module that makes one of them."""
    return Module(ODD_OUTPUTS[made], scale)
