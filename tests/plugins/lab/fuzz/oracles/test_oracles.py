"""What must be suspected, and what mustn't."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conrepair_lab.fuzz.oracles.answers import again, faces
from conrepair_lab.fuzz.oracles.gradients import Training, gradients
from conrepair_lab.fuzz.oracles.numbers import differing, numbers
from conrepair_lab.fuzz.suspicion import REFUSED, Suspicion
from conrepair_lab.fuzz.trial import LOAD


def of(*values: float, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    return np.array(values, dtype)


def test_a_refusal_is_no_suspicion() -> None:
    refused = Suspicion(REFUSED, LOAD, "Error", "no such operator")
    raised = Suspicion("exception", LOAD, "Error", "boom", "file.py:run")
    assert not list(gradients(Training(ended=refused)))
    assert list(gradients(Training(ended=raised))) == [raised]


@pytest.mark.parametrize(
    ("mine", "kinds"),
    [
        ({"y": of(1, 2)}, []),
        ({"y": of(1, 2, dtype=np.float64)}, ["type"]),
        ({"y": of(1, 2).reshape(1, 2)}, ["shape"]),
        ({}, ["outputs"]),
        ({"z": of(1)}, ["outputs"]),
    ],
)
def test_faces(mine: Any, kinds: list[str]) -> None:
    assert [item.kind for item in faces(mine, {"y": of(3, 4)})] == kinds


def test_answers_that_change_are_told_by_what_came_before() -> None:
    one, other = {"y": of(1, 2)}, {"y": of(1, 3)}
    assert [item.kind for item in again([one, one, one])] == []
    assert [item.kind for item in again([one, other, one])] == ["layout"]
    assert [item.kind for item in again([one, one, other])] == ["chance"]
    assert [item.kind for item in again([{"y": of(np.nan)}, {"y": of(np.nan)}])] == []
    assert [item.kind for item in again([{"y": of(1)}, {"y": of(1 + 1e-6)}])] == [], "another order of additions"
    assert [item.kind for item in again([{"y": of(1)}, {"y": of(1, 1)}])] == ["layout"]


def test_numbers_beyond_their_bound_alone() -> None:
    bounds = {"y": of(1e-3, 1e-3, dtype=np.float64)}
    truth = {"y": of(1, 2, dtype=np.float64)}
    assert not list(numbers({"y": of(1.0009, 2)}, truth, bounds))
    (found,) = numbers({"y": of(1, 2.1)}, truth, bounds)
    assert (found.kind, found.output, found.index) == ("numbers", "y", (1,))
    assert found.over == pytest.approx(100, rel=1e-2)
    (found,) = numbers({"y": of(1, np.inf)}, truth, bounds)
    assert (found.kind, found.index) == ("not finite", (1,))
    assert not list(numbers({"y": of(1, np.inf)}, truth, {"y": of(1, np.inf, dtype=np.float64)})), "rounding may"


def test_what_may_be_flushed_or_rounded_to_the_outputs_type() -> None:
    exact = {"y": of(1e-40, 1.6143023126241491, dtype=np.float64)}
    assert not list(numbers({"y": of(0, 1.6143023)}, exact, {"y": np.zeros(2)}))
    assert list(numbers({"y": of(0, 1.6143023, dtype=np.float64)}, exact, {"y": np.zeros(2)}))


def test_whole_numbers_are_exact_but_beyond_their_ends() -> None:
    exact = {"y": of(5, dtype=np.int32)}
    assert list(numbers({"y": of(6, dtype=np.int32)}, exact, {"y": np.zeros(1)}))
    assert not list(numbers({"y": of(np.iinfo(np.int32).max, dtype=np.int32)}, exact, {"y": np.zeros(1)}))


def test_texts_and_outputs_of_another_shape() -> None:
    assert list(numbers({"y": np.array(["a"])}, {"y": np.array(["b"])}, {}))
    assert not list(numbers({"y": of(1, 2)}, {"y": of(1)}, {"y": of(0)})), "that's another oracle's"


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=8), st.floats(0, 1e-3))
def test_what_is_near_another_system_never_differs(values: list[float], relative: float) -> None:
    mine = np.array(values, np.float32)
    assert not list(differing({"y": mine}, {"y": (mine * (1 + relative)).astype(np.float32)}))


def test_what_is_far_from_another_system_differs() -> None:
    (found,) = differing({"y": of(1, 5)}, {"y": of(1, 2)})
    assert (found.kind, found.index) == ("differs", (1,))
    assert list(differing({"y": of(np.nan)}, {"y": of(1)}))
    assert not list(differing({"y": of(1, 1e-9)}, {"y": of(1, -1e-9)})), "beside the output's size"
