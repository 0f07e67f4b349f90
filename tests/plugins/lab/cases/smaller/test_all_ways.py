"""Each way by itself: what it makes of a case, and that what it makes is smaller or refused."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest

from conrepair_lab.cases.case import Case
from conrepair_lab.cases.draft import Draft, opened
from conrepair_lab.cases.smaller.all_ways import WAYS
from conrepair_lab.cases.smaller.shapes import SIMPLER, rounded
from conrepair_lab.cases.validity import FIRST, checked

MODEL = onnx.parser.parse_model(
    """<ir_version: 8, opset_import: ["" : 17]>
    g (float[n, 6] x) => (float[n, 3] y, float[n, 6] r)
    <float[6, 3] w = {1.5, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9.25}> {
      r = LeakyRelu <alpha = 0.5> (x) m = MatMul (r, w) y = Softmax <axis = 1> (m)
    }"""
)
X = np.linspace(-1.3, 2.7, 24, dtype=np.float32).reshape(4, 6)
CASE = Case.of(MODEL, {"x": X}, {"ort": {"threads": 2}, "tvm": {"level": 3}})


def draft() -> Draft:
    return opened(CASE, FIRST)


def made(way: str, level: int = 0, *places: int) -> Case:
    """What some changes of a level make of the case; all of them by default."""
    changed = draft()
    changes = WAYS[way][level](draft())
    for place in places or range(len(changes)):
        changes[place](changed)
    case = changed.tidied()
    assert case is not None
    found = checked(case, FIRST)
    assert found is not None
    return found


def shown(case: Case) -> list[str]:
    return [node.op_type for node in case.model.graph.node]


def test_an_output_goes_with_what_only_it_needs() -> None:
    assert shown(made("nodes", 0, 0)) == ["LeakyRelu"]
    assert shown(made("nodes", 0, 1)) == ["LeakyRelu", "MatMul", "Softmax"]


def test_a_node_goes_and_its_result_is_fed() -> None:
    without = made("nodes", 1, 0)
    assert shown(without) == ["MatMul", "Softmax"]
    np.testing.assert_array_equal(without.inputs["r"], np.where(X < 0, X / 2, X))


def test_the_last_node_goes_and_what_fed_it_is_an_output() -> None:
    left = made("nodes", 1, 2)
    assert shown(left) == ["LeakyRelu", "MatMul"]
    sizes = {
        item.name: [size.dim_value for size in item.type.tensor_type.shape.dim] for item in left.model.graph.output
    }
    assert sizes == {"r": [4, 6], "m": [4, 3]}


def test_a_node_is_passed_by() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]>
        g (float[2] x) => (float[2] y) { a = Abs (x) b = Neg (a) c = Exp (b) y = Cos (c) }"""
    )
    changed = opened(Case.of(model, {"x": X[0, :2]}), FIRST)
    for change in WAYS["nodes"][2](changed):
        change(changed)
    left = changed.tidied()
    assert left is not None
    assert onnx.printer.to_text(left.model).split("{")[1].split() == ["y", "=", "Cos", "(x)", "}"]


def test_all_nodes_are_no_network() -> None:
    changed = draft()
    for change in WAYS["nodes"][1](draft()):
        change(changed)
    assert changed.tidied() is None


def test_attributes_go() -> None:
    assert not [item for node in made("attributes").model.graph.node for item in node.attribute]


def test_options_go_one_by_one() -> None:
    assert made("options", 0, 0).options == {"tvm": {"level": 3}}
    assert made("options").options == {}


def test_open_sizes_are_fixed() -> None:
    (item,) = made("shapes").model.graph.input
    assert [size.dim_value for size in item.type.tensor_type.shape.dim] == [4, 6]


def test_axes_of_one_size_become_shorter_together() -> None:
    left = made("shapes", 1)
    assert left.inputs["x"].shape == (1, 1)
    assert list(left.model.graph.initializer[0].dims) == [1, 1]


def test_weights_become_simpler_and_inputs_stay() -> None:
    left = made("weights")
    assert not onnx.numpy_helper.to_array(left.model.graph.initializer[0]).any()
    np.testing.assert_array_equal(left.inputs["x"], X)
    assert not made("values").inputs["x"].any()


@pytest.mark.parametrize("kind", [np.float32, np.float16, ml_dtypes.bfloat16, np.int64, np.uint8, np.bool_])
def test_simpler_numbers_keep_their_type_and_shape(kind: type) -> None:
    array = np.array([[0, 1, 3], [5, 100, 7]]).astype(kind)
    for simpler in SIMPLER:
        found = simpler(array)
        assert (found.dtype, found.shape) == (array.dtype, array.shape)


def test_fewer_digits() -> None:
    array = np.array([0.3, -3.37, 1000.0, 0.0, np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(rounded(1)(array), np.array([0.25, -4, 1024, 0, np.inf, np.nan], np.float32))


def test_axes_of_size_one_go() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[1, 1, 2] x) => (float[1, 1, 2] y) { y = Abs (x) }'
    )
    drafted = opened(Case.of(model, {"x": X[:1, :2].reshape(1, 1, 2)}), FIRST)
    for level, shape in ((-2, (2,)), (-1, (1, 2))):
        changed = drafted.copy()
        for change in WAYS["shapes"][level](drafted):
            change(changed)
        assert changed.inputs["x"].shape == shape
        case = changed.tidied()
        assert case is not None
        assert checked(case, FIRST) is not None
