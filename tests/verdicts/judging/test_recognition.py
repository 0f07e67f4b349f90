"""Which arithmetic explains a difference."""

from __future__ import annotations

import numpy as np
import pytest

from conrepair.verdicts.judging.arithmetic import ARITHMETICS
from conrepair.verdicts.judging.recognition import fit, recognized

RIGHT = np.random.default_rng(0).normal(size=(8, 40)).astype(np.float32)
NAMES = ["float16", "bfloat16", "int8"]
SIMULATED = {name: ARITHMETICS[name].results(RIGHT) for name in NAMES}


def _fits(given: np.ndarray) -> dict:
    return {name: fit(name, RIGHT, given, SIMULATED[name]) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_the_very_numbers_are_recognized(name: str) -> None:
    fits = _fits(SIMULATED[name])
    assert recognized([fits], NAMES) == name
    assert fits[name].close
    assert fits[name].left == 0


def test_as_much_of_another_kind_is_explained_but_not_close() -> None:
    noise = np.random.default_rng(1).normal(size=RIGHT.shape) * fit("", RIGHT, RIGHT, SIMULATED["bfloat16"]).expected
    fits = _fits((RIGHT * (1 + noise)).astype(np.float32))
    assert fits["bfloat16"].explains
    assert not fits["bfloat16"].close
    assert not fits["float16"].explains


def test_a_fault_is_none() -> None:
    assert recognized([_fits(RIGHT * np.float32(1.1))], NAMES) == ""
    assert recognized([], NAMES) == ""


def test_one_must_explain_all_but_a_share() -> None:
    right, wrong = _fits(SIMULATED["bfloat16"]), _fits(RIGHT * np.float32(1.1))
    assert recognized([right, right, wrong], NAMES) == ""
    assert recognized([right, right, wrong], NAMES, 0.5) == "bfloat16"


def test_other_shapes_are_explained_by_nothing() -> None:
    assert not fit("int8", RIGHT, RIGHT[:4], RIGHT).explains
