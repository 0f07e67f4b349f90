"""Which inputs the layers of two models are looked at on: some on which they disagree, some on which they agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

_LEAST = 2  # of one input each nothing can be ranked


@dataclass(frozen=True)
class SuspicionSettings:
    """Settings of the statistics that rank layers.

    Attributes:
        similar_sample: Inputs on which the models agree, in each repetition.
        dissimilar_sample: Inputs on which they disagree, in each repetition.
        repetitions: How often inputs are drawn; the ranks of all are added.
        seed: Of the draws.
        significance: Share of false discoveries among the significant elements of a layer.

    Raises:
        ValueError: if a number is out of range.
    """

    similar_sample: int = 15
    dissimilar_sample: int = 15
    repetitions: int = 3
    seed: int = 0
    significance: float = 0.05

    def __post_init__(self) -> None:
        if min(self.similar_sample, self.dissimilar_sample) < _LEAST or self.repetitions < 1:
            raise ValueError(f"a test needs {_LEAST} inputs of each sort and one repetition, not {self}")
        if not 0 < self.significance < 1:
            raise ValueError(f"the significance must be between 0 and 1, not {self.significance}")


class Draw(NamedTuple):
    """The inputs of one repetition, as indices, ascending."""

    similar: tuple[int, ...]
    dissimilar: tuple[int, ...]


@dataclass(frozen=True)
class Draws:
    """The inputs of all repetitions.

    Attributes:
        similar: How many inputs the models agree on.
        dissimilar: How many they disagree on.
        repetitions: Empty when there are too few inputs of one sort.
        shortage: Says so, with the numbers; None when there are enough.
    """

    similar: int
    dissimilar: int
    repetitions: tuple[Draw, ...]
    shortage: str | None

    @property
    def inputs(self) -> tuple[int, ...]:
        """All inputs that are drawn, ascending: those whose activations are needed."""
        return tuple(sorted({index for draw in self.repetitions for index in (*draw.similar, *draw.dissimilar)}))


def draw_inputs(disagree: npt.NDArray[np.bool_], settings: SuspicionSettings) -> Draws:
    """Draw the inputs of every repetition, without replacement within one.

    Args:
        disagree: For each input whether the models disagree on it.
        settings: Sizes, repetitions, seed.
    """
    groups = {
        "agree": (np.flatnonzero(~disagree), settings.similar_sample),
        "disagree": (np.flatnonzero(disagree), settings.dissimilar_sample),
    }
    missing = [
        f"the models {verb} on {len(inputs)} inputs, and {wanted} such inputs are needed"
        for verb, (inputs, wanted) in groups.items()
        if len(inputs) < wanted
    ]
    shortage = f"layers are not ranked: {'; '.join(missing)}. Give more inputs, or smaller samples."
    generator = np.random.default_rng(settings.seed)
    repetitions = tuple(
        Draw(*(tuple(sorted(generator.choice(*group, replace=False).tolist())) for group in groups.values()))
        for _ in range(0 if missing else settings.repetitions)
    )
    similar, dissimilar = (len(inputs) for inputs, _ in groups.values())
    return Draws(similar, dissimilar, repetitions, shortage if missing else None)
