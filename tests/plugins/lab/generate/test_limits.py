"""Networks that are narrower than what a runtime takes: operators, element types and ranks of all that's computed."""

from __future__ import annotations

from random import Random

import pytest

from conrepair_lab.generate.networks import GeneratedNetwork, NotMadeError, made
from conrepair_lab.generate.onnx_form import accepted
from conrepair_lab.generate.patterns.pattern import patterns
from conrepair_lab.generate.settings.ports import Limits, Support
from conrepair_lab.generate.support import Probed
from conrepair_lab.generate.wishes import Wishes

SUPPORT = Probed(20, accepted)


def networks(wishes: Wishes, count: int = 6) -> list[GeneratedNetwork]:
    return [made(wishes, Random(seed), SUPPORT) for seed in range(count)]


def test_only_wished_operators_are_there_also_of_forms_and_patterns() -> None:
    wishes = Wishes(operators=("Add", "Mul", "Conv", "Relu"), exclude=("Mul",), woven=1.0)
    found = networks(wishes)
    assert found
    assert {node.op for network in found for node in network.draft.nodes} <= {"Add", "Conv", "Relu"}


def test_all_tensors_have_a_wished_type_and_rank() -> None:
    wishes = Wishes(nodes=6, dtypes=("float32", "bool"), ranks=(2, 3))
    found = networks(wishes)
    assert len(found) == 6
    for network in found:
        assert len(network.draft.nodes) == wishes.nodes
        tensors = [tensor for tensor in network.draft.tensors.values() if tensor.array is None]
        assert {tensor.type.dtype for tensor in tensors} <= {"float32", "bool"}
        assert {tensor.type.rank for tensor in tensors} <= {2, 3}


def test_constants_that_operators_need_may_have_any_type() -> None:
    found = networks(Wishes(operators=("ReduceSum",), dtypes=("float32",)))
    assert "int64" in {tensor.type.dtype for network in found for tensor in network.draft.tensors.values()}


def test_nothing_that_is_left_is_no_network() -> None:
    with pytest.raises(NotMadeError, match="no operator fits"):
        made(Wishes(operators=("And",), dtypes=("float32",)), Random(0), SUPPORT)


@pytest.mark.parametrize(("op", "left"), [("Add", ("float32",)), ("Mul", ())])
def test_a_support_has_no_choice_for_other_operators(op: str, left: tuple[str, ...]) -> None:
    assert Limits(Support(), ("Add",), (), range(7)).choices(op, {}, "T", ("float32",)) == left


def test_a_pattern_has_a_share_of_its_own() -> None:
    with_it = networks(Wishes(nodes=12, woven=0.0, patterns={"gelu by tanh": 1.0}))
    assert sum("gelu by tanh" in network.parts for network in with_it) >= 5
    never = networks(Wishes(nodes=7, woven=1.0, patterns={name: 0.0 for name in patterns() if name != "silu"}))
    assert {part for network in never for part in network.parts & patterns().keys()} == {"silu"}
