"""Faults of ONNX's own tools and of ONNX Runtime. A failing test: the tool was fixed;
correct docs/measured/converter-faults.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import faulty_models as faulty
import numpy as np
import onnx
import onnx.inliner
import onnx.reference
import onnx.version_converter
import onnx_ir
import pytest
from faulty_models import Case
from onnx import helper
from onnx_ir.passes import common

from conrepair.formats.converters.all_converters import converter
from conrepair.formats.models.model import Model

NORMALIZED = Case("y = MeanVarianceNormalization(x)", {"x": faulty.normal(2, 3, 4, 4)}, opset=17)


def test_optimizations_of_onnx_runtime_take_padding_for_no_element() -> None:
    """Zeros around negative numbers are the largest; MaxPool's own padding never is."""
    case = faulty.OPTIMIZED_WRONG
    (right,), (wrong,) = case.expected(), faulty.run(case.model(), case.feeds, optimized=True)
    assert right.max() == 0
    assert wrong.max() < -1
    assert faulty.difference(right, wrong) > case.least


@pytest.mark.parametrize("case", faulty.REFERENCE_WRONG.values(), ids=faulty.REFERENCE_WRONG.keys())
def test_reference_evaluator(case: Case) -> None:
    (got,) = onnx.reference.ReferenceEvaluator(case.model()).run(None, dict(case.feeds))
    assert faulty.is_wrong(case.expected()[0], got, case.least)


def test_onnx_runtime_is_right_where_the_reference_evaluator_is_not() -> None:
    """By formula, for the two whose answer isn't a matter of definition."""
    case = faulty.REFERENCE_WRONG["BatchNormalization of opset 9"]
    scale, bias, mean, variance = (case.constants[name].reshape(1, 2, 1, 1) for name in "sbmv")
    by_hand = (case.feeds["x"] - mean) / np.sqrt(variance + 1e-5) * scale + bias
    assert faulty.difference(by_hand, case.expected()[0]) < 1e-5
    case = faulty.REFERENCE_WRONG["LpNormalization, p = 1"]
    by_hand = case.feeds["x"] / np.abs(case.feeds["x"]).sum(1, keepdims=True)
    assert faulty.difference(by_hand, case.expected()[0]) < 1e-5


def test_onnx_runtime_loses_digits_in_group_normalization() -> None:
    """Of values around 100; by formula in float64, and by the same formula in float32 for what there's to lose."""
    x = np.random.default_rng(0).normal(100, 1, (2, 8, 16, 16)).astype(np.float32)
    weights = {"s": np.ones(8, np.float32), "b": np.zeros(8, np.float32)}
    (answer,) = Case("y = GroupNormalization <num_groups = 2> (x, s, b)", {"x": x}, weights, opset=21).expected()

    def normalized(values: faulty.Array) -> faulty.Array:
        groups = values.reshape(2, 2, -1)
        centred = groups - groups.mean(-1, keepdims=True)
        return (centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)).reshape(x.shape)

    exact = normalized(x.astype(np.float64))
    assert np.abs(normalized(x) - exact).max() < 1e-4
    assert np.abs(answer - exact).max() > 5e-4


@pytest.mark.parametrize("case", faulty.VERSION_CONVERTER_WRONG.values(), ids=faulty.VERSION_CONVERTER_WRONG.keys())
def test_version_converter_upwards(case: Case) -> None:
    raised = onnx.version_converter.convert_version(case.model(), 13)
    assert faulty.difference(case.expected()[0], faulty.run(raised, case.feeds)[0]) > case.least


def test_version_converter_has_no_way_down() -> None:
    with pytest.raises(RuntimeError, match="No Adapter From Version"):
        onnx.version_converter.convert_version(Case("y = Add(x, x)", {"x": faulty.real(1)}, opset=14).model(), 13)


