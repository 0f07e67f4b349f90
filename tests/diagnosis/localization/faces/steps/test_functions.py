"""Elementwise pieces of ONNX graphs, written as exporters write them, against PyTorch and SciPy."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx_networks
import pytest
import scipy.special
import torch
from elementwise_pieces import graph_of
from torch.nn import functional

from conrepair.diagnosis.localization.faces.region import side
from conrepair.diagnosis.localization.faces.steps.functions import (
    GRID,
    KNOWN,
    compute,
    evaluate,
    is_elementwise,
    known_function,
    same_function,
)
from conrepair.diagnosis.localization.faces.steps.readings import fused
from conrepair.ground.graph.layer_graph import LayerGraph, Node, Parameter

Array = np.ndarray
WRITTEN: dict[str, list[str]] = {
    "ReLU": ["y = Relu (x)", "y = Max (x, zero)", "y = Clip (x, zero)",
        "n = Neg (x)\n c = Clip (n, , zero)\n y = Neg (c)",
        "g = Greater (x, zero)\n y = Where (g, x, zero)", "a = Abs (x)\n s = Add (x, a)\n y = Mul (s, half)"],
    "ReLU6": ["y = Clip (x, zero, six)", "r = Relu (x)\n y = Min (r, six)", "r = Min (x, six)\n y = Max (zero, r)"],
    "HardSwish": ["y = HardSwish (x)", "s = HardSigmoid <alpha = 0.16666667> (x)\n y = Mul (x, s)",
        "a = Add (x, three)\n c = Clip (a, zero, six)\n d = Div (c, six)\n y = Mul (x, d)",
        "a = Add (x, three)\n c = Clip (a, zero, six)\n m = Mul (x, c)\n y = Mul (m, sixth)"],
    "HardSigmoid (1/6)": ["y = HardSigmoid <alpha = 0.16666667> (x)",
        "a = Add (x, three)\n c = Clip (a, zero, six)\n y = Div (c, six)"],
    "HardSigmoid (0.2)": ["y = HardSigmoid (x)", "m = Mul (x, fifth)\n a = Add (m, half)\n y = Clip (a, zero, one)"],
    "SiLU": ["s = Sigmoid (x)\n y = Mul (x, s)", "n = Neg (x)\n e = Exp (n)\n d = Add (e, one)\n y = Div (x, d)"],
    "exact GELU": ["y = Gelu (x)",
        "d = Div (x, root2)\n e = Erf (d)\n a = Add (e, one)\n m = Mul (x, a)\n y = Mul (m, half)",
        "h = Mul (x, half)\n d = Mul (x, root_half)\n e = Erf (d)\n a = Add (one, e)\n y = Mul (h, a)"],
    "GELU by tanh": ['y = Gelu <approximate = "tanh"> (x)',
        "p = Pow (x, three)\n c = Mul (p, cubic)\n i = Add (x, c)\n s = Mul (i, slope)\n t = Tanh (s)\n"
        "a = Add (t, one)\n h = Mul (x, half)\n y = Mul (h, a)"],
    "Mish": ["y = Mish (x)", "s = Softplus (x)\n t = Tanh (s)\n y = Mul (x, t)"],
    "sigmoid": ["y = Sigmoid (x)", "n = Neg (x)\n e = Exp (n)\n a = Add (e, one)\n y = Reciprocal (a)",
        "h = Mul (x, half)\n t = Tanh (h)\n a = Add (t, one)\n y = Div (a, two)"],
    "tanh": ["y = Tanh (x)", "d = Mul (x, two)\n s = Sigmoid (d)\n m = Mul (s, two)\n y = Sub (m, one)"],
    "softplus": ["y = Softplus (x)", "a = Abs (x)\n n = Neg (a)\n e = Exp (n)\n p = Add (e, one)\n l = Log (p)\n"
        "r = Relu (x)\n y = Add (r, l)"],
    "SELU": ["y = Selu (x)", "e = Elu <alpha = 1.6732632423543772> (x)\n y = Mul (e, selu_gamma)"],
    "ELU": ["y = Elu (x)", "n = Min (x, zero)\n e = Exp (n)\n m = Sub (e, one)\n r = Relu (x)\n y = Add (m, r)"],
    "the identity": ["y = Identity (x)", "n = Neg (x)\n y = Neg (n)", "a = Add (x, one)\n y = Sub (a, one)"],
}  # fmt: skip

TORCH: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "ReLU": torch.relu,
    "ReLU6": functional.relu6,
    "HardSwish": functional.hardswish,
    "HardSigmoid (1/6)": functional.hardsigmoid,
    "SiLU": functional.silu,
    "exact GELU": functional.gelu,
    "GELU by tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "Mish": functional.mish,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "softplus": lambda x: functional.softplus(x, threshold=1e4),
    "SELU": functional.selu,
    "ELU": functional.elu,
    "the identity": lambda x: x,
    "HardSigmoid (0.2)": lambda x: torch.clamp(0.2 * x + 0.5, 0, 1),
}

OPERATOR: dict[str, tuple[str, dict[str, float | str | None]]] = {
    "ReLU": ("Clip", {"min": 0.0, "max": None}),
    "ReLU6": ("Clip", {"min": 0.0, "max": 6.0}),
    "HardSwish": ("HardSwish", {}),
    "HardSigmoid (1/6)": ("HardSigmoid", {"alpha": 1 / 6, "beta": 0.5}),
    "HardSigmoid (0.2)": ("HardSigmoid", {"alpha": 0.2, "beta": 0.5}),
    "SiLU": ("Swish", {"alpha": 1.0}),
    "exact GELU": ("Gelu", {"approximate": "none"}),
    "GELU by tanh": ("Gelu", {"approximate": "tanh"}),
    "Mish": ("Mish", {}),
    "sigmoid": ("Sigmoid", {}),
    "tanh": ("Tanh", {}),
    "softplus": ("Softplus", {}),
    "SELU": ("Selu", {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875}),
    "ELU": ("Elu", {"alpha": 1.0}),
    "the identity": ("Identity", {}),
}
USUAL = ["Softsign", "Erf", "Exp", "LeakyRelu", "Celu", "ThresholdedRelu", "Shrink"]

ONE_OPERATOR: dict[str, Callable[[Array], Array]] = {
    "Erf": scipy.special.erf, "Exp": np.exp, "Log": np.log, "Sqrt": np.sqrt, "Neg": np.negative, "Abs": np.abs,
    "Reciprocal": np.reciprocal, "Sign": np.sign, "Floor": np.floor, "Ceil": np.ceil, "Round": np.rint,
    "Sin": np.sin, "Cos": np.cos, "Softsign": lambda x: x / (1 + np.abs(x)),
    "LeakyRelu <alpha = 0.3>": lambda x: np.where(x > 0, x, 0.3 * x),
    "Elu <alpha = 0.5>": lambda x: functional.elu(torch.from_numpy(x), 0.5).numpy(),
    "Celu <alpha = 0.5>": lambda x: functional.celu(torch.from_numpy(x), 0.5).numpy(),
    "Shrink <lambd = 0.7>": lambda x: functional.hardshrink(torch.from_numpy(x), 0.7).numpy(),
    "Shrink <lambd = 0.7, bias = 0.7>": lambda x: functional.softshrink(torch.from_numpy(x), 0.7).numpy(),
    "ThresholdedRelu <alpha = 0.7>": lambda x: np.where(x > 0.7, x, 0),
}  # fmt: skip


def values_of(graph: LayerGraph) -> Array | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return evaluate(graph.nodes, "x", "y")


@pytest.mark.parametrize(
    ("name", "place"), [(name, place) for name in WRITTEN for place in range(len(WRITTEN[name]))]
)
def test_every_way_to_write_a_function_is_recognised(name: str, place: int, tmp_path: Path) -> None:
    graph = graph_of(WRITTEN[name][place], tmp_path)
    assert all(map(is_elementwise, graph.nodes))
    values = values_of(graph)
    assert values is not None
    expected = TORCH[name](torch.from_numpy(GRID)).numpy()
    np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-5)
    found = known_function(values)
    assert found == OPERATOR[name]
    steps = fused(side(graph, {"x"}, "y"))
    assert [step.op for step in steps] == ([] if name == "the identity" else [OPERATOR[name][0]])


def test_all_known_functions_are_tested() -> None:
    assert set(WRITTEN) == set(TORCH) == set(OPERATOR)
    names = {name for name, _ in KNOWN}
    assert names == {name for name, _ in OPERATOR.values()} - {"Clip"} | {call.partition(" ")[0] for call in USUAL}


@pytest.mark.parametrize("operator", USUAL)
def test_operators_with_usual_attributes_are_themselves(operator: str, tmp_path: Path) -> None:
    values = values_of(graph_of(f"y = {operator} (x)", tmp_path))
    assert values is not None
    found = known_function(values)
    assert found is not None
    assert found[0] == {"Celu": "Elu"}.get(operator.partition(" ")[0], operator.partition(" ")[0])


@pytest.mark.parametrize("operator", ONE_OPERATOR)
def test_operators_alone(operator: str, tmp_path: Path) -> None:
    values = values_of(graph_of(f"y = {operator} (x)", tmp_path))
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(values, ONE_OPERATOR[operator](GRID), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("lines", "attributes"),
    [
        ("a = Max (x, half)\n y = Min (a, three)", {"min": 0.5, "max": 3.0}),
        ("y = Min (x, three)", {"min": None, "max": 3.0}),
    ],
)
def test_clippings(lines: str, attributes: dict[str, float | None], tmp_path: Path) -> None:
    values = values_of(graph_of(lines, tmp_path))
    assert values is not None
    assert known_function(values) == ("Clip", attributes)


def test_rounding_to_steps(tmp_path: Path) -> None:
    lines = "m = Mul (x, two)\n r = Round (m)\n d = Div (r, two)\n l = Max (d, zero)\n y = Min (l, six)"
    values = values_of(graph_of(lines, tmp_path))
    assert values is not None
    assert known_function(values) == ("Rounding", {"step": 0.5})


@pytest.mark.parametrize(
    "lines",
    [
        "y = Sin (x)",
        "s = Sigmoid (x)\n y = Mul (s, three)",
        "a = Abs (x)\n y = Sqrt (a)",
        "y = LeakyRelu <alpha = 0.02> (x)",
        "s = Sigmoid (x)\n t = Tanh (x)\n y = Mul (s, t)",
    ],
)
def test_what_is_no_known_function(lines: str, tmp_path: Path) -> None:
    values = values_of(graph_of(lines, tmp_path))
    assert values is not None
    assert known_function(values) is None


def test_functions_that_are_alike_are_told_apart() -> None:
    """Exact GELU and the one by tanh differ by 5e-4 at most, the two hard sigmoids by 0.1."""
    values = {name: TORCH[name](torch.from_numpy(GRID)).numpy() for name in TORCH}
    for one in values:
        for two in values:
            assert same_function(values[one], values[two]) == (one == two)


def test_functions_of_two_tensors_are_not_of_one(tmp_path: Path) -> None:
    text = "small (float[2, 4] x, float[2, 4] z) => (float[2, 4] y) { s = Sigmoid (x)\n y = Mul (s, z) }"
    model = onnx_networks.model_of("onnx", onnx_networks.written(tmp_path / "two.onnx", text, {}))
    feeds = {"x": onnx_networks.drawn(2, 4), "z": onnx_networks.drawn(2, 4)}
    graph = onnx_networks.open_network(model, onnx_networks.specs(model, feeds)).graph
    assert evaluate(graph.nodes, "x", "y") is None
    assert [step.op for step in fused(side(graph, {"x", "z"}, "y"))] == ["Sigmoid", "Mul"]


def test_a_constant_of_several_numbers_is_no_function(tmp_path: Path) -> None:
    text = "small (float[2, 4] x) => (float[2, 4] y) { y = Mul (x, many) }"
    path = onnx_networks.written(tmp_path / "many.onnx", text, {"many": onnx_networks.drawn(4)})
    model = onnx_networks.model_of("onnx", path)
    graph = onnx_networks.open_network(model, onnx_networks.specs(model, {"x": onnx_networks.drawn(2, 4)})).graph
    assert not is_elementwise(graph.nodes[0])
    assert [step.op for step in fused(side(graph, {"x"}, "y"))] == ["Mul"]


def test_a_value_that_is_used_elsewhere_stays(tmp_path: Path) -> None:
    text = """small (float[2, 4] x) => (float[2, 4] y, float[2, 4] s) {
        s = Sigmoid (x)
        y = Mul (x, s)
    }"""
    model = onnx_networks.model_of("onnx", onnx_networks.written(tmp_path / "two.onnx", text, {}))
    graph = onnx_networks.open_network(model, onnx_networks.specs(model, {"x": onnx_networks.drawn(2, 4)})).graph
    assert [step.op for step in fused(side(graph, {"x"}, "y"))] == ["Sigmoid", "Mul"]


def test_pieces_of_a_composite_are_computed_as_those_on_the_grid(tmp_path: Path) -> None:
    graph = graph_of("s = Sub (two, x)\n g = Greater (s, zero)\n y = Where (g, s, half)", tmp_path)
    x = np.array([[-1.0, 1.5], [2.0, 3.0]])
    found = compute(graph.nodes, {"x": x}, graph)
    assert found is not None
    np.testing.assert_array_equal(found["y"], [[3.0, 0.5], [0.5, 0.5]])
    assert compute(graph.nodes, {}, graph) is None


def test_a_choice_whose_condition_follows_from_sizes_is_not_computed() -> None:
    fill = Parameter("fill", (), "float32", lambda: np.float32(-1e4))
    choice = Node("m", "m", "Where", "Where", ("", "x"), ("y",), {}, {"x": fill})
    assert compute([choice], {"x": GRID}) is None


def test_pieces_with_several_results_and_weights_are_computed(tmp_path: Path) -> None:
    lines = "a, b = Split <axis = 1, num_outputs = 2> (x)\n m = MatMul (a, w)\n c = Concat <axis = 1> (m, b)"
    text = f"small (float[2, 4] x) => (float[2, 4] y) {{ {lines}\n y = LeakyRelu <alpha = 0.5> (c) }}"
    weights = {"w": np.array([[0, 1], [-1, 0]], np.float32)}
    model = onnx_networks.model_of("onnx", onnx_networks.written(tmp_path / "apart.onnx", text, weights, opset=18))
    graph = onnx_networks.open_network(model, onnx_networks.specs(model, {"x": onnx_networks.drawn(2, 4)})).graph
    found = compute(graph.nodes, {"x": np.array([[1.0, 2.0, 3.0, -4.0], [5.0, 6.0, -7.0, 8.0]])}, graph)
    assert found is not None
    np.testing.assert_array_equal(found["y"], [[-1.0, 1.0, 3.0, -2.0], [-3.0, 5.0, -3.5, 8.0]])
