"""How good a recipe is, by the source's answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.evaluate.answers import as_scores
from conrepair.evaluate.pairing import fit, pair_outputs
from conrepair.metrics.probabilities import looks_normalized, softmax
from conrepair.metrics.tensors import relative_error
from conrepair.runtime.errors import DataError

__all__ = ["AnswersJudge", "Array"]

Array = npt.NDArray[Any]


class AnswersJudge:
    """Measures by the source's answers: relative error, the worst of the outputs.

    Args:
        expected: The source's outputs on all photos, photos first.
    """

    def __init__(self, expected: Mapping[str, Array]) -> None:
        self._expected = expected

    def judge(self, outputs: Mapping[str, Array], photos: Sequence[int]) -> tuple[float, float | None]:
        """Measure answers.

        Args:
            outputs: Of the target, photos first.
            photos: Which photos they belong to.

        Returns:
            The relative error, inf where the answers aren't numbers; and the share of the photos whose best class is
            the wanted one, None where outputs aren't classes.

        Raises:
            DataError: if no output of the target can be compared with one of the source.
        """
        errors, agreement = [], None
        for reference, candidate in self._pairs(outputs, photos):
            errors.append(relative_error(reference, candidate))
            if agreement is None and as_scores(reference) is not None:
                agreement = float(np.mean(reference.argmax(axis=1) == candidate.argmax(axis=1)))
        return max(errors), agreement

    def distance(self, outputs: Mapping[str, Array], photos: Sequence[int]) -> npt.NDArray[np.float64] | None:
        """Answers less the wanted ones, in units of these; None where they aren't numbers.

        Args:
            outputs: As above.
            photos: As above.
        """
        parts = []
        for reference, candidate in self._pairs(outputs, photos):
            wanted, given = (np.asarray(item, np.float64).reshape(-1) for item in (reference, candidate))
            norm = float(np.linalg.norm(wanted))
            if not norm or not (np.isfinite(wanted).all() and np.isfinite(given).all()):
                return None
            parts.append((given - wanted) / norm)
        return np.concatenate(parts)

    def _pairs(self, outputs: Mapping[str, Array], photos: Sequence[int]) -> list[tuple[Array, Array]]:
        """The source's outputs beside the target's, in one layout."""
        expected = {name: array[list(photos)] for name, array in self._expected.items()}
        pairs, left = pair_outputs(expected, outputs)
        if not pairs:
            raise DataError(f"the target's outputs can't be compared with the source's: {left[0]}.")
        return [_alike(*fit(pair, expected[pair.reference], outputs[pair.candidate])) for pair in pairs]


def _alike(reference: Array, candidate: Array) -> tuple[Array, Array]:
    """Both as probabilities where one of them is: a softmax on one side alone is another fault than a recipe's."""
    if as_scores(reference) is None or reference.shape != candidate.shape:
        return reference, candidate
    normalized = looks_normalized(reference), looks_normalized(candidate)
    if normalized == (True, False):
        return reference, softmax(candidate)
    return (softmax(reference), candidate) if normalized == (False, True) else (reference, candidate)
