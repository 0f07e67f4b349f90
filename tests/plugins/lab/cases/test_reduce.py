"""What is left still fails, is valid and smaller, and can't be smaller by any way."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from conrepair.ground.runtime.errors import UsageError
from conrepair_lab.cases.case import Case
from conrepair_lab.cases.reduce import Budget, reduce, smaller

UNARY = ["Relu", "Abs", "Neg", "Tanh", "Exp", "Sigmoid"]
BINARY = ["Add", "Mul", "Sub", "Max"]


@st.composite
def networks(draw: st.DrawFn) -> Case:
    """Some nodes over matrices of one size, fed by each other, an input and a weight."""
    rows, columns = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    names, nodes = ["x", "w"], []
    for place in range(draw(st.integers(2, 7))):
        operator = draw(st.sampled_from([*UNARY, *BINARY, "Transpose"]))
        operands = [draw(st.sampled_from(names)) for _ in range(1 + (operator in BINARY))]
        if operator == "Transpose":
            nodes.append(helper.make_node("Transpose", operands, [f"m{place}"], perm=[1, 0]))
            nodes.append(helper.make_node("Transpose", [f"m{place}"], [f"t{place}"], perm=[1, 0]))
        else:
            nodes.append(helper.make_node(operator, operands, [f"t{place}"]))
        names.append(f"t{place}")
    shape = [rows, columns]
    outputs = draw(st.lists(st.sampled_from(names[2:]), min_size=1, max_size=3, unique=True))
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in outputs],
        [numpy_helper.from_array(np.linspace(-1, 0.9, rows * columns, dtype=np.float32).reshape(shape), "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    x = np.linspace(-0.7, 1.1, rows * columns, dtype=np.float32).reshape(shape)
    return Case.of(model, {"x": x}, {"ort": {"threads": 2, "level": "all"}})


def operators(case: Case) -> set[str]:
    return {node.op_type for node in case.model.graph.node}


class Has:
    """Holds where these operators are."""

    def __init__(self, *wanted: str) -> None:
        self.wanted = set(wanted)

    def __call__(self, case: Case) -> bool:
        return self.wanted <= operators(case)


def valid(case: Case) -> bool:
    onnx.checker.check_model(case.model, full_check=True)
    found = onnx.reference.ReferenceEvaluator(case.model).run(None, dict(case.inputs))
    return all(np.isfinite(array).all() for array in found)


@given(networks(), st.data())
@settings(max_examples=6, deadline=None)
def test_what_is_left_still_holds_is_valid_and_no_larger(case: Case, data: st.DataObject) -> None:
    wanted = data.draw(st.sets(st.sampled_from(sorted(operators(case))), min_size=1, max_size=2))
    seen: list[Case] = []

    def still(smaller: Case) -> bool:
        seen.append(smaller)
        return wanted <= operators(smaller)

    found = reduce(case, still)
    assert found.exact
    assert wanted == operators(found.case)
    assert len(found.case.model.graph.node) == len(wanted)
    assert all(map(valid, seen))
    assert not smaller(case, found.case)
    assert sum(array.size for array in found.case.inputs.values()) <= 2 * len(wanted)
    assert not found.case.options


CHAIN = onnx.parser.parse_model(
    """<ir_version: 8, opset_import: ["" : 17]>
    g (float[n, 4] x, float[2, 4] unused) => (float[n, 4] y, float[n, 4] z) <float[4] w = {1, 2, 3, 4}> {
      a = Softplus (x) b = Neg (a) c = Abs (b) d = Elu <alpha = 2.0> (b) y = Add (d, w) z = Mul (c, w)
    }"""
)
X = np.linspace(0.3, 1.7, 8, dtype=np.float32).reshape(2, 4)
CASE = Case.of(CHAIN, {"x": X, "unused": X})


def test_what_was_computed_in_front_becomes_an_input_with_its_value() -> None:
    values: list[float] = []

    def still(case: Case) -> bool:
        values.extend(case.inputs[name].flat[0] for name in case.inputs if name == "b")
        return "Elu" in operators(case)

    found = reduce(CASE, still, budget=Budget(tries=7))
    assert not found.exact
    assert found.tries == 7
    assert values[0] == pytest.approx(-np.log1p(np.exp(X[0, 0])))
    assert [node.op_type for node in found.case.model.graph.node] == ["Elu"]


def test_a_pair_that_only_fails_in_a_row_is_kept_so_and_what_is_between_is_passed_by() -> None:
    def still(case: Case) -> bool:
        makers = {node.output[0]: node for node in case.model.graph.node}

        def behind(node: onnx.NodeProto) -> set[str]:
            fed = [makers[name] for name in node.input if name in makers]
            return {node.op_type}.union(*map(behind, fed))

        return any(node.op_type == "Add" and "Softplus" in behind(node) for node in makers.values())

    found = reduce(CASE, still)
    assert found.exact
    assert [node.op_type for node in found.case.model.graph.node] == ["Softplus", "Add"]


def test_what_hangs_on_an_element_keeps_one_of_few_digits() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[6, 4] x) => (float[6, 4] y) { a = Abs (x) y = Neg (a) }'
    )
    x = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
    x[4, 3] = -3.37
    found = reduce(
        Case.of(model, {"x": x}),
        lambda case: "Abs" in operators(case) and any((array < -3).any() for array in case.inputs.values()),
    )
    assert [node.op_type for node in found.case.model.graph.node] == ["Abs"]
    (left,) = found.case.inputs.values()
    assert (left.size, left.item()) == (1, -4.0)


def test_attributes_are_left_to_their_defaults_as_far_as_nothing_hangs_on_them() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]> g (float[1, 2, 9, 9] x) => (float[1, 2, 4, 4] y) {
        y = MaxPool <kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 0, storage_order = 1> (x) }"""
    )
    case = Case.of(model, {"x": np.ones((1, 2, 9, 9), np.float32)})

    def strides(case: Case) -> bool:
        return any(item.name == "strides" and item.ints[0] > 1 for item in case.model.graph.node[0].attribute)

    found = reduce(case, strides).case
    shown = {item.name: list(item.ints) for item in found.model.graph.node[0].attribute}
    assert shown == {"kernel_shape": [1, 1], "strides": [2, 2]}
    assert found.inputs["x"].size == 1


