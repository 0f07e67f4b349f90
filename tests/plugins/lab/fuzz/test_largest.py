"""Results in between count, too; what isn't known doesn't."""

from __future__ import annotations

import numpy as np
from fuzz_cases import case

from conrepair_lab.cases.sizes import largest


def test_a_result_in_between_may_be_the_largest() -> None:
    text = """g (float[2] x) => (float[1] y) <int64[2] s = {500, 2}>
    { a = Expand (x, s) y = ReduceSum <keepdims = 0> (a) }"""
    assert largest(case(text, x=np.ones(2, np.float32))) == 1000


def test_a_network_of_scalars_has_one() -> None:
    assert largest(case("g (float x) => (float y) { y = Neg (x) }", x=np.float32(1))) == 1
