"""Wrong scales in quantized files are repaired one tensor at a time; real numbers are the last resort."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx_networks import drawn, written
from quantized_networks import converted, source, subject
from small_models import model_of

import conrepair
from benchmarks.faults.steps import insert
from conrepair.diagnosis.localization.models import localize_models
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.repairs.edits import ComputeInFloat, Requantize, SetRange
from conrepair.diagnosis.repairs.options import RepairOptions
from conrepair.diagnosis.repairs.outcomes import PATCH
from conrepair.diagnosis.repairs.patch import read_patch
from conrepair.diagnosis.repairs.repair import apply_patch, repair_models
from conrepair.diagnosis.repairs.result import RepairResult
from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.models.model import Model
from conrepair.formats.tflite.edit.file import EditedTfliteFile
from conrepair.ground.runtime.files.whole import sha256_of
from conrepair.verdicts.evaluate.verdict import Verdict

_OPTIONS = RepairOptions(Options(samples=8, batch_size=4, quantized=True), seconds=60, unseen=24)
_RIGHT = 0.03  # relative L2 of the outputs of a right file of eight bits
_SUM = "small_1/Relu_1;small_1/Add"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Model]:
    folder = tmp_path_factory.mktemp("quantized")
    right = source(folder)
    keras = converted(right, "onnx-keras", folder / "keras")
    return {
        "right": right,
        "qdq": converted(right, "onnx-quantize-static", folder / "qdq"),
        "integers": _of_integers(right, folder / "integers"),
        "tflite": converted(keras, "keras-tflite", folder / "tflite", quantize="int8"),
        "weights": converted(keras, "keras-tflite", folder / "weights", quantize="dynamic"),
    }


def _of_integers(right: Model, folder: Path) -> Model:
    """With QLinearConv and the like: what ONNX Runtime's quantizer writes in its other form."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            rows = np.random.default_rng(3).normal(size=(8, 1, 3, 12, 12)).astype(np.float32)
            self._rows = iter([{"x": row} for row in rows])

        def get_next(self) -> Any:
            return next(self._rows, None)

    folder.mkdir()
    path = folder / "model.onnx"
    kinds = {"activation_type": QuantType.QUInt8, "weight_type": QuantType.QInt8}
    quantize_static(right.path, path, Reader(), quant_format=QuantFormat.QOperator, per_channel=True, **kinds)
    return model_of("onnx", path)


def repaired(made: dict[str, Model], wrong: Model, folder: Path) -> tuple[RepairResult, Any]:
    """A repair that fixes, and its edits, which make the same file again as they're read."""
    result = repair_models(subject(made["right"], folder), subject(wrong, folder), folder / "out", _OPTIONS)
    assert result.before.faults
    assert result.mended, result.after.faults
    assert result.unseen_after.error < _RIGHT
    patch, target = read_patch(folder / "out" / PATCH)
    again = apply_patch(patch, target, wrong, folder / "again")
    assert again is not None
    assert result.model is not None
    assert sha256_of(Path(again.path)) == sha256_of(Path(result.model.path))
    return result, patch.edits


def assert_stored_as_before(result: RepairResult) -> None:
    storage = result.storage
    assert storage is not None
    assert storage.quantized == storage.quantized_before > 0
    # A graph of this size is as large as its weights; what the file says of shapes counts.
    assert abs(storage.bytes - storage.bytes_before) < max(0.05 * storage.bytes_before, 1024)


def edited(model: Model, change: Callable[[Any], None], folder: Path) -> Model:
    editor = open_editor(model)
    change(editor)
    return editor.save(folder, "wrong")


def _layer(proto: onnx.ModelProto, name: str) -> onnx.NodeProto:
    """The node of a name, or that gives a tensor of that name."""
    return next(node for node in proto.graph.node if name in (node.name, *node.output))


def _dequantizing(proto: onnx.ModelProto, tensor: str) -> dict[str, onnx.TensorProto]:
    """The constants of the DequantizeLinear that gives a tensor."""
    node = next(node for node in proto.graph.node if tensor in node.output)
    held = {item.name: item for item in proto.graph.initializer}
    return {role: held[name] for role, name in zip(("values", "scale", "zero"), node.input, strict=True)}


def _conv(proto: onnx.ModelProto) -> onnx.NodeProto:
    """The second convolution, which has the weights w1."""
    return next(node for node in proto.graph.node if node.op_type == "Conv" and node.input[1].startswith("w1"))


def _times(tensor: onnx.TensorProto, factor: float) -> None:
    array = numpy_helper.to_array(tensor)
    scaled = array * factor
    whole = np.rint(scaled) if array.dtype.kind in "iu" else scaled
    tensor.CopyFrom(numpy_helper.from_array(whole.astype(array.dtype), tensor.name))


