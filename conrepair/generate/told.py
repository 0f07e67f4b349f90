"""Values that are known before a network is computed: what is made of shapes and constants alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import helper

__all__ = ["told_by"]

_MOVING = {"Cast", "Concat", "Gather", "Identity", "Reshape", "Slice", "Squeeze", "Unsqueeze"}
_CARRIERS = _MOVING | {"Add", "Max", "Min", "Mul", "Sub"}
"""Operators between a shape and who needs one."""

_MOST = 64


def told_by(
    op: str, attributes: Mapping[str, Any], inputs: Sequence[np.ndarray[Any, Any] | None]
) -> np.ndarray[Any, Any] | None:
    """What an operator that sizes are calculated with makes of whole numbers that are known; None for others.

    Args:
        op: The operator.
        attributes: Those that are said.
        inputs: What it reads; None for what isn't known, or is left out.
    """
    known = [array for array in inputs if array is not None and array.dtype.kind in "iu" and array.size <= _MOST]
    if op not in _CARRIERS or not known or len(known) < len(inputs):
        return None
    from onnx.reference import ReferenceEvaluator

    names = [f"i{place}" for place in range(len(known))]
    node = helper.make_node(op, names, ["made"], **attributes)
    return np.asarray(ReferenceEvaluator(node).run(None, dict(zip(names, known, strict=True)))[0])
