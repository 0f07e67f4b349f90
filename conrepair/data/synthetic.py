"""Random inputs: seeded, in a declared range, integers within the table they index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.data.tensor_spec import TensorSpec, numpy_dtype
from conrepair.runtime.errors import DataError

__all__ = ["SyntheticRange", "draw"]

_DEFAULT_INTEGER_HIGH = 2


@dataclass(frozen=True)
class SyntheticRange:
    """What to draw.

    Attributes:
        seed: Written into every report.
        low: Lower end of floats.
        high: Upper end of floats.
        integer_high: Integers are drawn from [0, this); None: the size of the table that the input indexes, or
            2 when no table is found.
    """

    seed: int = 0
    low: float = -1.0
    high: float = 1.0
    integer_high: int | None = None


def draw(
    spec: TensorSpec, shape: tuple[int, ...], limits: SyntheticRange, stream: tuple[int, int]
) -> npt.NDArray[Any]:
    """Draw one array for an input. The same arguments give the same numbers in every process.

    Args:
        spec: The input; its name plays no role (frameworks number names as they like).
        shape: Of the array.
        limits: The range and the seed.
        stream: Positions of the input among the model's and of the sample.

    Raises:
        DataError: for an input of text.
    """
    generator = np.random.default_rng([limits.seed, *stream])
    if spec.stands_for_reals:
        values = generator.uniform(limits.low, limits.high, shape).astype(np.float32)
        return values.astype(numpy_dtype(spec.dtype)) if spec.is_float else values
    if spec.dtype == "bool":
        return generator.integers(0, 2, shape).astype(np.bool_)
    if spec.dtype == "string":
        raise DataError(f"input {spec} takes text; give data from a file, there is no synthetic text.")
    high = limits.integer_high or spec.high or _DEFAULT_INTEGER_HIGH
    return generator.integers(0, high, shape).astype(numpy_dtype(spec.dtype))
