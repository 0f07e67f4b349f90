"""Which attributes tell ways of an operator apart."""

from __future__ import annotations

import numpy as np
import pytest
from fuzz_cases import case

from conrepair_lab.fuzz.finding import choices

X = np.ones((1, 1, 4, 2), np.float32)


@pytest.mark.parametrize(
    ("node", "found"),
    [
        ("DFT <inverse = 1, onesided = 0> (x)", ("DFT.inverse", "DFT.onesided")),
        ("DFT (x)", ()),
        ('Gelu <approximate = "tanh"> (x)', ("Gelu.approximate",)),
        ("Cast <to = 1> (x)", ()),
        ("Softmax <axis = 1> (x)", ()),
        ("Celu <alpha = 1.0> (x)", ()),
        ("MaxPool <kernel_shape = [1, 1], storage_order = 1> (x)", ("MaxPool.storage_order",)),
        ("LRN <size = 3> (x)", ()),
    ],
)
def test_texts_and_truth_values(node: str, found: tuple[str, ...]) -> None:
    assert choices(case(f"g (float[1, 1, 4, 2] x) => (float y) {{ y = {node} }}", x=X).model) == found


def test_those_of_branches_once_each_and_in_order() -> None:
    text = """g (bool c, float[2] x) => (float[2] y) { t = Gelu <approximate = "tanh"> (x)
    y = If (c) <then_branch = g1 () => (float[2] a) { a = Gelu <approximate = "tanh"> (t) },
    else_branch = g2 () => (float[2] b) { b = ArgMax <keepdims = 0> (t) }> }"""
    made = case(text, c=np.array(True), x=X[0, 0, 0])
    assert choices(made.model) == ("ArgMax.keepdims", "Gelu.approximate")