def test_each_smaller_case_is_what_the_next_is_tried_from() -> None:
    kept: list[Case] = []

    def still(case: Case) -> bool:
        if not Has("Elu", "Mul")(case):
            return False
        kept.append(case)
        return True

    found = reduce(CASE, still)
    assert kept[-1].key == found.case.key
    assert all(smaller(after, before) for before, after in itertools.pairwise(kept))


def test_graphs_in_nodes_read_what_is_around_them() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]> g (float[3] x, bool[1] c) => (float[3] y) {
        a = Tanh (x) b = Abs (a)
        s = If (c) <then_branch = t () => (float[3] p) { p = Neg (b) },
                    else_branch = e () => (float[3] q) { q = Exp (a) }>
        y = Add (s, x) }"""
    )
    found = reduce(Case.of(model, {"x": X[0, :3], "c": np.array([True])}), Has("If"))
    assert [node.op_type for node in found.case.model.graph.node] == ["If"]
    assert {"a", "b"} <= set(found.case.inputs)


def test_the_clock_ends_it() -> None:
    found = reduce(CASE, Has("Elu"), budget=Budget(seconds=0))
    assert (found.tries, found.exact) == (0, False)


def test_where_nothing_holds_nothing_is_reduced() -> None:
    with pytest.raises(UsageError, match="doesn't hold"):
        reduce(CASE, Has("Conv"))


def test_a_case_that_is_not_valid_is_not_reduced() -> None:
    with pytest.raises(UsageError, match="can't be reduced"):
        reduce(Case.of(CHAIN, {"x": X[:, :3], "unused": X}), Has("Elu"))
