import numpy as np
import onnx
import onnx_ir
import pytest
from large_model import write_large_model
from onnx_cases import check_model, check_text, layers_of, random, text_model

from conrepair.ground.runtime.errors import ConversionError
from conrepair_onnx_keras.importer.node import rules
from conrepair_onnx_keras.importer.prepare import prepare


def prepared(model, **sizes):
    return prepare(onnx_ir.from_proto(model), rules(), sizes)


def operators(model):
    return [node.op_type for node in model.graph]


def test_nodes_that_nobody_uses_are_left_out():
    model = prepared(text_model("a = Exp (x) y = Neg (x)", {"x": random(2)}))
    assert operators(model) == ["Neg"]


def test_sizes_are_fixed_where_they_are_open():
    model = text_model("y = Neg (x)", {"x": random(2, 3)}, symbolic={"x": ["n", 3]})
    assert list(prepared(model, x=[5, 3]).graph.inputs[0].shape) == [5, 3]
    assert prepared(model, x=["n", 3]).graph.inputs[0].shape[1] == 3
    assert [str(size) for size in prepared(model, other=[1]).graph.inputs[0].shape] == ["n", "3"]


def test_a_size_that_contradicts_the_model_is_refused():
    model = text_model("y = Neg (x)", {"x": random(2, 3)}, symbolic={"x": ["n", 3]})
    with pytest.raises(ConversionError, match="input x"):
        prepared(model, x=[5, 4])
    with pytest.raises(ConversionError, match="doesn't fit input x"):
        prepared(model, x=[5])


def test_shapes_follow_from_the_sizes():
    model = text_model("a = Neg (x) y = Exp (a)", {"x": random(2, 3)}, symbolic={"x": ["n", 3]})
    graph = prepared(model, x=[5, 3]).graph
    assert list(graph.node(0).outputs[0].shape) == [5, 3]


def test_a_product_and_its_bias_are_joined():
    constants = {"w": random(3, 4), "b": random(4)}
    for text in ("m = MatMul (x, w) y = Add (m, b)", "m = MatMul (x, w) y = Add (b, m)"):
        model = prepared(text_model(text, {"x": random(2, 3)}, constants))
        assert operators(model) == ["MatMulBias"]
        assert model.graph.outputs[0].name == "y"


@pytest.mark.parametrize(
    ("text", "bias"),
    [
        ("m = MatMul (x, w) y = Add (m, b)", (2, 4)),
        ("m = MatMul (x, w) y = Add (m, b)", (1,)),
        ("m = MatMul (x, w) a = Add (m, b) y = Mul (a, m)", (4,)),
        ("m = MatMul (x, w) y = Sub (m, b)", (4,)),
        ("m = MatMul (w, x) y = Add (m, b)", (3,)),
    ],
)
def test_what_is_no_bias_stays(text, bias):
    feeds = {"x": random(4, 3) if "(w, x)" in text else random(2, 3)}
    model = prepared(text_model(text, feeds, {"w": random(3, 4), "b": random(*bias)}))
    assert "MatMul" in operators(model)


def test_functions_of_the_model_are_inlined():
    function = onnx.parser.parse_function(
        '<domain: "local", opset_import: ["" : 21]> '
        "Twice (a) => (b) { two = Constant <value_float = 2.0> () b = Mul (a, two) }"
    )
    model = text_model("y = Neg (x)", {"x": random(2, 3)})
    model.graph.node[0].op_type, model.graph.node[0].domain = "Twice", "local"
    model.functions.append(function)
    model.opset_import.append(onnx.helper.make_opsetid("local", 1))
    check_model(model, {"x": random(2, 3)})


def test_operators_without_a_rule_are_expanded():
    model = prepare(onnx_ir.from_proto(text_model("y = HardSwish (x)", {"x": random(2, 3)})), set(), {})
    assert "HardSwish" not in operators(model)


def test_operators_with_a_rule_are_not():
    network = check_text("y = HardSwish (x)", {"x": random(2, 3)})
    assert len(layers_of(network)) == 1


def test_older_forms_are_known():
    """The same model in the oldest and the newest form."""
    x = {"x": random(1, 3, 1)}
    check_text("a = Unsqueeze <axes = [0]> (x) y = Squeeze <axes = [1, 3]> (a)", x, opset=9)
    axes = {"one": np.array([0]), "two": np.array([1, 3])}
    check_text("a = Unsqueeze (x, one) y = Squeeze (a, two)", x, axes, opset=23)


def test_an_older_opset_is_refused():
    """Before 7, a slope for each channel was found without being told its axis."""
    model = text_model("y = PRelu (x, slope)", {"x": random(2, 3, 4, 3)}, {"slope": random(3)})
    model.opset_import[0].version = 6
    with pytest.raises(ConversionError, match=r"of opset 6; the importer knows 7 and newer"):
        prepared(model)


@pytest.mark.slow
def test_a_model_of_more_than_two_gibibytes(tmp_path):
    write_large_model(tmp_path / "net.onnx")
    model = onnx_ir.load(tmp_path / "net.onnx")
    known = {key: rule for key, rule in rules().items() if key != ("", "Gelu")}
    left = operators(prepare(model, known, {}))
    assert "Gelu" not in left
    assert "Erf" in left
