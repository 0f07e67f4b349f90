"""Whether a network computes the same elsewhere: in ONNX Runtime with its optimizations, or in another format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from conrepair.ground.metrics.ulps import is_real
from conrepair.verdicts.truth.bound import Analysis
from conrepair.verdicts.truth.judging import beside, distances
from conrepair.verdicts.truth.referees import CannotJudgeError, OnnxReference
from conrepair_lab.generate.onnx_form import RefusedError, run

Arrays = Mapping[str, np.ndarray[Any, Any]]

_TOLERANCES = {"float64": (1e-2, 1e-3), "float32": (1e-2, 1e-3), "float16": (5e-2, 1e-2), "bfloat16": (2e-1, 5e-2)}
"""Relative and absolute, by the coarsest real numbers that are computed with on the way; others must be equal."""

_MOST_REFEREED = 20_000
"""Elements of a tensor that ONNX's reference, which is Python, is asked about."""


@dataclass(frozen=True)
class ResultDifference:
    """Where results are not the same.

    Attributes:
        output: Name of the output that is furthest off.
        largest: How far, at most; None where a value isn't finite, or shapes differ.
        elements: How many of the output's differ.
    """

    output: str
    largest: float | None
    elements: int


def difference(expected: Arrays, found: Arrays, coarsest: str = "float32") -> ResultDifference | None:
    """Compare outputs by name.

    Args:
        expected: What is right.
        found: What came out elsewhere.
        coarsest: The coarsest real numbers that are computed with on the way.

    Returns:
        The largest difference; None if they're the same.
    """
    differences = [_of_one(name, array, found[name], coarsest) for name, array in expected.items()]
    return max(
        filter(None, differences), key=lambda item: np.inf if item.largest is None else item.largest, default=None
    )


def verdict_of(wrong: ResultDifference | None) -> dict[str, Any]:
    """A comparison as it's told: "verdict" is "same", or "differs" with the fields of what is wrong."""
    return {"verdict": "same"} if wrong is None else {"verdict": "differs", **vars(wrong)}


def optimized(model: onnx.ModelProto, inputs: Arrays, outputs: Arrays, coarsest: str) -> dict[str, Any]:
    """Run a network with all optimizations of ONNX Runtime.

    Args:
        model: The network.
        inputs: By name.
        outputs: What it computes without optimizations.
        coarsest: The coarsest real numbers in it.

    Returns:
        "verdict": "same", "differs" (with the fields of `ResultDifference`) or "fails" (with the runtime's "words").
    """
    try:
        found = run(model, inputs, list(outputs), optimized=True)
    except RefusedError as error:
        return {"verdict": "fails", "words": str(error)}
    return verdict_of(difference(outputs, found, coarsest))


def refereed(model: onnx.ModelProto, inputs: Arrays, outputs: Arrays, coarsest: str) -> dict[str, Any]:
    """Ask ONNX's reference, in float64, what a network computes; where that's far off, whether rounding explains it.

    Args:
        model: The network.
        inputs: By name.
        outputs: What ONNX Runtime computes without optimizations.
        coarsest: The coarsest real numbers in it.

    Returns:
        "verdict": "same", "differs" (with the fields of `ResultDifference`), or "alone" (with the "words" for which
        nobody else can say).
    """
    largest = max((array.size for array in (*inputs.values(), *outputs.values())), default=0)
    if largest > _MOST_REFEREED:
        return {"verdict": "alone", "words": f"ONNX's reference takes long for {largest:,} elements"}
    try:
        truth = OnnxReference().answers(model, inputs)
    except CannotJudgeError as error:
        return {"verdict": "alone", "words": str(error)}
    wrong = difference({name: truth[name] for name in outputs}, outputs, coarsest)
    if wrong is None:
        return verdict_of(None)
    try:
        bounded = Analysis(model).at(inputs)
    except Exception as error:  # noqa: BLE001 (the reference raises a dozen types)
        return {"verdict": "alone", "words": f"{type(error).__name__}: {error}"}
    explained = all(
        array.shape == truth[name].shape and not beside(array, bounded.truth[name], bounded.bound[name]).beyond
        for name, array in outputs.items()
    )
    return verdict_of(None if explained else wrong)


def _of_one(
    name: str, expected: np.ndarray[Any, Any], found: np.ndarray[Any, Any], coarsest: str
) -> ResultDifference | None:
    if expected.shape != found.shape:
        return ResultDifference(name, None, expected.size)
    apart, allowed = distances(expected, found), np.zeros(expected.shape)
    if is_real(expected):
        relative, absolute = _TOLERANCES[max(coarsest, expected.dtype.name, key=list(_TOLERANCES).index)]
        allowed = absolute + relative * np.abs(expected.astype(np.float64))
    wrong = ~(apart <= allowed)
    if not wrong.any():
        return None
    largest = float(apart[wrong].max())
    return ResultDifference(name, largest if np.isfinite(largest) else None, int(wrong.sum()))