@pytest.mark.parametrize("coarse", [False, True], ids=["wrong", "coarse"])
def test_weights_get_scales_of_their_own(made: dict[str, Model], tmp_path: Path, coarse: bool) -> None:
    proto = onnx.load(made["qdq"].path)
    held = _dequantizing(proto, _conv(proto).input[1])
    _times(held["scale"], 16 if coarse else 3)
    if coarse:
        _times(held["values"], 1 / 16)
    onnx.save(proto, tmp_path / "wrong.onnx")
    result, edits = repaired(made, model_of("onnx", tmp_path / "wrong.onnx"), tmp_path)
    assert [type(edit) for edit in edits] == [Requantize]
    assert_stored_as_before(result)
    right, fixed = (onnx.load(path) for path in (made["qdq"].path, str(tmp_path / "out" / "repaired.onnx")))
    scales = [numpy_helper.to_array(_dequantizing(item, _conv(item).input[1])["scale"]) for item in (right, fixed)]
    np.testing.assert_allclose(*scales, rtol=0.02)


@pytest.mark.parametrize(
    ("form", "tensor", "high"),
    [
        ("qdq", "f_DequantizeLinear_Output", 1.0),
        ("qdq", "f_DequantizeLinear_Output", 1000.0),
        ("integers", "e_quantized", 1.0),
        ("tflite", _SUM, 1.0),
    ],
)
def test_an_activation_gets_the_range_of_the_source(
    made: dict[str, Model], tmp_path: Path, form: str, tensor: str, high: float
) -> None:
    wrong = edited(made[form], lambda editor: editor.set_range(tensor, 0.0, high), tmp_path)
    result, edits = repaired(made, wrong, tmp_path)
    (edit,) = edits
    assert (type(edit), edit.low) == (SetRange, 0.0)
    # One pair of operators with one scale, and what they read.
    assert edit.tensor in {
        tensor,
        tensor.replace("Dequantize", "Quantize"),
        tensor.removesuffix("_DequantizeLinear_Output"),
    }
    assert_stored_as_before(result)


def test_weights_of_a_tflite_file_get_scales_and_the_bias_its_steps(made: dict[str, Model], tmp_path: Path) -> None:
    file = EditedTfliteFile(Path(made["tflite"].path))
    layer = next(item for item in file.operators if file.names[item.outputs[0]].startswith("small_1/d_1/"))
    tensor = file.tensors[layer.inputs[1]]
    tensor.quantization.scale = np.asarray(tensor.quantization.scale, np.float32) * 3
    file.save(tmp_path / "wrong.tflite")
    result, edits = repaired(made, model_of("tflite", tmp_path / "wrong.tflite"), tmp_path)
    assert [type(edit) for edit in edits] == [Requantize]
    assert_stored_as_before(result)
    fixed = EditedTfliteFile(tmp_path / "out" / "repaired.tflite")
    layer = next(item for item in fixed.operators if fixed.names[item.outputs[0]].startswith("small_1/d_1/"))
    data, weight, bias = (fixed.scales(place) for place in layer.inputs)
    assert data is not None
    assert weight is not None
    np.testing.assert_allclose(bias, data * weight, rtol=1e-5)


def test_a_scale_that_others_share_changes_with_them(made: dict[str, Model], tmp_path: Path) -> None:
    """TFLite's poolings copy integers: a scale of what they give is one of what they read."""
    wrong = edited(made["tflite"], lambda editor: editor.set_range("small_1/MaxPool2d", 0.0, 0.8), tmp_path)
    file = EditedTfliteFile(Path(wrong.path))
    pooling = next(item for item in file.operators if file.kind(item) == "MAX_POOL_2D")
    assert file.scales(pooling.inputs[0]) == file.scales(pooling.outputs[0]) == np.float32(0.8 / 255)
    _, edits = repaired(made, wrong, tmp_path)
    assert [type(edit) for edit in edits] == [SetRange]


def test_a_result_in_few_bits_is_found_where_only_weights_were_meant_to_be(
    made: dict[str, Model], tmp_path: Path
) -> None:
    scale = [np.array(0.1, np.float32), np.array(0, np.int8)]
    steps = [("QuantizeLinear", {}, scale), ("DequantizeLinear", {}, scale)]

    def change(editor: Any) -> None:
        tensor = next(node.outputs[0] for node in editor.graph.nodes if node.layer.startswith("small_1/Relu_2"))
        insert(editor, tensor, steps, "stored")

    result, edits = repaired(made, edited(made["weights"], change, tmp_path), tmp_path)
    assert all("stored" in edit.node for edit in edits)
    assert result.unseen_after.error < 0.01


@pytest.mark.parametrize("layer", ["g_quantized", "k_quantized"], ids=["channels", "matrix"])
@pytest.mark.parametrize("coarse", [False, True], ids=["wrong", "coarse"])
def test_weights_of_integer_operators_get_scales_of_their_own(
    made: dict[str, Model], tmp_path: Path, layer: str, coarse: bool
) -> None:
    """The bias is stored in steps of them, so that it was as wrong as they were."""
    proto = onnx.load(made["integers"].path)
    held = {item.name: item for item in proto.graph.initializer}
    weight, scale = (held[_layer(proto, layer).input[place]] for place in (3, 4))
    _times(scale, 16 if coarse else 3)
    if coarse:
        _times(weight, 1 / 16)
    onnx.save(proto, tmp_path / "wrong.onnx")
    result, edits = repaired(made, model_of("onnx", tmp_path / "wrong.onnx"), tmp_path)
    (edit,) = edits
    assert isinstance(edit, Requantize)
    assert edit.bias is not None
    assert_stored_as_before(result)


