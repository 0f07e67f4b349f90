"""Outputs read as answers: class scores, their ranking, their probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.ground.data.tensor_spec import TensorSpec, numpy_dtype
from conrepair.ground.metrics.probabilities import looks_normalized, softmax
from conrepair.ground.metrics.ranks import top_k
from conrepair.ground.metrics.tensors import row_chunks
from conrepair.ground.metrics.ulps import step_of
from conrepair.verdicts.evaluate.pairing import squeezed

Array = npt.NDArray[Any]
Answer = tuple[tuple[int, float], ...]

_WITH_BACKGROUND = 1001  # ImageNet's classes, and one in front
_SOFTMAX_STEPS = (256, 255)  # TFLite's step is 1/256, ONNX Runtime's quantizer takes 1/255
_SUM_LOST = 0.1  # that rounding to steps of any size may take from a sum: with more, scores of any kind would do
_HALF_STEPS = {"float16": 2.0**-11, "bfloat16": 2.0**-8}


def is_scores(array: Array) -> bool:
    """Whether an output can be read as one score for each of several classes: real [N, C], C > 1."""
    return array.ndim == 2 and array.shape[1] > 1 and array.dtype.kind == "f"


def _in_softmax_steps(scores: Array) -> bool:
    parts = [scores[rows] for rows in row_chunks(scores.shape)]
    return any(all(_whole_in(np.asarray(part, np.float64), steps) for part in parts) for steps in _SOFTMAX_STEPS)


def _step_of(scores: Array) -> float:
    """The step that all numbers are multiples of, as eight bits leave them; 0 without one, or where no sum tells."""
    step = step_of(scores)
    return 0.0 if step / 2 * scores.shape[-1] > _SUM_LOST else step


def _whole_in(values: npt.NDArray[np.float64], steps: int) -> bool:
    within = (values >= 0).all() and (values <= 1).all()
    return bool(within) and np.allclose(values * steps, np.rint(values * steps), atol=1e-3)


def as_scores(array: Array) -> Array | None:
    """An output as [N, C] class scores, axes of length 1 removed ([N, C, 1, 1]); None when it isn't that."""
    array = squeezed(array)
    return array if is_scores(array) else None


def right_answers(array: Array, labels: Sequence[int | None], k: int = 1) -> tuple[int, int] | None:
    """Right answers and labelled samples; None without labels or class scores.

    A model with a background class in front (1001 classes) is read with its labels shifted by one.

    Args:
        array: An output, samples first.
        labels: One for each sample; None where it isn't known.
        k: An answer is right that has the label among so many best classes.
    """
    known = [index for index, label in enumerate(labels) if label is not None]
    scores = as_scores(array)
    if not known or scores is None:
        return None
    best = top_k(scores, min(k, scores.shape[1]))[0]
    shift = 1 if scores.shape[1] == _WITH_BACKGROUND else 0
    return sum(int(labels[index] or 0) + shift in best[index] for index in known), len(known)


def holds_probabilities(scores: Array, spec: TensorSpec, *, quantized: bool, rounded: bool = False) -> bool:
    """Whether scores [N, C] are probabilities: they add up to 1, or are steps of a quantized softmax.

    Eight bits round most of a thousand classes to 0, so the sums of a quantized softmax are no evidence. But
    quantizers give it a fixed range, from 0 to 1 (or just below) in 255 or 256 steps, which is. In other steps, as
    127 of a symmetric range, it's one whose sums are off by no more than these explain.

    Args:
        scores: Real numbers, as the model gave them.
        spec: Of the output.
        quantized: Whether the model is; its output may be float again.
        rounded: Whether they may have been rounded to numbers of few digits, whatever their type is.
    """
    quantization = spec.quantization
    if quantization is None:
        # A half-precision softmax adds up to 1 as well as its type can say.
        return looks_normalized(scores, step=_HALF_STEPS.get("bfloat16" if rounded else spec.dtype, 0.0)) or (
            quantized and (_in_softmax_steps(scores) or looks_normalized(scores, step=_step_of(scores)))
        )
    limits = np.iinfo(numpy_dtype(spec.dtype))
    low = (limits.min - quantization.zero_point) * quantization.scale
    high = (limits.max - quantization.zero_point) * quantization.scale
    softmax_range = low == 0.0 and 1.0 - 2 * quantization.scale <= high <= 1.0
    return softmax_range or looks_normalized(scores, step=quantization.scale)


def probabilities(scores: Array, normalized: bool) -> npt.NDArray[np.float64]:
    """Probabilities [N, C]; scores that are normalized already are not softmaxed again."""
    return np.asarray(scores, dtype=np.float64) if normalized else softmax(scores)


def best_classes(scores: Array, k: int) -> list[Answer]:
    """The best classes of every sample with their scores, the best first.

    Args:
        scores: [N, C].
        k: How many to keep; fewer when there are fewer classes.
    """
    labels, values = top_k(scores, min(k, scores.shape[1]))
    rows = zip(labels.tolist(), values.astype(np.float64).tolist(), strict=True)
    return [tuple(zip(*row, strict=True)) for row in rows]
