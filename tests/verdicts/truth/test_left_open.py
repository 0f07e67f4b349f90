"""What ONNX leaves open may be anything, and what it says is held against nobody who does so."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from conrepair.verdicts.truth.bound import Analysis

HEAD = '<ir_version: 10, opset_import: ["" : 20]> '
OPEN: list[tuple[str, dict[str, Any], list[bool]]] = [
    (
        "g (float[4] x) => (float[4] y) { y = Shrink <lambd = -0.5, bias = 0.25> (x) }",
        {"x": np.float32([0.25, -0.25, 1, -3])},
        [True, True, False, False],
    ),
    ("g (int32[3] x, int32[3] d) => (int32[3] y) { y = Div (x, d) }", {"x": [5, 5, 5], "d": [0, 2, -1]}, [1, 0, 0]),
    ("g (int32[3] x, int32[3] d) => (int32[3] y) { y = Mod (x, d) }", {"x": [5, 5, 5], "d": [2, 0, -1]}, [0, 1, 0]),
    (
        "g (int32[3] x, float[3] e) => (int32[3] y) { y = Pow (x, e) }",
        {"x": np.int32([2, 2, 2]), "e": np.float32([2, 0, -1])},
        [0, 0, 1],
    ),
    (
        "g (float[3] x, int64[2] i, float[2] u) => (float[3] y) { y = ScatterElements (x, i, u) }",
        {"x": np.float32([1, 2, 3]), "i": np.array([1, -2]), "u": np.float32([5, 6])},
        [False, True, False],
    ),
    (
        "g (float[3] x, int64[2] i, float[2] u) => (float[3] y) "
        '{ y = ScatterElements <reduction = "add"> (x, i, u) }',
        {"x": np.float32([1, 2, 3]), "i": np.array([1, 1]), "u": np.float32([5, 6])},
        [False, False, False],
    ),
    (
        "g (float[3] x, int64[3, 1] i, float[3] u) => (float[3] y) { y = ScatterND (x, i, u) }",
        {"x": np.float32([1, 2, 3]), "i": np.array([[1], [2], [1]]), "u": np.float32([5, 6, 7])},
        [False, True, False],
    ),
    (
        'g (uint8[3] x, uint8[3] n) => (uint8[3] y) { y = BitShift <direction = "LEFT"> (x, n) }',
        {"x": np.uint8([1, 1, 1]), "n": np.uint8([7, 8, 9])},
        [False, True, True],
    ),
    (
        "g (float[5] x) => (int8[5] y) { y = Cast <to = 3> (x) }",
        {"x": np.float32([127.9, -129, 128, np.nan, np.inf])},
        [False, True, True, True, True],
    ),
    (
        "g (float[2] x) => (uint8[2] y) <float s = {0}, uint8 z = {3}> { y = QuantizeLinear (x, s, z) }",
        {"x": np.float32([1, -2])},
        [True, True],
    ),
]


def _bound(text: str, feeds: dict[str, Any]) -> Any:
    model = onnx.parser.parse_model(HEAD + text)
    onnx.checker.check_model(model)
    arrays = {name: np.asarray(array, getattr(array, "dtype", np.int32)) for name, array in feeds.items()}
    found = Analysis(model).at(arrays)
    return found.truth["y"], found.bound["y"]


@pytest.mark.parametrize(("text", "feeds", "expected"), OPEN, ids=lambda item: item if isinstance(item, str) else "")
def test_a_result_is_open_where_onnx_leaves_it_open(text: str, feeds: dict[str, Any], expected: list[bool]) -> None:
    assert np.isinf(_bound(text, feeds)[1]).tolist() == [bool(item) for item in expected]


def test_what_is_open_may_be_anything_behind_operators_that_check_types() -> None:
    text = "g (float[3] x) => (int64[3] y) <int64 b = {5}> { a = Cast <to = 7> (x) y = Max (a, b) }"
    found, bound = _bound(text, {"x": np.float32([7, np.nan, -2])})
    assert [found[0], found[2]] == [7, 5]
    assert bound[[0, 2]].tolist() == [0, 0]
    assert bound[1] > 1e18


def test_fractions_are_made_whole_where_onnx_says_so() -> None:
    text = "g (float[5] i) => (float[5, 3] y) <int64 d = {3}, float[2] v = {2, 7}> { y = OneHot (i, d, v) }"
    found, bound = _bound(text, {"i": np.float32([0.5, 1.7, -0.5, -1.5, 3])})
    assert found.argmax(1).tolist()[:4] == [0, 1, 0, 2]
    assert found[4].tolist() == [2, 2, 2]
    assert set(found.ravel().tolist()) == {2, 7}
    assert not bound.any()


def test_one_hot_has_its_axis_where_onnx_says() -> None:
    weights = "<int64[1] d = {3}, int32[2] v = {0, 5}>"
    text = f"g (int64[2] i) => (int32[3, 2] y) {weights} {{ y = OneHot <axis = 0> (i, d, v) }}"
    assert _bound(text, {"i": np.array([1, -1])})[0].tolist() == [[0, 0], [5, 0], [0, 5]]