@pytest.mark.parametrize(
    ("tensor", "low", "high"),
    [("a_quantized", 0, 1000), ("d_quantized", -1, 1), ("e_quantized", 0, 300), ("g_quantized", 0, 1)],
)
def test_integer_operators_get_ranges_wherever_the_scale_is_wrong(
    made: dict[str, Model], tmp_path: Path, tensor: str, low: float, high: float
) -> None:
    wrong = edited(made["integers"], lambda editor: editor.set_range(tensor, low, high), tmp_path)
    result, edits = repaired(made, wrong, tmp_path)
    assert [type(edit) for edit in edits] == [SetRange]
    assert_stored_as_before(result)


def test_only_the_layer_whose_bits_cannot_be_repaired_gets_real_numbers(
    made: dict[str, Model], tmp_path: Path
) -> None:
    """Scales too small for the right numbers, other integers than these take, and a zero point for each channel."""
    proto = onnx.load(made["integers"].path)
    held = {item.name: item for item in proto.graph.initializer}
    weight, scale, zero = (held[_layer(proto, "g_quantized").input[place]] for place in (3, 4, 5))
    _times(scale, 0.5)
    _times(weight, 0.5)
    zero.CopyFrom(numpy_helper.from_array(np.ones_like(numpy_helper.to_array(zero)), zero.name))
    onnx.save(proto, tmp_path / "wrong.onnx")
    result, edits = repaired(made, model_of("onnx", tmp_path / "wrong.onnx"), tmp_path)
    assert [type(edit) for edit in edits] == [ComputeInFloat]
    assert "no change of its quantization repairs it" in result.edits[0]
    left = [node.op_type for node in onnx.load(tmp_path / "out" / "repaired.onnx").graph.node]
    assert left.count("QLinearConv") == 2
    assert result.storage is not None
    assert result.storage.quantized == result.storage.quantized_before - 1


@pytest.mark.parametrize("form", ["qdq", "integers", "tflite", "weights"])
def test_a_right_file_of_eight_bits_is_called_right(made: dict[str, Model], tmp_path: Path, form: str) -> None:
    right, target = (subject(made[name], tmp_path) for name in ("right", form))
    found = localize_models(right, target, tmp_path / "work", _OPTIONS.localization)
    assert not found.faults


def _stream(path: Path, kind: str) -> Path:
    """A residual beyond float16's largest number, with normalizations that read it."""
    text = f"""g ({kind}[1, 8] x) => ({kind}[1, 8] y) {{
        a = MatMul (x, w)
        b = Mul (a, large)
        c = Add (b, b)
        d = LayerNormalization <axis = -1> (c, g, z)
        e = MatMul (d, v)
        f = Mul (e, less)
        h = Add (c, f)
        i = LayerNormalization <axis = -1> (h, g, z)
        y = MatMul (i, u)
    }}"""
    weights = {"w": drawn(8, 8, seed=1), "v": drawn(8, 8, seed=2), "u": drawn(8, 8, seed=3), "large": 30000.0}
    weights |= {"less": 2000.0, "g": np.ones(8), "z": np.zeros(8)}
    stored = np.float16 if kind == "float16" else np.float32
    return written(path, text, {name: np.asarray(array, stored) for name, array in weights.items()})


def test_what_overflows_float16_is_kept_in_float32(tmp_path: Path) -> None:
    source, target = (_stream(tmp_path / f"{kind}.onnx", kind) for kind in ("float", "float16"))
    done = conrepair.repair(source, target, output=tmp_path / "fixed", in_process=True)
    assert "0 left" in str(done)
    repaired = onnx.load(next((tmp_path / "fixed").rglob("*.onnx")))
    kinds = {
        value.name: value.type.tensor_type.elem_type
        for value in onnx.shape_inference.infer_shapes(repaired).graph.value_info
    }
    assert {kinds[node.output[0]] for node in repaired.graph.node if node.op_type == "Add"} == {
        onnx.TensorProto.FLOAT
    }


def test_a_network_without_weights_is_of_the_numbers_that_it_takes(tmp_path: Path) -> None:
    def scaled(kind: str) -> Path:
        text = f"g ({kind}[1, 8] x) => ({kind}[1, 8] y) {{ a = Mul (x, k)\n b = Add (a, a)\n y = Div (b, m) }}"
        stored = np.float16 if kind == "float16" else np.float32
        return written(tmp_path / f"{kind}.onnx", text, {"k": stored(400), "m": stored(1000)})

    assert conrepair.compare(scaled("float"), scaled("float16"), in_process=True).verdict is Verdict.NOISE
