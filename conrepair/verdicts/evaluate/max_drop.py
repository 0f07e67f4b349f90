"""How far accuracy on labelled data may fall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conrepair.verdicts.evaluate.compare import accuracy
from conrepair.verdicts.evaluate.run import Run
from conrepair.verdicts.evaluate.verdict import Verdict

_ROUNDING = 1e-9  # of a share that's given in decimals


def judge_drop(
    most: Mapping[str, float], reference: Run, candidate: Run, labels: Sequence[int | None]
) -> tuple[Verdict, str]:
    """Compare the accuracy of a converted model with the original's.

    Args:
        most: Share of the labelled samples by which it may fall, by "top1", "top5" and the like.
        reference: Of the original.
        candidate: Of the converted model, on the same samples.
        labels: One for each sample; None where it isn't known.

    Returns:
        The verdict that it makes the target at best, and how far it fell, in words.
    """
    verdict, words = Verdict.EQUIVALENT, []
    for name, share in most.items():
        k = int(name.removeprefix("top"))
        one, two = (accuracy(run, labels[: run.count], k) for run in (reference, candidate))
        if one is None or two is None:
            return Verdict.UNDECIDED, "accuracy can't be computed: the first output has no score for each class"
        fell = (one[0] - two[0]) / one[1]
        verdict = Verdict.FAULTY if fell > share + _ROUNDING else verdict
        words.append(
            f"top-{k} accuracy is {two[0]} of {two[1]} samples, {one[0]} with the original model: it fell by "
            f"{100 * max(fell, 0):.3g} percentage points (allowed: {100 * share:g})"
        )
    return verdict, "; ".join(words)
