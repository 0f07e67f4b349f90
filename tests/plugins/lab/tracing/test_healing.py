"""Which operators need more digits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from conrepair.ground.forms.all_forms import float64_operators, rewritten
from conrepair.ground.runtime.bisection import Reduced, fewest_that_heal

MODEL = onnx.parser.parse_model(
    '<ir_version: 8, opset_import: ["" : 17]> g (float[4] x) => (float[4] y) '
    "<float[1] one = {1}> { a = Abs (x) b = Add (a, one) c = Sub (b, one) d = Neg (c) y = Abs (d) }"
)
X = np.array([1e-9, 3e-9, 1e-8, 2e-8], np.float32)


def heals(operators: Sequence[str]) -> bool:
    (y,) = ReferenceEvaluator(rewritten(MODEL, [], operators)).run(None, {"x": X})
    return bool(np.allclose(y, X, rtol=1e-5, atol=0))


def test_operators_that_need_each_other_stay_together() -> None:
    """Between two in float64 nothing is rounded: one alone would lose the digits at the border."""
    operators = float64_operators(MODEL)
    found = fewest_that_heal(operators, heals, 40)
    assert [operators[place] for place in found.places] == ["b", "c"]
    assert found.exact
    assert found.tries <= 12
    assert not heals(["b"])
    assert not heals(["c"])
    onnx.checker.check_model(rewritten(MODEL, [], ["b", "c", "y"]), full_check=True)


def test_what_float64_does_not_heal_has_no_operators() -> None:
    assert fewest_that_heal(["a", "b"], lambda _: False, 9) == Reduced((), 1, exact=True)
    assert fewest_that_heal([], lambda _: True, 9) == Reduced((), 0, exact=True)


def test_what_is_left_when_no_more_is_asked_heals() -> None:
    names = list("abcdefgh")
    found = fewest_that_heal(names, lambda some: "c" in some, 3)
    assert names.index("c") in found.places
    assert len(found.places) < len(names)
    assert not found.exact


def test_only_what_has_float64_is_asked() -> None:
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[4] x) => (float[4] y) { i = Cast <to = 7> (x) f = Cast <to = 1> (i) y = Exp (f) }'  # fmt: skip  # noqa: E501
    assert float64_operators(onnx.parser.parse_model(text)) == ["f", "y"]
