"""Whether labels number the classes otherwise than a model does: its predictions agree with them up to an order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from conrepair.ground.data.pictures.class_names import numbered_in_words
from conrepair.ground.runtime.words import percent
from conrepair.verdicts.evaluate.answers import as_scores
from conrepair.verdicts.evaluate.run import Run

_CHANCE = 0.01  # that as many samples become right by luck
_MOST_RIGHT = 0.5  # share of right predictions, from which on the numbering is believed


@dataclass(frozen=True)
class OtherNumbering:
    """How classes are probably numbered.

    Attributes:
        right: Predictions that are right as labels have it.
        otherwise: Those that would be.
        count: Of labelled samples.
        outputs: For each label that there is, the output that stands for it.
    """

    right: int
    otherwise: int
    count: int
    outputs: dict[int, int]

    def words(self, classes: Sequence[str] = ()) -> str:
        """The numbers of right predictions for a person, with what to do.

        Args:
            classes: Names that labels index; none where labels are numbers.
        """
        named = {output: classes[label] for label, output in self.outputs.items() if label < len(classes)}
        if named and sorted(named) == list(range(len(named))):
            order = numbered_in_words([named[place] for place in range(len(named))])
        else:
            moved = [f"{label} is output {output}" for label, output in self.outputs.items() if label != output]
            order = f"{', '.join(moved[:3])}{', ...' if len(moved) > 3 else ''}"
        now, then = (f"{percent(part / self.count)}" for part in (self.right, self.otherwise))
        return (
            f"the classes are probably numbered otherwise: {now} of the original's predictions are right as they're "
            f"numbered now, {then} would be with {order}; give the model's order by --classes (in a configuration "
            "`classes` of the dataset)"
        )


def other_numbering(run: Run, labels: Sequence[int | None]) -> OtherNumbering | None:
    """Find out whether a model's predictions are right under another numbering of the classes.

    The order is found on one half of the samples and must hold on the other, beyond chance.

    Args:
        run: Of the original.
        labels: One for each sample; None where it isn't known.

    Returns:
        None where the numbering is right, or can't be told to be wrong.
    """
    known = [place for place, label in enumerate(labels[: run.count]) if label is not None]
    scores = None if not run.outputs else as_scores(run.arrays[run.outputs[0].name])
    if len(known) < 2 or scores is None or run.outputs[0].name in run.lengths:
        return None
    predicted = scores.argmax(axis=1)[known]
    wanted = np.array([label for label in labels[: run.count] if label is not None])
    right = predicted == wanted
    if right.mean() > _MOST_RIGHT:
        return None
    halves = _every_second(wanted)
    found = _assigned(wanted[halves], predicted[halves])
    held_out = _translated(wanted[~halves], found) == predicted[~halves]
    gained, lost = int((held_out & ~right[~halves]).sum()), int((~held_out & right[~halves]).sum())
    if _by_chance(gained, lost) > _CHANCE or held_out.mean() <= _MOST_RIGHT:
        return None
    found = _assigned(wanted, predicted)
    otherwise = int((_translated(wanted, found) == predicted).sum())
    return OtherNumbering(int(right.sum()), otherwise, len(known), found)


def _every_second(labels: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Every second sample of each class."""
    chosen = np.zeros(len(labels), bool)
    for label in np.unique(labels):
        chosen[np.flatnonzero(labels == label)[::2]] = True
    return chosen


def _assigned(labels: npt.NDArray[np.int64], predicted: npt.NDArray[np.int64]) -> dict[int, int]:
    """The output for each label, one for one, with which most predictions are right."""
    from scipy.optimize import linear_sum_assignment  # which takes a while to import, and few runs need

    rows, columns = np.unique(labels), np.arange(max(predicted.max() + 1, len(np.unique(labels))))
    counts = np.zeros((len(rows), len(columns)))
    np.add.at(counts, (np.searchsorted(rows, labels), predicted), 1)
    places, outputs = linear_sum_assignment(counts, maximize=True)
    return {int(rows[place]): int(columns[output]) for place, output in zip(places, outputs, strict=True)}


def _translated(labels: npt.NDArray[np.int64], outputs: dict[int, int]) -> npt.NDArray[np.int64]:
    return np.array([outputs.get(int(label), -1) for label in labels])


def _by_chance(gained: int, lost: int) -> float:
    """The probability that of so many changed predictions as many become right, if either were as likely."""
    changed = gained + lost
    return sum(math.comb(changed, count) for count in range(gained, changed + 1)) / (1 << changed)
