"""Instances: computed as they stand wherever they're placed; with specifications, nearly all operators."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from benchmarks.generate.operators import MISSING, missing, standard_operators
from conrepair_lab.generate.diversity import Diversity
from conrepair_lab.generate.graph import Draft
from conrepair_lab.generate.growing import Growing
from conrepair_lab.generate.learned.cases import case_instances, harvested_cases, still_cases
from conrepair_lab.generate.learned.instances import Instance, instances_of, text_of_instances
from conrepair_lab.generate.learned.placing import Learned
from conrepair_lab.generate.learned.trying import Closing, tried
from conrepair_lab.generate.networks import Material, made
from conrepair_lab.generate.onnx_form import accepted, model_of, run
from conrepair_lab.generate.settings.ports import Support
from conrepair_lab.generate.specifications.specification import specifications
from conrepair_lab.generate.support import Probed
from conrepair_lab.generate.values.drawn import drawn_values
from conrepair_lab.generate.wishes import Wishes

INSTANCES = case_instances()
SUPPORT = Probed(20, accepted)

TENSOR = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
SEQUENCE = helper.make_sequence_type_proto(TENSOR)
VALUES = np.array([1.0, 2.0], np.float32)


def test_nearly_all_operators_take_part() -> None:
    assert set(missing()) == set(MISSING)
    assert len(standard_operators()) - len(missing()) >= 190


@pytest.mark.parametrize("opset", [17, 20, 24])
def test_an_instance_is_computed_as_it_was_seen(opset: int) -> None:
    items = [item for item in INSTANCES if opset in item.opsets]
    for item in Random(opset).sample(items, 100):
        draft = Draft(opset)
        names = [draft.source(made, item.values(place)).name for place, made in enumerate(item.piece.inputs)]
        draft.place(item.piece, names, "learned")
        generator = np.random.default_rng(1)
        feeds = {name: drawn_values(tensor.type, tensor.values, generator) for name, tensor in draft.sources.items()}
        model = model_of(draft, {})
        onnx.checker.check_model(model, full_check=True)
        for name, array in run(model, feeds, draft.outputs()).items():
            assert draft.tensors[name].type.describes(array.dtype.name, array.shape), item.source


@pytest.mark.parametrize(("single", "least", "count"), [(False, 6, 4), (True, 1, 3)])
def test_networks_have_instances_among_their_nodes(single: bool, least: int, count: int) -> None:
    learned, wishes = Learned(INSTANCES, share=0.5), Wishes(nodes=8, single=single)
    seen, instances, reading = Diversity(wishes.names), 0, 0
    for seed in range(count):
        network = made(wishes, Random(seed), SUPPORT, seen, Material(learned))
        draft, sources = network.draft, network.values.sources
        assert len(draft.nodes) == 8
        assert not single or len(draft.outputs()) == 1
        onnx.checker.check_model(network.model, full_check=True)
        found = run(network.model, network.inputs, draft.outputs())
        for name, array in found.items():
            assert draft.tensors[name].type.describes(array.dtype.name, array.shape)
            assert np.array_equal(array, {**sources, **network.values.computed}[name])
        placed = [node for node in draft.nodes if node.piece is not None]
        instances += len(placed)
        reading += sum(bool(set(node.inputs) & set(draft.made())) for node in placed)
    assert instances >= least
    assert reading > 0


def test_an_operator_without_a_specification_can_be_wished() -> None:
    wishes = Wishes(nodes=2, operators=("SequenceInsert",))
    network = made(wishes, Random(0), SUPPORT, material=Material(Learned(INSTANCES)))
    assert "SequenceInsert" not in specifications()
    assert {node.op for node in network.draft.nodes} == {"SequenceInsert"}


def test_what_is_excluded_is_in_no_instance() -> None:
    draft, learned, wishes = Draft(20), Learned(INSTANCES), Wishes(exclude=("SequenceAt", "Cast"))
    growing = Growing(wishes, Random(0), Support(), Diversity(()), 4096)
    for _ in range(200):
        learned.place(draft, growing, 2)
    found = frozenset().union(*(node.piece.operators for node in draft.nodes if node.piece is not None))
    assert found
    assert not found & {"SequenceAt", "Cast"}


@pytest.mark.parametrize(
    ("op", "given", "made"),
    [
        ("SequenceInsert", [(SEQUENCE, [VALUES]), (TENSOR, VALUES)], [VALUES, VALUES]),
        ("SequenceLength", [(SEQUENCE, [])], np.array(0)),
        ("OptionalHasElement", [(helper.make_optional_type_proto(TENSOR), None)], np.array(False)),
        ("OptionalGetElement", [(helper.make_optional_type_proto(SEQUENCE), [VALUES])], [VALUES]),
        (
            "StringConcat",
            [(helper.make_tensor_type_proto(TensorProto.STRING, [2]), np.array(["a", "b"], object))] * 2,
            np.array(["aa", "bb"], object),
        ),
        (
            "Identity",
            [(helper.make_tensor_type_proto(TensorProto.BFLOAT16, [2]), VALUES.astype(ml_dtypes.bfloat16))],
            VALUES.astype(ml_dtypes.bfloat16),
        ),
    ],
)
def test_only_tensors_of_numbers_go_in_and_out(op: str, given: list[tuple[onnx.TypeProto, Any]], made: Any) -> None:
    closing = Closing()
    names = [f"x{place}" for place in range(len(given))]
    for name, (kind, value) in zip(names, given, strict=True):
        closing.take(name, kind, value)
    closing.nodes.append(helper.make_node(op, names, ["y"]))
    closing.give("y", made)
    item = tried(op, closing, "a test")
    assert item is not None
    assert {made.dtype for made in item.piece.inputs + item.piece.outputs} <= {"float32", "int64", "bool"}
    assert instances_of(text_of_instances([item])) == (item,)


def _one(op: str, *arrays: Any, outputs: int = 1, **attributes: Any) -> Instance | None:
    names, results = [f"x{place}" for place in range(len(arrays))], [f"y{place}" for place in range(outputs)]
    closing = Closing(feeds=dict(zip(names, map(np.asarray, arrays), strict=True)), outputs=results)
    closing.nodes.append(helper.make_node(op, names, results, **attributes))
    return tried(op, closing, "a test")


def _constants(item: Instance | None) -> dict[str, Any]:
    assert item is not None
    return {tensor.name: numpy_helper.to_array(tensor).tolist() for tensor in item.piece.graph.initializer}


def test_what_sizes_depend_on_is_constant_and_indices_keep_to_what_was_seen() -> None:
    data = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert _constants(_one("Reshape", data, [4, 3])) == {"x1": [4, 3]}
    assert _constants(_one("NonZero", data)) == {"x0": data.tolist()}
    gather = _one("Gather", data, [0, 2])
    assert gather is not None
    assert not gather.piece.graph.initializer
    assert gather.values(0) is None
    values = gather.values(1)
    assert values is not None
    assert (values.low, values.high) == (0, 2)


def test_what_is_not_computed_as_it_stands_does_not_count() -> None:
    data = np.zeros((2, 3), np.float32)
    assert _one("Gather", data, [7]) is None  # there's no such row
    assert _one("Log", data) is None  # not finite
    assert _one("RandomNormal", shape=(2, 3)) is None  # not always the same
    assert _one("Relu", np.zeros(5000, np.float32)) is None  # large


def test_an_instance_knows_its_opsets() -> None:
    gelu = _one("Gelu", np.ones(3, np.float32))
    assert gelu is not None
    assert min(gelu.opsets) == 20
    assert max(gelu.opsets) >= 24


def test_operators_that_draw_numbers_have_one_to_draw() -> None:
    kept = [tried(op, case, name) for op, name, case in still_cases()]
    assert all(kept)


@pytest.mark.slow
def test_what_is_kept_is_what_the_cases_give() -> None:
    def lines(items: tuple[Instance, ...]) -> Iterator[str]:
        return (text_of_instances([item]) for item in items)

    assert list(lines(INSTANCES)) == list(lines(harvested_cases()))
