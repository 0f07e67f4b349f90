"""What stable forms are worth, and that they compute the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir
import pytest
import unstable_forms as unstable
from unstable_forms import in_onnxruntime, in_tvm

from conrepair.ground.equations.matching import Match
from conrepair.ground.equations.writing import written
from conrepair.ground.forms.all_forms import FORMS, found, in_float64, rewritten, stable_operators
from conrepair.ground.forms.form import Place
from conrepair.ground.onnx_graphs.infer_shapes import infer_shapes
from conrepair.ground.runtime.errors import ConversionError

# What ONNX Runtime's, and TVM's own kernels compute well, and the form is at home elsewhere.
RIGHT_IN_ONNXRUNTIME = {"tanh", "atanh", "softplus", "mish"}
RIGHT_IN_TVM = {"sigmoid"}
QUICK = {"tanh", "mish"}  # a build takes 1 to 3 seconds
LOST, KEPT = 200.0, 10.0  # units in the last place


def at_the_end(model: onnx.ModelProto, form: str) -> Place:
    return next(place for place in FORMS[form].found(model) if place.output == "y")


def stable(model: onnx.ModelProto, place: Place) -> onnx.ModelProto:
    return FORMS[place.form].stable(model, place)


def both(name: str, **options: Any) -> tuple[unstable.Case, onnx.ModelProto, onnx.ModelProto]:
    """A case, its network, and the stable one."""
    case = unstable.CASES[name]
    model = unstable.network(case.body, case.x.shape, **options)
    changed = stable(model, at_the_end(model, case.form))
    onnx.checker.check_model(changed, full_check=True)
    return case, model, changed


@pytest.mark.parametrize("level", ["ORT_DISABLE_ALL", "ORT_ENABLE_ALL"])
@pytest.mark.parametrize("name", unstable.CASES)
def test_digits_are_kept_in_onnx_runtime(name: str, level: str) -> None:
    case, model, changed = both(name)
    if name not in RIGHT_IN_ONNXRUNTIME:
        assert case.ulps(in_onnxruntime(model, case.x, level)).max() > LOST
    assert case.ulps(in_onnxruntime(changed, case.x, level)).max() < KEPT


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in unstable.CASES]
)
def test_digits_are_kept_in_tvm(name: str, tmp_path: Path) -> None:
    case, model, changed = both(name)
    if name == "celu":
        with pytest.raises(ConversionError, match="Celu"):
            in_tvm(model, case.x, tmp_path / "before")
    elif name not in RIGHT_IN_TVM:
        assert case.ulps(in_tvm(model, case.x, tmp_path / "before")).max() > LOST
    assert case.ulps(in_tvm(changed, case.x, tmp_path / "after")).max() < KEPT


@pytest.mark.parametrize("opset", [13, 21])
@pytest.mark.parametrize("name", sorted({*unstable.CASES} - {"mish", "layer_norm", "variance"}))
def test_the_stable_form_is_of_the_models_own_opset(name: str, opset: int) -> None:
    case, _, changed = both(name, opset=opset)
    assert [(item.domain, item.version) for item in changed.opset_import] == [("", opset)]
    assert case.ulps(in_onnxruntime(changed, case.x)).max() < KEPT


def test_an_opset_without_words_for_it_is_told() -> None:
    model = unstable.network("y = Elu(x)", (8,), opset=8)
    with pytest.raises(ConversionError, match="opset 8 has no Where"):
        stable(model, at_the_end(model, "e^x - 1"))


def test_a_place_of_another_model_is_told() -> None:
    place = at_the_end(unstable.network("y = Elu(x)", (8,)), "e^x - 1")
    other = unstable.network("y = Neg(x)", (8,))
    for change in (stable, in_float64):
        model = other if change is stable else unstable.network("z = Elu(x) y = Neg(z)", (8,))
        with pytest.raises(ConversionError, match="y"):
            change(other, Place(**{**vars(place), "nodes": ("nobody",)}) if change is in_float64 else place)
        assert model.graph.node


def test_values_at_the_ends_and_none_stay() -> None:
    ends = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 3e38, -3e38, 1e-45], np.float32)
    for name in ("tanh", "softplus", "elu", "selu", "celu", "sigmoid", "expm1", "sinh", "erfc"):
        case = unstable.CASES[name]
        model = unstable.network(case.body, ends.shape)
        changed = stable(model, at_the_end(model, case.form))
        with np.errstate(all="ignore"):
            right = case.truth(ends.astype(np.float64)).astype(np.float32)
        np.testing.assert_allclose(in_onnxruntime(changed, ends), right, rtol=1e-6, atol=1e-37, err_msg=name)


def test_atanh_at_its_ends() -> None:
    ends = np.array([1, -1, 0, -0.0, 1.5, np.nan, 0.5, -0.5], np.float32)
    model = unstable.network("y = Atanh(x)", ends.shape)
    changed = stable(model, at_the_end(model, "log of a ratio near 1"))
    with np.errstate(all="ignore"):
        right = np.arctanh(ends.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(in_onnxruntime(changed, ends), right, rtol=3e-7)


def test_nodes_that_others_read_stay_and_the_rest_goes() -> None:
    model = unstable.network("a = Exp(x) b = Add(one, a) l = Log(b) y = Mul(l, a)", (8,))
    place = next(place for place in FORMS["log(1 + e^x)"].found(model))
    changed = stable(model, place)
    results = {name for node in changed.graph.node for name in node.output}
    assert {"a", "l", "y"} <= results
    assert "b" not in results
    x = np.linspace(-3, 3, 8, dtype=np.float32)
    np.testing.assert_allclose(in_onnxruntime(changed, x), np.log1p(np.exp(x)) * np.exp(x), rtol=1e-6)


def test_what_was_written_is_not_found_again() -> None:
    for case in unstable.CASES.values():
        model = unstable.network(case.body, case.x.shape)
        changed = stable(model, at_the_end(model, case.form))
        assert case.form not in {place.form for place in found(changed)}


def test_all_places_of_a_network_one_after_the_other() -> None:
    body = "s = Softplus(x) t = Tanh(s) p = Mul(x, t) e = Elu(p) a = Exp(e) u = ReduceSum(a, last) y = Div(a, u)"
    model = changed = unstable.network(body, (4, 8))
    known = {"order of a sum", "fast e^x", "e^(y log x)", "contraction"}
    while places := [place for place in found(changed) if place.form not in known]:
        changed = stable(changed, places[-1])
    onnx.checker.check_model(changed, full_check=True)
    x = np.random.default_rng(1).normal(size=(4, 8)).astype(np.float32)
    assert {"Tanh", "Softplus", "Elu"} & {node.op_type for node in changed.graph.node} == set()
    np.testing.assert_allclose(in_onnxruntime(changed, x), in_onnxruntime(model, x), rtol=2e-6)


def test_float64_has_terms_for_its_own_digits() -> None:
    case = unstable.CASES["expm1"]
    model = unstable.network(case.body, case.x.shape, dtype="double")
    changed = stable(model, at_the_end(model, case.form))
    x = case.x.astype(np.float64)
    np.testing.assert_allclose(in_onnxruntime(changed, x), np.expm1(x), rtol=1e-15)


@pytest.mark.parametrize(("name", "most"), [("variance", 1.0), ("softmax", 1.0), ("log_exp", 1e4), ("sigmoid", 1e4)])
def test_the_same_nodes_in_float64(name: str, most: float) -> None:
    """Which isn't enough for what is far below the last place of 1."""
    case = unstable.CASES[name]
    model = unstable.network(case.body, case.x.shape)
    changed = in_float64(model, at_the_end(model, case.form))
    onnx.checker.check_model(changed, full_check=True)
    before, after = (np.median(case.ulps(in_onnxruntime(item, case.x))) for item in (model, changed))
    assert after < most < before or after < before < most
    assert [value.type.tensor_type.elem_type for value in changed.graph.output] == [onnx.TensorProto.FLOAT]


