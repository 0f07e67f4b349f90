"""Bounds of generated operators hold for results that were computed in float32, and are not wide without need."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from conrepair.ground.metrics.ulps import grid_of
from conrepair.ground.runtime.onnx_session import open_session
from conrepair.verdicts.truth.approximate import Machine
from conrepair.verdicts.truth.bound import Analysis
from conrepair.verdicts.truth.judging import judge

Array = np.ndarray[Any, Any]
HEAD = '<ir_version: 8, opset_import: ["" : {opset}]> '


def _model(text: str, opset: int = 17, **weights: Array) -> onnx.ModelProto:
    model = onnx.parser.parse_model(HEAD.format(opset=opset) + text)
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    return model


def _run(model: onnx.ModelProto, feeds: dict[str, Array]) -> Array:
    return np.asarray(open_session(model.SerializeToString(), threads=1, quiet=True).run(None, feeds)[0])


def _random(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


OPERATORS = {
    "MatMul (x, w)": {"w": _random(6, 5, seed=1)},
    "Gemm <alpha = -0.5, beta = -2.0> (x, w, b)": {"w": _random(6, 5, seed=1), "b": _random(5, seed=2)},
    "Sub (x, w)": {"w": _random(4, 6, seed=1)},
    "Mul (x, w)": {"w": _random(4, 6, seed=1)},
    "Div (x, w)": {"w": _random(4, 6, seed=1)},
    "ReduceSum <keepdims = 0> (x)": {},
    "ReduceMean (x)": {},
    "ReduceL2 (x)": {},
    "ReduceLogSumExp (x)": {},
    "Softmax (x)": {},
    "LogSoftmax (x)": {},
    "LayerNormalization (x, w)": {"w": _random(6, seed=1)},
    "CumSum (x, a)": {"a": np.array(1)},
    "Transpose <perm = [1, 0]> (x)": {},
    "Concat <axis = 0> (x, w)": {"w": _random(4, 6, seed=1)},
    "Where (c, x, w)": {"c": _random(4, 6) > 0, "w": _random(4, 6, seed=1)},
    "Clip (x, low)": {"low": np.float32(-0.5)},
    "Max (x, w)": {"w": _random(4, 6, seed=1)},
    "LpNormalization <p = 1> (x)": {},
    "LpNormalization (x)": {},
}
MAPS = {
    "Conv <pads = [1, 1, 1, 1], group = 2> (m, w)": {"w": _random(4, 2, 3, 3, seed=1)},
    "ConvTranspose <group = 2, strides = [2, 2]> (m, w)": {"w": _random(4, 3, 3, 3, seed=1)},
    "AveragePool <kernel_shape = [2, 2]> (m)": {},
    "MaxPool <kernel_shape = [2, 2]> (m)": {},
    "LpPool <kernel_shape = [2, 2], p = 3, strides = [2, 1]> (m)": {},
    "GlobalLpPool (m)": {},
    "GlobalAveragePool (m)": {},
    "BatchNormalization (m, s, b, mean, s)": {
        name: np.abs(_random(4, seed=place)) for place, name in enumerate(("s", "b", "mean"))
    },
    "InstanceNormalization (m, s, b)": {name: _random(4, seed=place) for place, name in enumerate(("s", "b"))},
    "LRN <size = 3> (m)": {},
    'Resize <mode = "linear"> (m, , scales)': {"scales": np.array([1, 1, 1.7, 1.3], np.float32)},
    'Resize <mode = "cubic"> (m, , scales)': {"scales": np.array([1, 1, 1.7, 1.3], np.float32)},
}


@pytest.mark.parametrize("text", [*OPERATORS, *MAPS])
def test_float32_stays_within_the_bound_which_is_not_wide(text: str) -> None:
    """Behind a Mul whose rounding has to be handed on."""
    name, weights = ("x", OPERATORS[text]) if text in OPERATORS else ("m", MAPS[text])
    x = _random(4, 6, seed=9) if name == "x" else _random(2, 4, 5, 5, seed=9)
    shape = ", ".join(map(str, x.shape))
    graph = f"g (float[{shape}] i, float[{shape}] j) => (float[?] y) {{ {name} = Mul (i, j) y = {text} }}"
    model = _model(graph, **{key: np.asarray(value) for key, value in weights.items()})
    model.graph.output[0].type.tensor_type.ClearField("shape")
    for scale in (1e-4, 1.0, 100.0):
        feeds = {"i": x * np.float32(scale), "j": np.full(x.shape, np.float32(1.1))}
        found = Analysis(model).at(feeds, {"Softmax": 3.0, "LogSoftmax": 3.0, "LRN": 3.0})
        error = np.abs(_run(model, feeds).astype(np.float64) - found.truth["y"])
        assert error.shape == found.bound["y"].shape
        assert (error <= found.bound["y"]).all()
        assert np.isfinite(found.bound["y"]).all()
        assert found.bound["y"].max() <= 300 * max(error.max(), 2.0**-24 * np.abs(found.truth["y"]).max())


def test_moving_numbers_costs_nothing_and_a_bound_moves_with_them() -> None:
    model = _model("g (float[2, 3] x) => (float[3, 2] y) { e = Exp (x) y = Transpose <perm = [1, 0]> (e) }")
    found = Analysis(model).at({"x": _random(2, 3)})
    assert (found.bound["y"] == found.bound["e"].T).all()
    assert (found.bound["x"] == 0).all()
    assert not found.estimated


def test_a_step_belongs_to_the_bound_only_where_it_may_be_reached() -> None:
    model = _model("g (float[3] x) => (float[3] y, bool[3] z) { t = Mul (x, x) y = Floor (t) z = Less (t, one) }")
    model.graph.initializer.append(numpy_helper.from_array(np.float32(1), "one"))
    found = Analysis(model).at({"x": np.array([0.3, 1.0, 1.7], np.float32)})
    assert found.bound["y"].tolist() == [0, 1, 0]
    assert found.bound["z"].tolist() == [0, 1, 0]


def test_the_nearest_element_is_uncertain_where_a_coordinate_lies_between_two() -> None:
    nodes = "y = Resize <{0}> (x, , s) z = Resize <{0}> (x, , t) c = Resize <{1}> (x, , , n)"
    mode = 'coordinate_transformation_mode = "asymmetric", nearest_mode = "floor", mode = "nearest"'
    scales = {name: np.array([scale], np.float32) for name, scale in (("s", 2), ("t", 1.6))}
    text = nodes.format(mode, mode.replace("asymmetric", "align_corners"))
    model = _model(f"g (float[5] x) => (float[10] y, float[8] z, float[7] c) {{ {text} }}", n=np.array([7]), **scales)
    found = Analysis(model).at({"x": _random(5)})
    assert (found.bound["y"] == 0).all()
    assert (found.bound["z"] == 0).all()
    assert np.isinf(found.bound["c"]).tolist() == [place in {3, 6} for place in range(7)]  # 2 and 4 of 0, 2/3, ...


def test_a_pole_an_end_of_a_domain_and_an_overflow_are_infinite() -> None:
    text = "g (float[3] x) => (float[3] y, float[3] z, float[3] w)"
    model = _model(text + " { d = Sub (e, e) y = Reciprocal (d) z = Log (d) e = Exp (x) w = Mul (e, e) }")
    nodes = sorted(model.graph.node, key=lambda node: "eydzw".index(node.output[0]) if node.output[0] != "d" else 0.5)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    found = Analysis(model).at({"x": np.array([1, 30, 60], np.float32)})
    assert np.isinf(found.bound["y"]).all()
    assert np.isinf(found.bound["z"]).all()
    assert np.isinf(found.bound["w"]).tolist() == [False, False, True]


def test_an_operator_without_a_rule_is_estimated_and_what_follows_is_too() -> None:
    model = _model("g (float[2, 3, 3] x) => (float[2] y) { d = Det (x) y = Exp (d) }")
    found = Analysis(model).at({"x": _random(2, 3, 3)})
    assert dict(found.estimated) == {"d": "Det", "y": "Det"}
    error = np.abs(_run(model, {"x": _random(2, 3, 3)}) - found.truth["y"])
    assert (error <= found.bound["y"]).all()


def test_what_branches_read_from_outside_is_disturbed_too() -> None:
    branches = (
        "then_branch = a () => (float[4] z) { z = Neg (e) }, else_branch = b () => (float[4] z) { z = Sin (e) }"
    )
    model = _model(f"g (float[4] x, bool c) => (float[4] y) {{ e = Exp (x) y = If <{branches}> (c) }}")
    feeds = {"x": np.array([5, 8, 11, 13], np.float32), "c": np.array(False)}
    found = Analysis(model).at(feeds)
    assert found.estimated["y"] == "If"
    assert (np.abs(_run(model, feeds) - found.truth["y"]) <= found.bound["y"]).all()
    assert (found.bound["y"] >= 0.3 * np.abs(np.cos(found.truth["e"])) * found.bound["e"]).all()


def test_what_an_attribute_pads_with_is_exact() -> None:
    model = _model("g (float[2] x) => (float[4] y) { e = Exp (x) y = Pad <pads = [1, 1], value = -3.0> (e) }", 10)
    found = Analysis(model).at({"x": _random(2)})
    assert found.truth["y"].tolist()[::3] == [-3, -3]
    assert found.bound["y"].tolist() == [0, *found.bound["e"].tolist(), 0]


def test_bounds_go_through_sequences() -> None:
    nodes = "e = Exp (x) s = SplitToSequence <axis = 0> (e, n) y = SequenceAt (s, i)"
    model = _model(f"g (float[3] x) => (float[2] y) {{ {nodes} }}", n=np.array([1, 2]), i=np.array(1))
    found = Analysis(model).at({"x": _random(3)})
    assert (found.bound["y"] == found.bound["e"][1:]).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrower_types_stay_within_their_bounds(dtype: str) -> None:
    text = "g (float[6] x, float[6] z) => (float[6] y) { m = Mul (x, z) e = Exp (m) y = Sub (e, x) }"
    narrow = np.dtype(getattr(ml_dtypes, dtype, dtype))
    x, z = (_random(6, seed=seed).astype(narrow) for seed in (1, 2))
    given = (np.exp((x * z).astype(float)).astype(narrow) - x).astype(float)
    found = Analysis(_model(text), dtype).at({"x": x.astype(np.float32), "z": z.astype(np.float32)})
    error = np.abs(given - found.truth["y"])
    assert (error <= found.bound["y"]).all()
    assert found.bound["y"].max() < 20 * error.max()


def test_the_accuracy_of_an_operator_may_depend_on_its_operand() -> None:
    model = _model("g (float[2] x) => (float[2] y) { y = Tanh (x) }")
    feeds = {"x": np.array([1e-3, 0.5], np.float32)}
    plain = Analysis(model).at(feeds).bound["y"]
    wide = Analysis(model).at(feeds, {"Tanh": lambda x: np.where(np.abs(x) < 0.1, 8.0, 1.0)}).bound["y"]
    assert (wide / plain).round().tolist() == [8, 1]


def test_float16_has_wider_bounds() -> None:
    model = _model("g (float[2] x) => (float[2] y) { y = Exp (x) }")
    feeds = {"x": np.array([0.1, 1.0], np.float32)}
    assert (Analysis(model, "float16").at(feeds).bound["y"] == 2.0**13 * Analysis(model).at(feeds).bound["y"]).all()


def test_two_sides_of_a_cancelling_convolution_are_ill_conditioned() -> None:
    text = "g (float[1, 1, 1, 2] x) => (float[1, 1, 1, 1] y) { s = Mul (x, k) c = Conv (s, w) y = Reciprocal (c) }"
    weights = {"w": np.array([[[[1.0, -1.0]]]], np.float32), "k": np.array([[[[1.1, 1.1000001]]]], np.float32)}
    model = _model(text, **weights)
    feeds = {"x": np.array([[[[1.0000002, 1.0]]]], np.float32)}
    found = Analysis(model).at(feeds)
    one = _run(model, feeds)
    two = (found.truth["y"] * 1.7).astype(np.float32)  # as an FMA on the other side may come to
    assert judge(one, two, found.truth["y"], found.bound["y"]).kind == "ill-conditioned"


def test_a_composition_that_is_unstable_as_written_is_ill_conditioned_though_inputs_hardly_matter() -> None:
    model = _model("g (float[1] x) => (float[1] y) { t = Tanh (x) e = Exp (t) y = Log (e) }")
    feeds = {"x": np.array([3e-8], np.float32)}
    found = Analysis(model).at(feeds)
    exact, rounded = found.truth["y"].astype(np.float32), np.array([5.96e-8], np.float32)
    found_kind = judge(exact, rounded, found.truth["y"], found.bound["y"])
    assert found_kind.kind == "ill-conditioned"
    assert found_kind.difference > 0.5


def test_a_function_that_loses_digits_is_wrong_and_the_other_side_is_nearer() -> None:
    model = _model("g (float[2] x) => (float[2] y) { y = Tanh (x) }")
    feeds = {"x": np.array([1e-7, 0.5], np.float32)}
    found = Analysis(model).at(feeds, {"Tanh": 4.0})
    right, wrong = _run(model, feeds), (found.truth["y"] * np.array([1.1, 1])).astype(np.float32)
    judged = judge(wrong, right, found.truth["y"], found.bound["y"])
    assert (judged.kind, judged.one.index, judged.two.beyond) == ("wrong", (0,), 0)
    assert judged.one.bounds > 1e5 > judged.two.bounds
    assert judge(right, right, found.truth["y"], found.bound["y"]).kind == "equal"
    assert judge(right, np.nextafter(right, np.float32(1)), found.truth["y"], found.bound["y"]).kind == "within"


def test_the_largest_is_certain_where_no_other_may_reach_it() -> None:
    nodes = "e = Exp (x) i = ArgMax <axis = 1, keepdims = 0> (e) h = Hardmax (e)"
    model = _model(f"g (float[2, 3] x) => (int64[2] i, float[2, 3] h) {{ {nodes} }}")
    found = Analysis(model).at({"x": np.array([[1, 1, 0], [1, 2, 0]], np.float32)})
    assert found.bound["i"].tolist() == [np.inf, 0]
    assert found.bound["h"].tolist() == [[1, 1, 1], [0, 0, 0]]


def test_which_is_the_largest_is_open_where_one_is_not_a_number() -> None:
    nodes = "i = ArgMin <keepdims = 0> (x) v, p = TopK (x, k)"
    model = _model(f"g (float[3] x) => (int64 i, float[2] v, int64[2] p) <int64[1] k = {{2}}> {{ {nodes} }}")
    for last, bound in ((3.0, 0.0), (np.nan, np.inf)):
        found = Analysis(model).at({"x": np.array([2, 1, last], np.float32)})
        assert {float(np.max(found.bound[name])) for name in ("i", "v", "p")} == {bound}, last


def test_a_sum_of_more_terms_than_the_type_has_digits_for_may_be_anything() -> None:
    machine = Machine(grid_of(np.dtype(np.float16)))
    counts = np.array([10.0, 1 / machine.grid.unit, 10 / machine.grid.unit]) if machine.grid else np.ones(3)
    bound = machine.accumulated(np.ones(3), np.zeros(3), counts, np.full(3, 100.0))
    assert (bound > 0).all()
    assert np.isfinite(bound).tolist() == [True, False, False]
