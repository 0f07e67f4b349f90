"""What is concluded of what a target took and refused, and networks that keep to it."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from random import Random

import pytest

from conrepair.ground.runtime.typed import typed
from conrepair_lab.generate.narrowing.settings import FEWEST, changed, settings_of
from conrepair_lab.generate.narrowing.table import (
    KINDS,
    Acceptance,
    Fact,
    Narrowed,
    NarrowingRow,
    facts_of,
    sort_of,
    suspects,
    taken_of,
)
from conrepair_lab.generate.networks import made
from conrepair_lab.generate.onnx_form import accepted
from conrepair_lab.generate.settings.drawing import Drawing, Fresh
from conrepair_lab.generate.settings.ports import Operand, Support
from conrepair_lab.generate.settings.reading import Reading
from conrepair_lab.generate.settings.schemas import dtypes_of
from conrepair_lab.generate.settings.setting import Setting
from conrepair_lab.generate.settings.tensors import TensorType
from conrepair_lab.generate.support import Probed
from conrepair_lab.generate.wishes import Wishes


def rows(count: int, *, refused: bool, **facts: dict[str, object]) -> list[NarrowingRow]:
    own = tuple((kind, *item) for kind in KINDS for item in facts.get(kind, {}).items())
    return [NarrowingRow(own, "ValueError: t12 of /tmp/model.onnx" if refused else None)] * count


def by_kind(facts: tuple[Fact, ...]) -> dict[str, dict[str, object]]:
    return {kind: {name: value for own, name, value in facts if own == kind} for kind in KINDS}


def test_what_is_refused_is_only_given_up_where_it_alone_was_changed() -> None:
    seen = [
        *rows(3, refused=False, types={"T": "float32"}, ranks={"X": 4}),
        *rows(9, refused=True, types={"T": "float16"}, ranks={"X": 6}),
    ]
    assert suspects(seen) == [("types", "T", "float16"), ("ranks", "X", 6)]
    found = taken_of(seen)
    assert found.types == {"T": ("float32",)}
    assert (found.no_types, found.no_ranks) == ({}, {})
    (alone,) = rows(1, refused=True, types={"T": "float16"}, ranks={"X": 4})
    found = taken_of([*seen, replace(alone, changed=("types", "T"))])
    assert (found.no_types, found.no_ranks) == ({"T": ("float16",)}, {})
    assert (found.settings, found.taken) == (13, 3)
    assert found.refusals == {"ValueError: … of …": 10}


def test_what_is_taken_once_is_no_rule() -> None:
    (alone,) = rows(1, refused=True, values={"mode": "b"})
    refused = replace(alone, changed=("values", "mode"))
    assert taken_of([*rows(3, refused=False, values={"mode": "a"}), refused]).no_values == {"mode": ("b",)}
    assert taken_of([*rows(1, refused=False, values={"mode": "b"}), refused]).no_values == {}


def _refuses(setting: Setting) -> bool:
    """As TVM refused Resize: float32 and uint8 were blamed, which are taken wherever nothing else is wrong."""
    values = by_kind(facts_of(setting))["values"]
    cropped = values["coordinate_transformation_mode"] == "tf_crop_and_resize"
    return cropped or values["scales"] != "left out" or (values["mode"] == "cubic" and values["axes"] != "left out")


def test_nothing_beside_what_is_to_blame_is_given_up() -> None:
    seen, took, support = [], [], Probed(20, accepted)
    for setting in settings_of("Resize", 20, support):
        refused = _refuses(setting)
        seen.append(NarrowingRow(facts_of(setting), "no" if refused else None))
        took += [] if refused else [setting]
    for fact in suspects(seen):
        others = filter(None, (changed(setting, fact, support) for setting in took[::3]))
        seen += [NarrowingRow(facts_of(item), "no" if _refuses(item) else None, fact[:2]) for item in others]
    found = taken_of(seen)
    assert found.no_types == {}
    assert found.no_values["coordinate_transformation_mode"] == ("tf_crop_and_resize",)
    assert found.no_values["scales"] == ("all positive",)
    assert not {"mode", "axes"} & found.no_values.keys()


def test_rows_are_what_they_were_in_a_file() -> None:
    (row,) = rows(1, refused=True, types={"T": "float32"}, ranks={"X": 2}, values={"axis": "negative"})
    assert typed(NarrowingRow, json.loads(json.dumps(asdict(row)))) == row


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
    from conrepair_lab.generate.specifications.specification import specifications

    specifications()["Conv"].body(setting)
    found = by_kind(facts_of(setting, weights=True))
    assert found["types"] == {"T": "float32"}
    assert found["ranks"] == {"X": 4, "W": 4}
    assert found["values"]["B"] == found["values"]["auto_pad"] == "left out"
    assert found["values"]["pads"] == "different"
    assert found["values"]["weights"] == "initializers"


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
