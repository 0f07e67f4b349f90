"""Operators that draw numbers, where there's only one number to draw: they always give the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from conrepair.generate.learned.closing import Closing

__all__ = ["still_cases"]

_SHAPE = (2, 3, 4)
_NOTHING = 1e-30
"""What adding to a mean is lost in rounding; a deviation of 0 ends ONNX Runtime's process."""


def still_cases() -> Iterator[tuple[str, str, Closing]]:
    """Each of them.

    Yields:
        The operator, a name, and the case.
    """
    some = np.linspace(-1, 1, 24, dtype=np.float32).reshape(_SHAPE)
    yield _case("RandomNormal", mean=0.5, scale=_NOTHING, shape=_SHAPE)
    yield _case("RandomUniform", low=1.5, high=1.5, shape=_SHAPE)
    yield _case("RandomNormalLike", x=some, mean=-1.0, scale=_NOTHING)
    yield _case("RandomUniformLike", x=some, low=0.25, high=0.25, dtype=TensorProto.DOUBLE)
    yield _case("Multinomial", x=some[:, :1, 0], sample_size=5)  # one class
    for dtype in (TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL):
        yield _bernoulli(some > 0, dtype)


def _case(op: str, x: np.ndarray[Any, Any] | None = None, **attributes: Any) -> tuple[str, str, Closing]:
    closing = Closing(feeds={} if x is None else {"x": x}, outputs=["y"])
    closing.nodes.append(helper.make_node(op, list(closing.feeds), ["y"], **attributes))
    return op, f"{op} of one number", closing


def _bernoulli(sure: np.ndarray[Any, Any], dtype: int) -> tuple[str, str, Closing]:
    """Likelihoods of 0 and 1 alone."""
    closing = Closing(feeds={"x": sure}, outputs=["y"])
    closing.nodes.append(helper.make_node("Cast", ["x"], ["likelihood"], to=TensorProto.FLOAT))
    closing.nodes.append(helper.make_node("Bernoulli", ["likelihood"], ["y"], dtype=dtype))
    return "Bernoulli", "Bernoulli of sure things", closing
