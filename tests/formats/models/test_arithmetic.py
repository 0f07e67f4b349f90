"""A thread's arithmetic: what libraries leave otherwise is seen, and restored."""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest

from conrepair.formats.models.arithmetic import settled
from conrepair.verdicts.truth.referees import CannotJudgeError, OnnxReference

LINUX = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="constants of Linux on x86"
)
_ROUNDINGS = {"down": 0x400, "up": 0x800, "to zero": 0xC00}


@pytest.fixture(autouse=True)
def left_as_found() -> Iterator[None]:
    yield
    settled()


def test_by_default_nothing_is_otherwise() -> None:
    assert settled() == ""


def test_what_pytorch_flushes_is_seen_and_ends() -> None:
    import torch

    if not torch.set_flush_denormal(True):
        pytest.skip("this processor keeps them")
    assert (np.full(4, 2.0**-126, np.float32) * np.float32(0.5) == 0).all()
    assert settled() == "numbers below the smallest normal one are zero"
    assert settled() == ""


@LINUX
@pytest.mark.parametrize("mode", _ROUNDINGS.values(), ids=_ROUNDINGS)
def test_another_rounding_is_seen_and_ends(mode: int) -> None:
    assert ctypes.CDLL("libm.so.6").fesetround(mode) == 0
    assert settled() == "results aren't rounded to the nearest number"
    assert settled() == ""


@LINUX
def test_a_referee_that_leaves_it_otherwise_is_not_believed() -> None:
    class Careless(OnnxReference):
        def computed(self, *asked: Any) -> Any:
            ctypes.CDLL("libm.so.6").fesetround(_ROUNDINGS["up"])
            return super().computed(*asked)

    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Exp (x) }'
    with pytest.raises(CannotJudgeError, match="computing otherwise: results aren't rounded to the nearest"):
        Careless().answers(onnx.parser.parse_model(text), {"x": np.ones(2, np.float32)})
