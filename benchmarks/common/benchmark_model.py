"""What a network of the benchmarks is made by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from conrepair.ground.data.tensor_spec import TensorSpec

__all__ = ["LARGE", "MIDDLE", "SMALL", "BenchmarkModel"]

SMALL, MIDDLE, LARGE = 0, 1, 2


@dataclass(frozen=True)
class BenchmarkModel:
    """A network that faults are put into.

    Attributes:
        name: For people, and in the names of cases.
        factory: What builds it.
        inputs: That it takes.
        size: `SMALL`, `MIDDLE` or `LARGE`.
        kwargs: Of the factory.
        pretrained: Name in the zoo, whose weights it gets; "" for random ones that keep the variance.
        trained: Whether it's trained on digits.
        normalized: Whether it has BatchNorm, which exporters fold or keep.
        recipe: How photos become its inputs; "" for random inputs.
        samples: How many inputs are compared.
        unseen: How many more verify what the first ones found.
        batch_size: At once.
        seed: That drew it, its weights and its inputs; 0 for a network that every seed shares.
    """

    name: str
    factory: str
    inputs: tuple[TensorSpec, ...]
    size: int = SMALL
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    pretrained: str = ""
    trained: bool = False
    normalized: bool = False
    recipe: str = ""
    samples: int = 8
    unseen: int = 64
    batch_size: int = 4
    seed: int = 0
