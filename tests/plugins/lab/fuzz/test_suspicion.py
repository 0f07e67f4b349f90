"""What doubles have in common is said without what changes from case to case."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conrepair_lab.fuzz.suspicion import Suspicion

_PLAIN = st.text(string.ascii_letters + string.digits + " .,:;[]()=-+/_<>'\"`", max_size=300)
_NAME = st.text(string.ascii_letters + string.digits + "_", min_size=1, max_size=12)


def words(message: str) -> str:
    return Suspicion("exception", "load", "Error", message).words_without(())


@pytest.mark.parametrize(
    "other",
    [
        "node 'n7' of model.onnx: shape [2, 3] and [4] at /tmp/a/b.onnx (0x7f00aa)",
        'node "n8" of model.onnx: shape [15, 3] and [-1] at /home/me/x (0x1)',
        "node `n` of model.onnx: shape [1e-7, 0.5] and [4]  at /tmp/x/y/z.onnx\n(0xFF)",
    ],
)
def test_numbers_names_and_places_are_left_out(other: str) -> None:
    assert words(other) == "node NAME of model.onnx: shape [#, #] and [#] at PATH (#)"


def test_a_name_without_quotes_that_has_a_number_is_one() -> None:
    assert words("t41 was not computed") == words("_t7_b was not computed") == "NAME was not computed"


@pytest.mark.parametrize("begin", ["can't find", "there isn't", "doesn't know"])
def test_a_name_behind_a_contraction_is_left_out(begin: str) -> None:
    assert words(f"{begin} 'first' here") == words(f"{begin} 'second' here")


@given(_PLAIN)
def test_no_number_is_left_and_the_length_is_bounded(message: str) -> None:
    found = words(message)
    assert not any(letter.isdigit() for letter in found)
    assert len(found) <= 160
    assert words(message) == found


@given(_NAME, _NAME, st.integers(), st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_have_the_same_words(one: str, two: str, number: int, real: float) -> None:
    first = words(f"tensor '{one}' has {number} elements, at {real!r} (/tmp/{one}/file.py)")
    assert first == words(f"tensor '{two}' has 3 elements, at 0.25 (/usr/{two}/other.py)")


def test_what_a_reduction_keeps_is_kind_stage_and_error() -> None:
    first = Suspicion("exception", "load", "Fail", "node a", "file.py:run", index=(1,), over=3.0)
    assert first.same(Suspicion("exception", "load", "Fail", "something else"))
    for other in (("crash", "load", "Fail"), ("exception", "run", "Fail"), ("exception", "load", "IndexError")):
        assert not first.same(Suspicion(*other))
    assert not first.same(None)
