"""What an architecture of the benchmark is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.ground.graph.kinds import Kind

__all__ = ["Architecture", "Array", "Change", "Fault", "Writing"]

Array = npt.NDArray[Any]

Change = Callable[[Any], Any]
"""Changes a network in place: its attributes, its numbers, or the classes of its modules. Or returns another one."""


@dataclass(frozen=True)
class Fault:
    """What somebody gets wrong.

    Attributes:
        kind: What a diagnosis should call it.
        change: Of the network whose export is the target; for `means` other than "network", of that.
        means: What is changed: the "network", the target's "file" (an `onnx.ModelProto`, or the schema's object of a
            TFLite file), or the "calibration" samples of a quantization (a function of the samples).
        routes: Where it is tried; none: where it's that fault's turn.
    """

    kind: Kind
    change: Callable[[Any], Any]
    means: str = "network"
    routes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Writing:
    """Another way to write a network that computes the same.

    Attributes:
        change: Of the network.
    """

    change: Change


@dataclass(frozen=True)
class Architecture:
    """One network.

    Attributes:
        name: Unique.
        framework: "torch" or "keras".
        build: Makes it, with weights; the same each time.
        samples: Given a generator and how many, inputs by name, in the order in which the network takes them.
        faults: By name.
        writings: Other ways to write it, by name.
        routes: That it can take, of those of its framework.
        open_batch: Whether exports leave the size of a batch open; else it's 1.
    """

    name: str
    framework: str
    build: Callable[[], Any]
    samples: Callable[[np.random.Generator, int], dict[str, Array]]
    faults: dict[str, Fault]
    writings: dict[str, Writing] = field(default_factory=dict)
    routes: tuple[str, ...] = ()
    open_batch: bool = False
