"""Each equation is its operator, both ways: written into a graph in its place, and found in what was written."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import onnx_ir
import pytest
from identities import IDENTITIES, Equation
from onnx.reference import ReferenceEvaluator

from conrepair.ground.equations.expression import ALL, Term, names_in, parse
from conrepair.ground.equations.matching import Match, matched
from conrepair.ground.equations.operators import EQUATIONS
from conrepair.ground.equations.writing import model_of, written
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.graph.operators import OPERATORS
from conrepair.ground.onnx_graphs.infer_shapes import infer_shapes
from conrepair.ground.onnx_graphs.initializers import constant_of
from conrepair.verdicts.truth.corrected import corrections

OPSET = 23
ELSEWHERE = {
    "DequantizeLinear": "of integers",
    "QuantizeLinear": "makes integers",
    "InstanceNormalization": "its scale and bias are arranged by those who write it",
    **dict.fromkeys(("Rsqrt", "Square", "Swish"), "no operator of the opset"),
}
GIVEN = {"alpha": 0.7, "beta": 0.4, "bias": 0.3, "epsilon": 1e-3, "gamma": 1.3, "lambd": 0.6, "axis": -1} | {
    "blocksize": 2, "g": 2, "hidden_size": 3, "num_groups": 2, "scale": 0.4,
}  # fmt: skip
AXES = {"InstanceNormalization": [2, 3], "MeanVarianceNormalization": [0, 2, 3]}
# A quotient of polynomials; constants of few digits; a factor in float32.
LOOSE = dict.fromkeys(("Erf", "Gelu", "HardSwish"), 1e-6) | {"Attention": 1e-5}
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


SHAPES = {
    "y": (6, 5), "w": (5, 4), "b": (4,), "q": (2, 4, 3, 6), "k": (2, 4, 5, 6), "v": (2, 4, 5, 6), "few": (2, 2, 5, 6),
    "fewer": (2, 2, 5, 6), "mask": (3, 5), "cos": (2, 3, 3), "sin": (2, 3, 3),
}  # fmt: skip
IMAGES = ("Conv", "Group", "Instance", "MeanVariance", "Pool", "Reshape", "Resize", "Space")
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def shapes(left: str, operator: str) -> dict[str, tuple[int, ...]]:
    """Of an equation's operands by name, other than x of rows and those of one number a column or channel."""
    found = dict(SHAPES)
    if any(word in left for word in IMAGES):
        found |= {"x": (2, 4, 6, 6), "w": (4, 4) if "Unsqueeze" in left else (4, 4, 3, 3)}
    if "transB" in left or "kj" in left:
        found["w"] = (4, 5)
    if operator in GATES:
        wide = 3 * GATES[operator]
        found |= {"s": (1, 2, 5), "w": (1, wide, 5), "r": (1, wide, 3), "b": (1, 2 * wide), "h": (1, 2, 3)}
        found["c"] = (1, 2, 3)
    return found


def operands(left: str, *, endless: bool = False) -> dict[str, Array]:
    """Drawn ones, in float64; x of rows with special values, where they may be endless or no numbers, too."""
    call, draw = parse(left), np.random.default_rng(3)
    assert isinstance(call, Term)
    known, names = shapes(left, call.operator), names_in(call)
    x = np.concatenate([SPECIAL, draw.normal(0, 2, 20)])
    x[10:13] = (np.inf, -np.inf, np.nan) if endless else x[10:13]
    said = {"x": x.reshape(6, 5), "min": np.array(-0.75), "max": np.array(1.25), "step": np.array(0.1)}
    whole = {"zero": np.array(3, np.int8), "byte": draw.integers(-128, 128, (6, 5)).astype(np.int8)}
    values = {**said, **whole, **{name: draw.normal(size=known[name]) for name in names if name in known}}
    width = 4 if {"x", "w"} & known.keys() & set(names) else 5
    values = {name: values[name] if name in values else draw.uniform(0.5, 2.0, width) for name in names}
    return dict(sorted(values.items(), key=lambda item: item[1].dtype.kind != "f"))  # the first one's type is meant


def opened(model: onnx_ir.Model) -> tuple[onnx_ir.Model, onnx_ir.Node]:
    """A model with shapes, and its last node."""
    infer_shapes(model)
    return model, model.graph[-1]


def run(model: onnx_ir.Model, values: Mapping[str, Array]) -> Array:
    evaluator = ReferenceEvaluator(onnx_ir.to_proto(model), new_ops=corrections())
    with np.errstate(all="ignore"):
        result: Array = evaluator.run(None, dict(values))[0]
    return result


@pytest.mark.parametrize(
    "equation",
    [*(Equation(*law) for law in LAWS), *IDENTITIES],
    ids=lambda one: f"{one.left} = {one.right}"[:90],
)
def test_an_equation_is_its_operator_both_ways(equation: Equation) -> None:
    call, text = parse(equation.left), parse(equation.right)
    assert isinstance(call, Term)
    values = operands(equation.left)
    attributes = {"axis": -1} if call.operator == "LogSoftmax" else {}
    axes = {"axes": AXES.get(call.operator, [1]), "keepdims": 1}
    one = onnx_ir.from_proto(model_of(equation.left, values, {**GIVEN, **axes, "attributes": attributes}, OPSET))
    right = run(one, values)
    endless = operands(equation.left, endless=equation.exact)
    special = run(one, endless)

    model, root = opened(one)
    match = matched(call, root, OPSET)
    assert match is not None
    written(equation.right, match, OPSET)
    found = run(model, values)
    assert found.dtype == right.dtype
    np.testing.assert_allclose(found, right, rtol=LOOSE.get(call.operator, 1e-9), atol=1e-9)
    if equation.exact:
        np.testing.assert_array_equal(run(model, endless), special)

    model, root = opened(model)
    # In products, names of numbers aren't told apart.
    of_tensors = match.values.keys() >= set(names_in(text)) and not equation.exact
    for real in {False, of_tensors}:
        again = matched(text, root, OPSET, real=real)
        assert again is not None
        assert all(stands_for_the_same(again, name, match) for name in names_in(text))
        assert set(again.nodes) == set(model.graph)


def test_there_are_as_many_as_were_asked_for() -> None:
    every = {(name, text) for name, text in EQUATIONS.items()} | {(one.left, one.right) for one in IDENTITIES}
    assert len(every) >= 90
    assert len({left.partition("(")[0] for left, _ in every}) >= 50


def stands_for_the_same(found: Match, name: str, match: Match) -> bool:
    """Whether a name stands for the same tensor again, or a constant of the same number."""
    if name in match.values:
        return found.values[name].name == match.values[name].name
    numbers = constant_of(found.values[name])
    return numbers is not None and bool(np.allclose(numbers, match.numbers[name]))
