"""What is concluded of what a target took and refused, and networks that keep to it."""

from __future__ import annotations

from random import Random

import pytest

from conrepair.generate.drawing import Drawing, Fresh
from conrepair.generate.narrowing.facts import Facts, facts_of, sort_of
from conrepair.generate.narrowing.narrowed import Narrowed
from conrepair.generate.narrowing.settings import FEWEST, settings_of
from conrepair.generate.narrowing.table import Acceptance, NarrowingRow, taken_of
from conrepair.generate.networks import made
from conrepair.generate.ports import Operand, Support
from conrepair.generate.reading import Reading
from conrepair.generate.schemas import dtypes_of
from conrepair.generate.tensors import TensorType
from conrepair.generate.wishes import Wishes


def rows(count: int, *, refused: bool, **facts: dict[str, object]) -> list[NarrowingRow]:
    own = Facts(facts.get("types", {}), facts.get("ranks", {}), facts.get("values", {}))  # type: ignore[arg-type]
    return [NarrowingRow(own, "ValueError: t12 of /tmp/model.onnx" if refused else None)] * count


def test_what_is_refused_for_its_type_says_nothing_about_its_rank() -> None:
    found = taken_of(
        [
            *rows(3, refused=True, types={"T": "float16"}, ranks={"X": 6}),
            *rows(3, refused=False, types={"T": "float32"}, ranks={"X": 4}),
            *rows(3, refused=True, types={"T": "float32"}, ranks={"X": 1}),
        ]
    )
    assert found.types == {"T": ("float32",)}
    assert found.no_types == {"T": ("float16",)}
    assert found.no_ranks == {"X": (1,)}
    assert (found.settings, found.taken) == (9, 3)
    assert found.refusals == {"ValueError: … of …": 6}


def test_few_refusals_among_many_are_no_rule() -> None:
    some = [*rows(20, refused=True, values={"mode": "a"}), *rows(10, refused=False, values={"mode": "a"})]
    assert taken_of([*some, *rows(3, refused=True, values={"mode": "b"})]).no_values == {}
    assert taken_of([*some, *rows(20, refused=True, values={"mode": "b"})]).no_values == {"mode": ("b",)}


def test_whether_weights_may_be_inputs_comes_first() -> None:
    found = taken_of(
        [
            *rows(4, refused=True, types={"T": "float32"}, values={"weights": "inputs"}),
            *rows(9, refused=False, types={"T": "float32"}, values={"weights": "initializers"}),
            *rows(3, refused=True, types={"T": "float16"}, values={"weights": "inputs"}),
            *rows(3, refused=False, types={"T": "float16"}, values={"weights": "initializers"}),
        ]
    )
    assert found.no_types == {}
    assert found.no_values == {"weights": ("inputs",)}


def test_rows_are_what_they_were_in_a_file() -> None:
    (row,) = rows(1, refused=True, types={"T": "float32"}, ranks={"X": 2}, values={"axis": "negative"})
    assert NarrowingRow.of_json(row.as_json()) == row


@pytest.mark.parametrize(
    ("value", "sort"),
    [
        ("SAME_UPPER", "SAME_UPPER"),
        (-1, "negative"),
        (3, "3"),
        (70, "4 or more"),
        (0.0, "0"),
        (0.5, "positive"),
        ((), "none"),
        ((1, 1), "all 1"),
        ((1, 2), "different"),
        ((0, -2), "some negative"),
    ],
)
def test_sorts_of_values(value: object, sort: str) -> None:
    assert sort_of(value) == sort


def test_facts_of_a_setting_name_what_is_there_and_what_is_left_out() -> None:
    data = Operand(TensorType("float32", (1, 2, 5, 5)))
    weight = Operand(TensorType("float32", (3, 2, 1, 1)))
    setting = Reading("Conv", 20, Random(0), given=[data, weight], said={"pads": (0, 1, 0, 1)}, results=[True])
    from conrepair.generate.specifications.specification import specifications

    specifications()["Conv"].body(setting)
    found = facts_of(setting, weights=True)
    assert found.types == {"T": "float32"}
    assert found.ranks == {"X": 4, "W": 4}
    assert found.values["B"] == found.values["auto_pad"] == "left out"
    assert found.values["pads"] == "different"
    assert found.values["weights"] == "initializers"


def test_each_element_type_is_tried_and_the_settings_are_always_the_same() -> None:
    def seen() -> list[tuple[dict[str, str], list[Operand | None]]]:
        return [(setting.types, setting.inputs) for setting in settings_of("Softmax", 20, Support())]

    assert len(seen()) >= FEWEST
    assert {types["T"] for types, _ in seen()} == set(dtypes_of("Softmax", 20, "T"))
    assert seen() == seen()


def test_networks_have_nothing_that_is_never_taken() -> None:
    taken = {
        "Softmax": Acceptance(30, 0),
        "Relu": Acceptance(30, 20, no_types={"T": ("float16", "float64")}),
        "Transpose": Acceptance(30, 20, no_ranks={"data": (4, 5, 6)}),
        "Concat": Acceptance(30, 20, no_values={"axis": ("negative",)}),
    }
    wishes = Wishes(nodes=8, operators=(*taken, "Add"), dtypes=("float32", "float16"))
    nodes = 0
    for seed in range(6):
        network = made(wishes, Random(seed), Narrowed(Support(), taken))
        for node in network.draft.nodes:
            read = network.draft.tensors[node.inputs[0]].type
            assert node.op != "Softmax"
            assert node.op != "Relu" or read.dtype == "float32"
            assert node.op != "Transpose" or read.rank < 4
            assert node.op != "Concat" or node.attributes["axis"] >= 0
            nodes += node.op != "Add"
    assert nodes


def test_an_operator_that_nobody_was_asked_about_stays() -> None:
    setting = Drawing("Relu", 20, Random(0), Narrowed(Support(), {}), source=Fresh())
    assert setting.support.choices("Relu", {}, "T", ("float32",)) == ("float32",)
    assert setting.support.allows(setting)
