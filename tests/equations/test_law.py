"""Each equation is its operator, both ways: written into a graph in its place, and found in what was written."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import onnx_ir
import pytest
from onnx.reference import ReferenceEvaluator

from conrepair.equations.expression import ALL, Term, names_in, parse
from conrepair.equations.matching import Match, matched
from conrepair.equations.operators import EQUATIONS, OTHERS
from conrepair.equations.writing import model_of, written
from conrepair.graph.layer_graph import Array
from conrepair.graph.operators import OPERATORS
from conrepair.onnx_passes.infer_shapes import infer_shapes
from conrepair.onnx_passes.initializers import constant_of

OPSET = 22
ELSEWHERE = {
    "DequantizeLinear": "of integers",
    "QuantizeLinear": "makes integers",
    "InstanceNormalization": "its scale and bias are arranged by those who write it",
    **dict.fromkeys(("Rsqrt", "Square", "Swish"), "no operator of the opset"),
}
GIVEN = {"alpha": 0.7, "beta": 0.4, "bias": 0.3, "epsilon": 1e-3, "gamma": 1.3, "lambd": 0.6, "axis": -1}
ALONG = {"axes": [1], "keepdims": 1}  # of reductions
LOOSE = dict.fromkeys(("Erf", "Gelu", "HardSwish"), 1e-6)  # a quotient of polynomials; constants of few digits
SPECIAL = [0.0, -0.0, 1e-30, -1e-30, 0.5, -0.5, 3.0, -3.0, 40.0, -40.0]  # and where the operators' pieces meet


def call_of(operator: str) -> str:
    """An operator's call, with those of its parameters and attributes that its equation reads."""
    known, names = OPERATORS[operator], names_in(parse(EQUATIONS[operator]))
    if operator == "Clip":
        return "Clip(x, min, max)"
    read = ["x", *(name for name in known.parameters if name in names)]
    said = [f"{name}={name}" for name in known.attributes if re.search(rf"\b{name}\b", EQUATIONS[operator])]
    said += ["**attributes"] if ALL in EQUATIONS[operator] else []
    return f"{operator}({', '.join([*read, *said])})"


LAWS = [(call_of(operator), text) for operator, text in EQUATIONS.items() if operator not in ELSEWHERE]


def operands(call: Term) -> dict[str, Array]:
    """Drawn ones, in float64."""
    draw = np.random.default_rng(3)
    rows = {name: draw.uniform(0.5, 2.0, 5) for name in names_in(call)}
    bounds = {"min": np.array(-0.75), "max": np.array(1.25)}
    x = np.concatenate([SPECIAL, draw.normal(0, 2, 20)]).reshape(6, 5)
    return {**rows, **{name: bounds[name] for name in bounds if name in rows}, "x": x}


def opened(model: onnx_ir.Model) -> tuple[onnx_ir.Model, onnx_ir.Node]:
    """A model with shapes, and its last node."""
    infer_shapes(model)
    return model, model.graph[-1]


def run(model: onnx_ir.Model, values: Mapping[str, Array]) -> Array:
    result: Array = ReferenceEvaluator(onnx_ir.to_proto(model)).run(None, dict(values))[0]
    return result


@pytest.mark.parametrize(("name", "text"), [*LAWS, *OTHERS], ids=lambda text: text.split("(")[0])
def test_an_equation_is_its_operator_both_ways(name: str, text: str) -> None:
    call, equation = parse(name), parse(text)
    assert isinstance(call, Term)
    values = operands(call)
    attributes = {"axis": -1} if call.operator == "LogSoftmax" else {}
    one = onnx_ir.from_proto(model_of(name, values, {**GIVEN, **ALONG, "attributes": attributes}, OPSET))
    right = run(one, values)

    model, root = opened(one)
    match = matched(call, root, OPSET)
    assert match is not None
    written(text, match, OPSET)
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(run(model, values), right, rtol=LOOSE.get(call.operator, 1e-9), atol=1e-9)

    model, root = opened(model)
    of_tensors = match.values.keys() >= set(names_in(equation))  # in products, names of numbers aren't told apart
    for real in {False, of_tensors}:
        again = matched(equation, root, OPSET, real=real)
        assert again is not None
        assert all(stands_for_the_same(again, name, match) for name in names_in(equation))
        assert set(again.nodes) == set(model.graph)


def stands_for_the_same(found: Match, name: str, match: Match) -> bool:
    """Whether a name stands for the same tensor again, or a constant of the same number."""
    if name in match.values:
        return found.values[name].name == match.values[name].name
    numbers = constant_of(found.values[name])
    return numbers is not None and bool(np.allclose(numbers, match.numbers[name]))
