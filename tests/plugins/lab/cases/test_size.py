"""What's smaller: nodes come first, digits last."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from conrepair_lab.cases.case import Array, Case
from conrepair_lab.cases.reduce import smaller

HEAD = '<ir_version: 8, opset_import: ["" : 17]> g (float[n, 3] x) => (float[n, 3] y)'


def case(body: str, x: Array | list[float], head: str = HEAD, **options: int) -> Case:
    model = onnx.parser.parse_model(f"{head} {{ {body} }}")
    return Case.of(model, {"x": np.array(x, np.float32)}, {"ort": options} if options else {})


ORDERED = [
    case("y = Elu (x)", [[0, 0, 0]]),
    case("y = Elu (x)", [[0, 0, 1]]),
    case("y = Elu (x)", [[0, 0, -1]]),
    case("y = Elu (x)", [[0, 0, 3.5]]),
    case("y = Elu (x)", [[0, 0, 0.3]]),
    case("y = Elu (x)", [[0.1, 0.2, 0.3]]),
    case("y = Elu (x)", [[np.inf, np.nan, 0.3]]),
    case("y = Elu <alpha = 1.0> (x)", [[0, 0, 0]]),
    case("y = Elu (x)", [[[0, 0, 0]]]),
    case("y = Elu (x)", [[0, 0, 0], [0, 0, 0]]),
    case("y = Elu (x)", [[0, 0, 0]], threads=1),
    case("a = Abs (x) y = Elu (a)", [[0, 0, 0]]),
]


@pytest.mark.parametrize("place", range(len(ORDERED) - 1))
def test_the_next_one_is_larger(place: int) -> None:
    assert smaller(ORDERED[place], ORDERED[place + 1])
    assert not smaller(ORDERED[place + 1], ORDERED[place])
    assert not smaller(ORDERED[place], ORDERED[place])


def test_an_open_size_is_larger_and_a_node_in_a_node_counts() -> None:
    known = case("y = Elu (x)", [[0, 0, 0]], HEAD.replace("n,", "1,"))
    assert smaller(known, ORDERED[0])
    branches = "then_branch = t () => (float[1, 3] p) { p = Neg (x) }, else_branch = e () => (float[1, 3] q) { q = Exp (x) }"  # fmt: skip  # noqa: E501
    inner = case(f"c = Constant <value_ints = [1]> () d = Cast <to = 9> (c) y = If (d) <{branches}>", [[0, 0, 0]])
    assert smaller(case("a = Abs (x) b = Abs (a) c = Abs (b) y = Elu (c)", [[0, 0, 0]]), inner)
