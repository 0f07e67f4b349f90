"""Blocks: a place whose first stream of random numbers gives no network gets that of another, or says why not."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from conrepair_lab.generate import generated as blocks
from conrepair_lab.generate.generated import block
from conrepair_lab.generate.networks import GeneratedNetwork, NotMadeError, made
from conrepair_lab.generate.onnx_form import RefusedError, accepted
from conrepair_lab.generate.support import Probed
from conrepair_lab.generate.values.search import Settling
from conrepair_lab.generate.wishes import Wishes

SUPPORT = Probed(20, accepted)
WISHES = Wishes(nodes=2, operators=("Add", "Relu"), dtypes=("float32",))


def described(found: list[GeneratedNetwork | NotMadeError]) -> list[Any]:
    return [item.model.SerializeToString() if isinstance(item, GeneratedNetwork) else str(item) for item in found]


def test_another_stream_makes_the_network_where_the_first_makes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = described(list(block(WISHES, 7, 0, SUPPORT, 3)))
    empty = {Random(name).getstate(): name for name in ("7/0/1", "7/0/2", "7/0/2/1", "7/0/2/2")}

    def making(wishes: Wishes, random: Random, *others: Any) -> GeneratedNetwork:
        if random.getstate() in empty:
            raise NotMadeError(f"nothing of {empty[random.getstate()].count('/')} numbers")
        return made(wishes, random, *others)

    monkeypatch.setattr(blocks, "made", making)
    first, second, third = described(list(block(WISHES, 7, 0, SUPPORT, 3)))
    assert first == usual[0]
    assert isinstance(second, bytes)
    assert second != usual[1]
    assert third == "nothing of 2 numbers; then nothing of 3 numbers"
    assert described(list(block(WISHES, 7, 0, SUPPORT, 3))) == [first, second, third]


def test_the_runtime_s_words_are_why_there_is_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(self: Settling, kept: Any = None) -> None:
        self.message = "[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED"

    monkeypatch.setattr(Settling, "settled", refusing)
    with pytest.raises(NotMadeError, match=r"^ONNX Runtime without optimizations: \[ONNXRuntimeError\] : 9"):
        made(WISHES, Random(0), SUPPORT)


@pytest.mark.parametrize(
    "message",
    [
        "Node (n1) Op (Loop) [TypeInferenceError] Input element type of 7 does not match existing output type of 1",
        "Non-zero status code returned while running Relu node. Name:'n1' Status Message: no",
        "Could not find an implementation for Relu(14) node with name 'n1_body'",
    ],
)
def test_a_node_that_the_runtime_names_is_taken_out(message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    usual, cut = Settling.settled, []

    def settled(self: Settling, kept: Any = None) -> Any:
        if not cut:
            cut.append(self.draft.nodes[1])
            self.message = message
            return None
        return usual(self, kept)

    monkeypatch.setattr(Settling, "settled", settled)
    network = made(WISHES, Random(0), SUPPORT)
    assert cut[0] not in network.draft.nodes
    assert network.refused == (message,)


def test_what_is_refused_as_it_is_given_away_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(*_: Any) -> None:
        raise RefusedError("no kernel")

    monkeypatch.setattr("conrepair_lab.generate.networks.run", refusing)
    with pytest.raises(NotMadeError, match=r"^ONNX Runtime without optimizations: no kernel$"):
        made(WISHES, Random(0), SUPPORT)


def test_operators_that_are_never_finite_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(self: Settling, kept: Any = None) -> None:
        self.guilty = [self.draft.nodes[0]]

    monkeypatch.setattr(Settling, "settled", failing)
    with pytest.raises(NotMadeError, match=r"no values were found for which (Add|Relu) is finite"):
        made(WISHES, Random(0), SUPPORT)


def test_large_networks_are_repaired_more_often(monkeypatch: pytest.MonkeyPatch) -> None:
    usual, times = Settling.settled, []

    def settled(self: Settling, kept: Any = None) -> Any:
        times.append(1)
        if len(times) > 13:
            return usual(self, kept)
        self.guilty = [self.draft.nodes[0]]
        return None

    monkeypatch.setattr(Settling, "settled", settled)
    wishes = Wishes(nodes=20, operators=("Add", "Relu"), dtypes=("float32",))
    assert len(made(wishes, Random(0), SUPPORT).draft.nodes) == 20


def test_operators_that_never_fit_cost_no_nodes() -> None:
    never = (
        "Exp",
        "Log",
        "Sin",
        "Cos",
        "Tan",
        "Sqrt",
        "Neg",
        "Abs",
        "Ceil",
        "Floor",
        "Erf",
        "Sigmoid",
        "Tanh",
        "Elu",
    )
    wishes = Wishes(nodes=6, operators=("Not", "And", *never), dtypes=("bool",), woven=0.0)
    found = [item for item in block(wishes, 0, 0, SUPPORT, 8) if isinstance(item, GeneratedNetwork)]
    assert [len(network.draft.nodes) for network in found] == [6] * 8


def test_networks_of_one_operator_take_all_operators_in_turn() -> None:
    names = ("Abs", "Add", "Ceil", "Exp", "Floor", "Mul", "Neg", "Relu", "Sub", "Tanh")
    wishes = Wishes(nodes=1, operators=names, dtypes=("float32",))
    found = [
        [item.draft.nodes[0].op for item in block(wishes, seed, 0, SUPPORT, 20) if not isinstance(item, NotMadeError)]
        for seed in (7, 8)
    ]
    assert all(sorted(each) == sorted(2 * names) and each[:10] == each[10:] for each in found)
    assert found[0] != found[1]
