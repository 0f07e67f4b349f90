"""Cases that are parts of one network are looked at as if each were alone."""

import pytest
from onnx_cases import check, random, together

from conrepair_onnx_keras.importer.node import rules


def test_one_that_is_wrong_among_many_fails(monkeypatch):
    seen = []

    @together("seed", [1, 2])
    @together("operator", ["Abs", "Neg", "Exp"])
    def cases(operator, seed):
        seen.append((operator, seed))
        assert check(operator, {"x": random(2, 3, seed=seed)}, symbolic={"x": ["n", 3]}) is None

    cases()
    assert len(seen) == 6
    monkeypatch.setitem(rules(), ("", "Neg"), rules()["", "Identity"])
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        cases()
    monkeypatch.delitem(rules(), ("", "Neg"))
    with pytest.raises(Exception, match=r"Neg\(\) of node 'the_Neg'"):  # as it's called where it's alone
        cases()


def test_cases_outside_are_looked_at_one_by_one():
    @together("sizes", [(1, 2), (3, 4)])
    def cases(sizes):
        check("Relu", {"x": random(*sizes)})

    cases()
    assert check("Relu", {"x": random(2, 3)}) is not None