def test_inliner_forgets_defaults_of_schemas() -> None:
    inlined = onnx.inliner.inline_selected_functions(
        NORMALIZED.model(), [("", "MeanVarianceNormalization")], inline_schema_functions=True
    )
    assert faulty.difference(NORMALIZED.expected()[0], faulty.run(inlined, NORMALIZED.feeds)[0]) > 0.1


def test_inliner_forgets_defaults_of_functions() -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 9, opset_import: ["": 18, "local": 1]>
        agraph (float[2] x) => (float[2] y) { y = local.leaky(x) }
        <domain: "local", opset_import: ["": 18]>
        leaky <alpha: float = 0.3> (a) => (b) { b = LeakyRelu<alpha: float = @alpha>(a) }
    """)
    x = faulty.real(-1, 1)
    inlined = onnx.inliner.inline_local_functions(model)
    np.testing.assert_allclose(faulty.run(model, [x])[0], [-0.3, 1])
    np.testing.assert_allclose(faulty.run(inlined, [x])[0], [-0.01, 1])


def test_identity_elimination_makes_two_outputs_of_a_body_one() -> None:
    """ONNX's checker takes the result, and ONNX Runtime computes other sums."""
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    pair = faulty.value_info("", x[0])
    infos = {name: helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in ("s", "e", "t", "o")}
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "e"], ["t"]), helper.make_node("Identity", ["t"], ["o"])],
        "body", [infos["s"], infos["e"]], [infos["t"], infos["o"]],
    )  # fmt: skip
    graph = helper.make_graph(
        [helper.make_node("Scan", ["start", "x"], ["last", "y"], body=body, num_scan_inputs=1)],
        "sums",
        [faulty.value_info("start", x[0]), faulty.value_info("x", x)],
        [helper.make_value_info("last", pair.type), faulty.value_info("y", x)],
    )
    model = onnx_ir.from_proto(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
    common.IdentityEliminationPass()(model)
    outputs = onnx_ir.to_proto(model).graph.node[0].attribute[0].g.output
    assert [item.name for item in outputs] == ["o", "o"]


def test_shape_inference_pass_takes_sequences_for_tensors() -> None:
    case = Case("s = SequenceConstruct(x, x) y = ConcatFromSequence<axis = 0>(s)", {"x": faulty.normal(2, 3)})
    model = onnx_ir.from_proto(case.model())
    sequence = model.graph[0].outputs[0]
    assert isinstance(sequence.type, onnx_ir.SequenceType)
    sequence.type = None
    common.ShapeInferencePass()(model)
    assert isinstance(sequence.type, onnx_ir.TensorType)


def test_attention_of_onnx_runtime_has_no_infinity() -> None:
    """Scores behind the mask are the least float; ONNX wants -inf."""
    query, key = faulty.normal(1, 1, 2, 4), faulty.normal(1, 1, 3, 4)
    mask = np.array([[True, False, True], [True, True, False]])
    case = Case(
        "y, a, b, scores = Attention<qk_matmul_output_mode = 2>(q, k, k, m)",
        {"q": query, "k": key, "m": mask}, outputs=("scores",), opset=23,
    )  # fmt: skip
    model = case.model()
    model.graph.node[0].output[1:3] = ["", ""]
    (scores,) = faulty.run(model, case.feeds)
    (right,) = onnx.reference.ReferenceEvaluator(model).run(None, dict(case.feeds))
    assert np.isneginf(right[0, 0][~mask]).all()
    assert not np.isneginf(scores[0, 0][~mask]).any()
    np.testing.assert_allclose(scores[0, 0][mask], right[0, 0][mask], rtol=1e-5)


def test_dynamic_quantizer_keeps_the_shape_of_what_it_transposes(tmp_path: Path) -> None:
    from onnx.onnx_cpp2py_export.shape_inference import InferenceError
    from onnxruntime.quantization import quantize_dynamic

    weight = faulty.normal(3, 4)
    case = Case("y = Gemm<transB = 1>(x, w)", {"x": faulty.normal(2, 4)}, {"w": weight})
    quantize_dynamic(case.model(), tmp_path / "right.onnx")
    model = case.model()
    model.graph.value_info.append(faulty.value_info("w", weight))
    with pytest.raises(InferenceError, match="Inferred shape and existing shape differ"):
        quantize_dynamic(model, tmp_path / "quantized.onnx")


SHARED = Case(
    "a = Gemm<transB = 1>(x, w) b = Identity(w) y = Gemm<transB = 1>(a, b)",
    {"x": faulty.normal(2, 4)},
    # Processors without VNNI add products of eight bits in pairs of sixteen, which two large ones would saturate.
    {"w": faulty.normal(4, 4) * np.array([1, 0.01, 1, 0.01], np.float32)},
    least=2.0,
)


def test_dynamic_quantizer_transposes_a_weight_for_all_that_read_it(tmp_path: Path) -> None:
    """Exporters write equal weights once: the layers of PyTorch's TransformerEncoder begin alike."""
    from onnxruntime.quantization import quantize_dynamic

    onnx.save(SHARED.model(), tmp_path / "right.onnx")
    quantize_dynamic(SHARED.model(), tmp_path / "wrong.onnx")
    (right,), (wrong,) = (
        faulty.run(onnx.load(tmp_path / name), SHARED.feeds) for name in ("right.onnx", "wrong.onnx")
    )
    assert faulty.difference(right, wrong) > SHARED.least
    source = Model("onnx", str(tmp_path / "right.onnx"), "")
    step = converter("onnx-quantize-dynamic")
    (tmp_path / "ours").mkdir()
    path = tmp_path / "ours" / step.convert(source, tmp_path / "ours", step.complete({}))
    (ours,) = faulty.run(onnx.load(path), SHARED.feeds)
    assert faulty.difference(right, ours) < SHARED.least


class _Samples:
    """Eight samples for ONNX Runtime's quantizer, in one go or by strides; the sixth is four times as large."""

    def __init__(self) -> None:
        generator = np.random.default_rng(1)
        sizes = [4 if index == 5 else 1 for index in range(len(self))]
        self._feeds = [{"x": (generator.normal(size=(1, 64)) * size).astype(np.float32)} for size in sizes]
        self._left: Iterator[Any] = iter(self._feeds)

    def __len__(self) -> int:
        return 8

    def set_range(self, start_index: int, end_index: int) -> None:
        self._left = iter(self._feeds[start_index:end_index])

    def get_next(self) -> Any:
        return next(self._left, None)


def test_calibration_by_strides_gives_other_ranges(tmp_path: Path) -> None:
    """Of the same samples, by `entropy`, two at a time."""
    from onnxruntime.quantization import CalibrationMethod, quantize_static

    case = Case("y = MatMul(x, w)", {"x": faulty.normal(1, 64)}, {"w": np.eye(64, dtype=np.float32)})
    scales = []
    for options in ({}, {"CalibStridedMinMax": 8}, {"CalibStridedMinMax": 2}):
        path = tmp_path / "quantized.onnx"
        quantize_static(
            case.model(), path, _Samples(), calibrate_method=CalibrationMethod.Entropy, extra_options=options
        )
        found = {item.name: item for item in onnx.load(path).graph.initializer}
        scales.append(float(onnx.numpy_helper.to_array(found["x_scale"])))
    plain, all_at_once, two_at_a_time = scales
    assert all_at_once == pytest.approx(plain)
    assert two_at_a_time < 0.8 * plain


def test_float16_tool_writes_nodes_out_of_order() -> None:
    from onnxruntime.transformers.float16 import convert_float_to_float16

    case = Case("a = Relu(x) y = Mul(a, x)", {"x": faulty.normal(2, 4)})
    converted = convert_float_to_float16(case.model(), keep_io_types=True)
    with pytest.raises(onnx.checker.ValidationError, match="topologically sorted"):
        onnx.checker.check_model(converted)
