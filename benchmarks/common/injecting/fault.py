"""What a fault is that a framework puts in itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.formats.models.model import Model
from conrepair.ground.graph.kinds import Kind

__all__ = ["Array", "Means", "OwnFault"]

Array = npt.NDArray[Any]


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
