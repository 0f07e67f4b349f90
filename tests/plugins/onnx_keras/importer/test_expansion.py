"""Operators without a rule are replaced by the function that ONNX's schema defines them by."""

import numpy as np
import onnx
import onnx_ir
import pytest
from onnx.reference import ReferenceEvaluator
from onnx_cases import check, imported, node_model, random, run_keras, text_model, together

from conrepair.ground.runtime.errors import ConversionError
from conrepair_onnx_keras.importer.node import rules
from conrepair_onnx_keras.importer.prepare import prepare

SCORES = random(3, 5, 2, 4)
LABELS = np.random.default_rng(2).integers(0, 5, (3, 2, 4))
WEIGHTS = random(5, low=0.1, high=0.9)
LOSSES = ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"]


@together("operator", LOSSES)
@together("reduction", ["none", "mean", "sum"])
def test_losses(operator, reduction):
    feeds = {"x": SCORES, "t": LABELS}
    check(operator, feeds, reduction=reduction)
    check(operator, feeds, {"w": WEIGHTS}, reduction=reduction)
    check(operator, feeds, {"w": WEIGHTS}, reduction=reduction, ignore_index=2)
    check(operator, feeds, reduction=reduction, ignore_index=3)


@together("operator", LOSSES)
def test_losses_of_open_batch(operator):
    feeds, symbolic = {"x": SCORES[..., 0, 0], "t": LABELS[..., 0, 0]}, {"x": ["n", 5], "t": ["n"]}
    check(operator, feeds, reduction="none", symbolic=symbolic)


def test_loss_with_log_probabilities():
    check("SoftmaxCrossEntropyLoss", {"x": SCORES, "t": LABELS}, outputs=2)


@together("attributes", [{}, {"axes": [2, 3]}, {"axes": [0, 1]}])
def test_attributes_left_to_the_schema(attributes):
    check("MeanVarianceNormalization", {"x": SCORES}, opset=13, **attributes)


@pytest.mark.parametrize("axes", [None, [0, 2], [-1, 1]], ids=str)
@pytest.mark.parametrize("sizes", [(4, 9), (2, 3), (5, 1)])
def test_crop_or_pad(sizes, axes):
    sizes, attributes = ((6, *sizes), {}) if axes is None else (sizes, {"axes": axes})
    model = node_model("CenterCropPad", {"x": random(5, 3, 4)}, {"s": np.array(sizes)}, opset=18, **attributes)
    feeds = {"x": random(5, 3, 4)}
    expected = ReferenceEvaluator(model).run(None, feeds)[0]
    np.testing.assert_array_equal(run_keras(imported(model), feeds)[0], expected)


@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotary_embedding(interleaved):
    feeds = {"x": random(2, 3, 4, 8), "c": random(2, 4, 4), "s": random(2, 4, 4, seed=2)}
    model = node_model("RotaryEmbedding", feeds, opset=23, interleaved=interleaved)
    expected = ReferenceEvaluator(model).run(None, feeds)[0]
    np.testing.assert_allclose(run_keras(imported(model), feeds)[0], expected, rtol=1e-5, atol=1e-6)


@together("causal", [0, 1])
def test_attention(causal):
    feeds = {name: random(2, 3, 4, 8, seed=place) for place, name in enumerate("qkv")}
    check("Attention", feeds, opset=23, is_causal=causal)


def test_inputs_left_out_in_the_middle():
    feeds = {"q": random(2, 3, 4, 8), "k": random(2, 3, 6, 8), "v": random(2, 3, 6, 8, seed=2)}
    feeds |= {"pk": random(2, 3, 5, 8, seed=3), "pv": random(2, 3, 5, 8, seed=4)}
    check("Attention", feeds, inputs=["q", "k", "v", "", "pk", "pv"], opset=23, outputs=3)


def test_functions_of_functions_are_expanded():
    model = node_model("SoftmaxCrossEntropyLoss", {"x": SCORES, "t": LABELS})
    left = {node.op_type for node in prepare(onnx_ir.from_proto(model), rules(), {}).graph}
    assert not left & set(LOSSES)


def test_functions_of_the_model():
    text = """
        <ir_version: 10, opset_import: ["" : 17, "mine" : 1]>
        agraph (float[2, 3] x) => (float[2, 3] y) { y = mine.twice <by = 3.0> (x) }
        <domain: "mine", opset_import: ["" : 17, "mine" : 1]>
        twice <by> (a) => (b) {
            f = Constant <value_float: float = @by> ()
            c = mine.half (a)
            b = Mul (c, f)
        }
        <domain: "mine", opset_import: ["" : 17]>
        half (a) => (b) {
            h = Constant <value = float {0.5}> ()
            b = Mul (a, h)
        }
    """
    x = random(2, 3)
    got = run_keras(imported(onnx.parser.parse_model(text)), {"x": x})[0]
    np.testing.assert_allclose(got, x * 1.5, rtol=1e-6)


def test_a_sequence_map_that_reads_from_outside():
    text = """
        <ir_version: 10, opset_import: ["" : 17]>
        agraph (float[2, 3] x) => (float[4, 3] y) {
            a = Neg (x)
            k = Abs (a)
            s = SequenceConstruct (x, a)
            t = SequenceMap (s) <body = g (float[2, 3] m) => (float[2, 3] r) { w = Mul (m, k) r = Add (w, a) }>
            y = ConcatFromSequence <axis = 0> (t)
        }
    """
    x = random(2, 3)
    got = run_keras(imported(onnx.parser.parse_model(text)), {"x": x})[0]
    np.testing.assert_allclose(got, np.concatenate([x * abs(x) - x, -x * abs(x) - x]), rtol=1e-6)


def test_an_output_that_is_left_out_in_the_middle():
    """The mean, which the body then doesn't compute."""
    feeds, text = {"x": random(3, 6)}, "y, , i = LayerNormalization (x, s)"
    model = text_model(text, feeds, {"s": random(6, low=0.5, high=1)}, opset=17)
    known = {key: rule for key, rule in rules().items() if key != ("", "LayerNormalization")}
    assert "LayerNormalization" not in {node.op_type for node in prepare(onnx_ir.from_proto(model), known, {}).graph}


def test_the_long_name_of_the_default_domain():
    text = """
        <ir_version: 10, opset_import: ["ai.onnx" : 20]>
        agraph (float[2, 3] x) => (float[2, 3] y) { m = MeanVarianceNormalization <axes = [1]> (x) y = Gelu (m) }
    """
    model, x = onnx.parser.parse_model(text), random(2, 3)
    expected = ReferenceEvaluator(onnx.parser.parse_model(text.replace("ai.onnx", ""))).run(None, {"x": x})[0]
    np.testing.assert_allclose(run_keras(imported(model), {"x": x})[0], expected, rtol=1e-5, atol=1e-6)


def test_an_operator_that_onnx_does_not_have_beside_one_that_is_expanded():
    nodes = [
        onnx.helper.make_node("ImageScaler", ["x"], ["s"], scale=2.0),
        onnx.helper.make_node("MeanVarianceNormalization", ["s"], ["y"]),
    ]
    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 3, 4, 4]) for name in "xy"]
    graph = onnx.helper.make_graph(nodes, "g", values[:1], values[1:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 9)], ir_version=8)
    with pytest.raises(ConversionError, match="ImageScaler"):
        imported(model)
