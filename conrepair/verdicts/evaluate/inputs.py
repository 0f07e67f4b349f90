"""Which inputs a target answers otherwise, by name, with both answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.ground.metrics.tensors import comparable, per_sample_relative_l2
from conrepair.verdicts.evaluate.answers import Answer, best_classes
from conrepair.verdicts.evaluate.compare import OutputComparison
from conrepair.verdicts.evaluate.pairing import fit
from conrepair.verdicts.evaluate.run import Run

_MOST = 1000  # what a person sorts through; a run keeps all outputs


@dataclass(frozen=True, kw_only=True)
class ComparedInput:
    """What two models make of one input, in one output.

    Attributes:
        index: In the dataset, from 0.
        name: As the dataset calls it.
        differs: Whether the best class is another one; None where the output isn't scores of classes.
        relative_l2: Of the output's values; infinite where one side alone isn't finite.
        max_abs: Largest difference of an element that is finite on both sides.
        label: The right answer, where it's known.
        reference: Best classes of the reference with their scores, the best first; none without scores.
        candidate: The same of the other.
    """

    index: int
    name: str
    differs: bool | None
    relative_l2: float
    max_abs: float
    label: int | None = None
    reference: Answer = ()
    candidate: Answer = ()


def compared_inputs(
    output: OutputComparison,
    reference: Run,
    candidate: Run,
    names: Sequence[str],
    labels: Sequence[int | None] = (),
    *,
    classes: int = 5,
    only: Sequence[int] | None = None,
) -> tuple[ComparedInput, ...]:
    """Those that differ most: first those with another answer, then by their error.

    Args:
        output: Of both runs.
        reference: The specification's.
        candidate: The other.
        names: Of the samples.
        labels: Of the samples, None where one isn't known; none: of no sample.
        classes: How many of the best ones to keep.
        only: Indices of the samples that are wanted; None: all.

    Returns:
        At most a thousand.
    """
    pair = output.pair
    one, two = fit(pair, reference.arrays[pair.reference], candidate.arrays[pair.candidate])
    if len(one) != len(names) or pair.reference in reference.lengths or pair.candidate in candidate.lengths:
        return ()  # an output of all samples together, or one that has several rows for a sample
    one, two = comparable(one, two)
    errors = per_sample_relative_l2(one, two)
    scores = output.answers is not None
    other = frozenset() if output.answers is None else frozenset(output.answers.differing)
    wanted = range(len(one)) if only is None else only
    order = sorted(wanted, key=lambda place: (place not in other, -errors[place]))[:_MOST]
    answers = [best_classes(array[order], classes) if scores else [()] * len(order) for array in (one, two)]
    return tuple(
        ComparedInput(
            index=place,
            name=names[place],
            differs=place in other if scores else None,
            relative_l2=float(errors[place]),
            max_abs=_largest(one[place], two[place]),
            label=labels[place] if place < len(labels) else None,
            reference=mine,
            candidate=theirs,
        )
        for place, mine, theirs in zip(order, *answers, strict=True)
    )


def _largest(one: npt.NDArray[Any], two: npt.NDArray[Any]) -> float:
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(np.asarray(two, np.float64) - np.asarray(one, np.float64))
    return float(np.max(apart, initial=0.0, where=np.isfinite(apart)))
