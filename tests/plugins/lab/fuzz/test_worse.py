"""Inputs on which an error is clearer are found, and those that aren't real numbers stay."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from fuzz_cases import case, right

from conrepair_lab.fuzz.looking import look
from conrepair_lab.fuzz.reducing import worse
from conrepair_lab.systems.registry import entry

ORT = entry("ort-none")


def test_a_clearer_input_is_found_and_whole_numbers_stay(tmp_path: Path) -> None:
    text = "g (float[3] x, int64[2] i) => (float[2] y) { a = Elu (x) y = Gather (a, i) }"
    made = case(text, x=np.array([-0.5, -0.05, 1], np.float32), i=np.array([1, 0], np.int64))
    found = worse(made, ORT.runs, ORT.chosen, tmp_path, seconds=5)
    assert found is not None
    assert set(found.inputs) == {"x", "i"}
    np.testing.assert_array_equal(found.inputs["i"], made.inputs["i"])
    assert found.inputs["x"].dtype == np.float32
    assert found.network == made.network
    suspicion = look(found, ORT.runs, ORT.chosen, tmp_path).suspicion
    assert suspicion is not None
    assert (suspicion.over or 0) > 50


def test_on_a_right_network_the_worst_is_right_too(tmp_path: Path) -> None:
    found = worse(right(), ORT.runs, ORT.chosen, tmp_path, seconds=2)
    assert found is None or look(found, ORT.runs, ORT.chosen, tmp_path).suspicion is None


def test_what_a_system_refuses_is_not_searched(tmp_path: Path) -> None:
    made = case("g (double[1] x) => (double[1] y) { y = Softsign (x) }", x=np.ones(1))
    assert worse(made, ORT.runs, ORT.chosen, tmp_path) is None
    assert not list(tmp_path.iterdir())
