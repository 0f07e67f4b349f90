"""What is valid, and who says so."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from conrepair.verdicts.truth.referees import CannotJudgeError, OnnxReference
from conrepair_lab.cases.case import Array, Case
from conrepair_lab.cases.draft import opened
from conrepair_lab.cases.validity import FIRST, checked, ordinary

X = np.array([[-1.0, 2.0, 3.0]], np.float32)


def case(body: str, outputs: str, x: Array = X) -> Case:
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> g (float[1, 3] x) => ({outputs}) {{ {body} }}'
    )
    return Case.of(model, {"x": x})


def test_outputs_are_declared_as_they_are() -> None:
    found = checked(case("y = NonZero (x)", "int64[2, n] y"), FIRST)
    assert found is not None
    assert [size.dim_value for size in found.model.graph.output[0].type.tensor_type.shape.dim] == [2, 3]


@pytest.mark.parametrize(
    ("body", "outputs"),
    [
        ("y = Log (x)", "float[1, 3] y"),
        (
            "c = Constant <value_ints = [9]> () z = Constant <value_ints = [10]> () y = Slice (x, c, z)",
            "float[0, 3] y",
        ),
        ("y = Relu (w)", "float[1, 3] y"),
        ("y = Relu <none = 1> (x)", "float[1, 3] y"),
        ("y = MatMul (x, x)", "float[1, 3] y"),
    ],
)
def test_what_is_not_valid(body: str, outputs: str) -> None:
    assert checked(case(body, outputs), FIRST) is None


def test_what_may_be_without_a_number() -> None:
    assert checked(case("y = Log (x)", "float[1, 3] y"), FIRST, frozenset({"y"})) is not None
    assert checked(case("y = Neg (x)", "float[1, 3] y", X * np.inf), FIRST, frozenset({"y"})) is None
    assert not ordinary(np.array([np.inf]))
    assert ordinary(np.array(["text"]))


def test_a_draft_has_all_tensors_in_their_own_type() -> None:
    draft = opened(case("a = Exp (x) h = Cast <to = 10> (a) c = Shape (h) y = Neg (h)", "float16[1, 3] y"), FIRST)
    kinds = {name: draft.values[name].dtype for name in "ahcy"}
    assert kinds == {"a": np.float32, "h": np.float16, "c": np.int64, "y": np.float16}
    np.testing.assert_allclose(draft.values["a"], np.exp(X))
    assert draft.fixed == frozenset()


def test_where_nobody_can_run_it() -> None:
    with pytest.raises(CannotJudgeError, match=r"ONNX's reference.*ONNX Runtime"):
        opened(case("y = MatMul (x, x)", "float[1, 3] y"), FIRST)


def test_recurrent_layers_that_the_reference_refuses() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]> g (float[2, 1, 3] x) => (float[2, 1, 1, 2] y)
        <float[1, 2, 3] w = {1, 2, 3, 4, 5, 6}, float[1, 2, 2] r = {1, 0, 0, 1}>
        { y = RNN <hidden_size = 2, activations = ["Relu"]> (x, w, r) }"""
    )
    of_it = Case.of(model, {"x": np.ones((2, 1, 3), np.float32)})
    with pytest.raises(CannotJudgeError):
        opened(of_it, OnnxReference())
    assert opened(of_it, FIRST).values["y"].ravel().tolist() == [6, 15, 12, 30]