def test_half_precision_is_added_in_float32(tmp_path: Path) -> None:
    model = unstable.network("y = ReduceSum(x, last)", (4, 5000), dtype="float16")
    changed = stable(model, at_the_end(model, "half precision sums"))
    x = np.full((4, 5000), 0.1, np.float16)
    right = x.astype(np.float64).sum(1)
    errors = [
        np.abs(in_tvm(item, x, tmp_path / str(len(item.graph.node)))[:, 0] - right).max() for item in (model, changed)
    ]
    assert errors[0] > 100
    assert errors[1] <= np.spacing(np.float16(500)) / 2


def test_constants_are_folded_in_float64() -> None:
    model = unstable.network("l = Log(two) e = Exp(l) y = Mul(x, e)", (8,))
    place = next(place for place in found(model) if place.form == "folded constants")
    changed = stable(model, place)
    casts = [node for node in changed.graph.node if node.op_type == "Cast"]
    assert [onnx.helper.get_node_attr_value(node, "to") for node in casts] == [11, 1]
    np.testing.assert_array_equal(in_onnxruntime(changed, np.ones(8, np.float32)), np.full(8, 2, np.float32))


def test_an_operator_that_is_not_defined_for_float64_is_told() -> None:
    model = unstable.network("y = Celu(x)", (8,))
    with pytest.raises(ConversionError, match="Celu 'y' isn't defined for double"):
        in_float64(model, at_the_end(model, "e^x - 1"))


def test_casts_between_constants_go_to_float64_too() -> None:
    model = unstable.network("c = Cast<to = 1>(last) l = Exp(c) y = Mul(x, l)", (8,))
    changed = stable(model, next(place for place in found(model) if place.form == "folded constants"))
    onnx.checker.check_model(changed, full_check=True)
    right = np.full(8, np.exp(-1.0), np.float32)
    np.testing.assert_array_equal(in_onnxruntime(changed, np.ones(8, np.float32)), right)


def test_a_result_can_be_written_twice() -> None:
    model = onnx_ir.from_proto(unstable.network("y = Neg(x)", (8,)))
    infer_shapes(model)
    for _ in range(2):
        root = model.graph.outputs[0].producer()
        assert root is not None
        written("Abs(x) + x * 2", Match({"x": model.graph.inputs[0]}, {}, (root,)), 18)
        infer_shapes(model)
    onnx.checker.check_model(onnx_ir.to_proto(model), full_check=True)


def test_operators_are_rewritten_by_name_those_behind_others_first() -> None:
    """What the last one's form holds needs none of its own any more."""
    model = unstable.network("a = Exp(x) b = Add(a, one) c = Log(b) d = Tanh(c) y = Neg(d)", (8,))
    assert stable_operators(model) == ["a", "c", "d"]
    x = np.linspace(-30, 3, 8).astype(np.float32)
    changed = rewritten(model, ["a", "c"], ["d"])
    onnx.checker.check_model(changed, full_check=True)
    right = -np.tanh(np.log1p(np.exp(x.astype(np.float64))))
    np.testing.assert_allclose(in_onnxruntime(changed, x), right, rtol=1e-6)
    assert sum(node.op_type == "Cast" for node in changed.graph.node) == 2
    with pytest.raises(ConversionError, match="no stable form of y is known, but of a, c, d"):
        rewritten(model, ["y"], [])
    with pytest.raises(ConversionError, match="no nodes z"):
        rewritten(model, [], ["z"])
