"""What a fault is that a framework puts in itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.faults.fault import Kind
from conrepair.frameworks.model import Model

__all__ = ["EPSILONS", "Array", "Means", "OwnFault", "other_epsilon"]

Array = npt.NDArray[Any]

EPSILONS = (1e-3, 1e-5, 1e-6, 1e-12)
"""Of norms, by default: Keras', PyTorch's, that of many transformers, BERT's."""


@dataclass(frozen=True)
class OwnFault:
    """One fault.

    Attributes:
        kind: What a diagnosis should call it.
        places: Where it can be, in an opened model: what the file calls the layers.
        change: Puts it there, in place, and says what it did.
    """

    kind: Kind
    places: Callable[[Any], Sequence[str]]
    change: Callable[[Any, str, np.random.Generator], str]


@dataclass(frozen=True)
class Means:
    """How a framework's models are changed.

    Attributes:
        name: Beginning of the faults' names.
        opened: Reads a model.
        write: Writes an opened one into a folder.
        faults: By name.
    """

    name: str
    opened: Callable[[Model], Any]
    write: Callable[[Any, Path], Model]
    faults: dict[str, OwnFault]


def other_epsilon(now: float, generator: np.random.Generator) -> float:
    """One of the others'."""
    others = [item for item in EPSILONS if not 0.5 < item / max(now, 1e-30) < 2]
    return float(generator.choice(others))
