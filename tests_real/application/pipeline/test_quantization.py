"""Quantization in whole audits and on the command line: asked for, calibrated with the model's own data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import small_models as small
from onnx_networks import drawn, written
from onnxruntime.quantization import QuantFormat
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
from PIL import Image

from conrepair.application.cli import main
from conrepair.application.config.load import parse_config
from conrepair.application.pipeline.audit import run_audit
from conrepair.application.report.audit_folder import write_audit
from conrepair.application.report.result import AuditResult, Row
from conrepair.application.report.saved import read_result
from conrepair.formats.models.registry import framework
from conrepair.ground.data.pictures.decode import decode_picture
from conrepair.ground.data.pictures.named_recipes import named_recipe
from conrepair.ground.data.pictures.recipe import apply_numeric, apply_spatial
from conrepair.ground.runtime.shown.progress import ProgressDisplay

INT8 = {"keras-tflite": {"quantize": "int8", "int8_io": True}}


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    (tmp_path / "photos").mkdir()
    for index in range(6):
        # Each brighter than the one before, and none with all values: the ranges tell which were used.
        pixels = generator.integers(10 * index, 120 + 20 * index, (30, 24, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "photos" / f"{index}.png")
    return tmp_path


def keras_net(room: Path) -> dict[str, Any]:
    if not (room / "net.keras").exists():
        small.keras_convnet().save(room / "net.keras")
    return {"name": "net", "path": "net.keras"}


def onnx_net(room: Path) -> dict[str, Any]:
    small.onnx_convnet(room / "net.onnx")
    return {"name": "net", "path": "net.onnx", "recipe": "torchvision"}


def audit(room: Path, model: dict[str, Any], **changes: Any) -> AuditResult:
    value = {"models": [model], "dataset": {"folder": "photos", "labels": "none"}, "batch_size": 4}
    config = parse_config(value | changes, "test")
    result = run_audit(config, room, ProgressDisplay(quiet=True))
    write_audit(result, room / config.output / "store")
    return result


def rows(result: AuditResult) -> dict[str, Row]:
    return {row.conversion: row for row in result.rows}


def expected_scale(room: Path, recipe_name: str, indices: list[int]) -> float:
    """Of an int8 input that takes the values of photos after a recipe."""
    recipe = named_recipe(recipe_name).for_size(small.HEIGHT, small.WIDTH)
    pixels = [apply_spatial(recipe.spatial, decode_picture(room / "photos" / f"{index}.png")) for index in indices]
    values = apply_numeric(recipe, np.stack(pixels), "NHWC")
    return float(max(values.max(), 0) - min(values.min(), 0)) / 255


def input_scale(row: Row) -> float:
    assert row.ran.description is not None
    (spec,) = row.ran.description.inputs
    assert spec.dtype == "int8"
    assert spec.quantization is not None
    return spec.quantization.scale


def test_an_audit_of_quantized_tflite(room: Path) -> None:
    conversions = ["tflite", {"to": "tflite", "options": INT8}]
    result = audit(room, keras_net(room) | {"recipe": "torchvision", "conversions": conversions})
    found = rows(result)
    plain, quantized = found["keras-tflite"], found["keras-tflite,int8_io=True,quantize=int8"]
    assert str(plain.verdict) == "equivalent"
    assert plain.ran.intent is not None
    assert plain.ran.intent.text == "float32"
    assert str(quantized.verdict) == "quantized", quantized.reason
    assert quantized.ran.intent is not None
    assert quantized.ran.intent.text == "int8 (asked for)"
    assert quantized.ran.description is not None
    assert quantized.ran.description.precision == "full-integer quantized"
    assert input_scale(quantized) == pytest.approx(expected_scale(room, "torchvision", [*range(6)]), rel=1e-4)
    assert result.exit_code == 0
    told = [row.ran.intent and row.ran.intent.text for row in read_result(result.folder).rows]
    assert told == ["float32", "float32", "int8 (asked for)"]
    assert "int8 (asked for)" in (result.folder / "summary.txt").read_text()


def test_calibration_takes_the_model_s_recipe_and_so_many_samples(room: Path) -> None:
    """Both kinds of recipe, raw and a framework's; the audit above has the third."""
    few = {"keras-tflite": INT8["keras-tflite"] | {"calibration_samples": 2}}
    wanted = {"raw": [{"to": "tflite", "options": few}], "keras:tf": [{"to": "tflite", "options": INT8}]}
    models = [
        keras_net(room) | {"name": recipe.replace(":", "-"), "recipe": recipe, "conversions": conversions}
        for recipe, conversions in wanted.items()
    ]
    scales = [input_scale(row) for row in audit(room, {}, models=models).rows if row.conversion]
    photos = {"raw": [0, 3], "keras:tf": [*range(6)]}
    for scale, (recipe, used) in zip(scales, photos.items(), strict=True):
        assert scale == pytest.approx(expected_scale(room, recipe, used), rel=1e-4)
        assert scale != pytest.approx(expected_scale(room, "torchvision", used), rel=0.1)


def test_results_are_reused_while_their_data_stay_the_same(room: Path) -> None:
    conversions = [{"via": ["onnx-onnxslim"]}, {"via": ["onnx-quantize-static"]}]
    model = onnx_net(room) | {"recipe": "raw", "conversions": conversions}
    store = room / "generated" / "store"

    def made() -> int:
        return len(list(store.glob("convert-*")))

    audit(room, model)
    assert made() == 2
    assert all(row.ran.reused for row in audit(room, model).rows)
    assert made() == 2
    audit(room, model | {"recipe": "torchvision"})
    assert made() == 3, "the quantized one depends on the recipe"
    Image.new("RGB", (24, 30), "white").save(room / "photos" / "5.png")
    audit(room, model)
    assert made() == 4, "and on the photos"


def test_an_audit_of_quantized_onnx(room: Path) -> None:
    """A chain: what an earlier step was asked for is what the last one is judged by."""
    wanted = [
        {"via": ["onnx-quantize-static", "onnx-version-converter"]},
        {"via": ["onnx-quantize-dynamic"]},
        {"via": ["onnx-float16"]},
        {"via": ["onnx-onnxslim"]},
        {"via": ["onnx-onnxsim"]},
    ]
    result = audit(room, onnx_net(room) | {"conversions": wanted})
    found = {
        name: (str(row.verdict), row.ran.intent and row.ran.intent.text) for name, row in rows(result).items() if name
    }
    assert found == {
        "onnx-quantize-static": ("quantized", "int8 (asked for)"),
        "onnx-quantize-static+onnx-version-converter": ("quantized", "int8 (asked for)"),
        "onnx-quantize-dynamic": ("quantized", "int8 weights (asked for)"),
        "onnx-float16": ("noise", "float16 (asked for)"),
        "onnx-onnxslim": ("equivalent", "float32"),
        "onnx-onnxsim": ("equivalent", "float32"),
    }
    reason = rows(result)["onnx-float16"].reason
    assert "float16's rounding error" in reason


def test_a_quantized_file_made_elsewhere_is_found_to_be_one(room: Path) -> None:
    first = audit(room, onnx_net(room) | {"conversions": [{"via": ["onnx-quantize-dynamic"]}]})
    made = first.folder / "models/net/onnx-quantize-dynamic/model.onnx"
    (room / "elsewhere.onnx").write_bytes(made.read_bytes())
    second = {"name": "elsewhere", "path": "elsewhere.onnx", "compare_with": "net"}
    result = audit(room, onnx_net(room), models=[onnx_net(room), second])
    row = result.rows[1]
    assert str(row.verdict) == "quantized"
    assert row.ran.intent is not None
    assert row.ran.intent.text == "quantized weights (found in the file)"


def test_synthetic_and_given_tensors_calibrate_too(room: Path) -> None:
    np.savez(room / "x.npz", image=small.images(5))
    wanted = [{"via": ["onnx-quantize-static"]}]
    for dataset in ({"tensors": "x.npz"}, {"synthetic": {"samples": 5, "low": 0, "high": 4}}):
        result = audit(room, onnx_net(room) | {"conversions": wanted}, dataset=dataset)
        row = result.rows[1]
        assert str(row.verdict) == "quantized", row.reason
    assert row.ran.artifact is not None
    assert scale_of_image(Path(row.ran.artifact.path)) == pytest.approx(4 / 255, rel=0.01)


def scale_of_image(path: Path) -> float:
    tensors = {tensor.name: tensor for tensor in onnx.load(path).graph.initializer}
    return float(onnx.numpy_helper.to_array(tensors["image_scale"]))


def test_photos_that_cannot_be_read_fail_the_calibration_too(room: Path) -> None:
    (room / "photos" / "text.jpg").write_text("I am no picture")
    result = audit(room, onnx_net(room) | {"conversions": [{"via": ["onnx-quantize-static"]}]})
    assert result.exit_code == 2
    assert "photos could not be prepared" in result.rows[1].reason
    (room / "photos" / "text.jpg").unlink()
    assert audit(room, onnx_net(room) | {"conversions": [{"via": ["onnx-quantize-static"]}]}).exit_code == 0


# --- The command line ---


def test_converting_with_quantization(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keras_net(room)
    command = ["convert", "net.keras", "--to", "tflite", "-q", "--option", "keras-tflite.quantize=int8"]
    photos = ["--data", "photos", "--recipe", "torchvision", "--option", "keras-tflite.int8_io=true"]
    assert main([*command, "-o", "out.tflite", *photos]) == 0
    about = framework("tflite").describe(small.model_of("tflite", room / "out.tflite"))
    (spec,) = about.inputs
    assert about.precision == "full-integer quantized"
    assert spec.quantization is not None
    assert spec.quantization.scale == pytest.approx(expected_scale(room, "torchvision", [*range(6)]), rel=1e-4)
    capsys.readouterr()
    for arguments, words in [
        ([], "keras-tflite with quantize=int8 needs data to calibrate with. Give --data"),
        (["--data", "photos"], "Give --recipe: "),
        (["--data", "nowhere", "--recipe", "raw"], "nowhere"),
        (["--option", "keras-tflite.quantise=int8"], "has no option 'quantise'"),
        (["--option", "keras-tflite.quantize=int4"], "takes one of"),
        (["--option", "keras-tflite.calibration_samples=many"], "takes int"),
        (["--option", "onnx-float16.keep_io=true"], "the conversion is by keras-tflite, not by onnx-float16"),
        (["--option", "quantize=int8"], "write CONVERTER.NAME=VALUE"),
    ]:
        assert main([*command, "-o", "other.tflite", *arguments]) == 2, arguments
        assert words in capsys.readouterr().err
        assert not (room / "other.tflite").exists()


def test_converting_along_a_route_that_calibrates_on_the_way(room: Path) -> None:
    keras_net(room)
    images = small.images(8, channels_last=True)
    images[1::2] *= 5  # not among every other one
    np.save(room / "x.npy", images)
    route = ["--via", "keras-onnx-tf2onnx,onnx-quantize-static,onnx-version-converter"]
    samples = ["--option", "onnx-quantize-static.calibration_samples=4"]
    opset = ["--option", "onnx-version-converter.opset=19"]
    data = ["--data", "x.npy", "-o", "out.onnx", "-q"]
    assert main(["convert", "net.keras", "--to", "onnx", *route, *samples, *opset, *data]) == 0
    about = framework("onnx").describe(small.model_of("onnx", room / "out.onnx"))
    assert about.quantized
    assert about.opset == 19
    proto = onnx.load(room / "out.onnx")
    tensors = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}
    first = next(node for node in proto.graph.node if node.op_type == "QuantizeLinear")
    expected = float(images[::2].max() - images[::2].min()) / 255
    assert float(tensors[first.input[1]]) == pytest.approx(expected, rel=1e-4)


def test_a_wrong_scale_is_no_quantization(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From eight bits to eight bits, nothing is lost but where integers are rounded."""
    small.tflite_of(small.keras_convnet(), room / "net.tflite", "full-int8")
    assert main(["convert", "net.tflite", "--to", "onnx", "-o", "right.onnx", "-q"]) == 0
    assert "quantized as the original is" in capsys.readouterr().out
    proto = onnx.load("right.onnx")
    constants = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}
    weight = max(
        (node for node in proto.graph.node if node.op_type == "DequantizeLinear" and node.input[0] in constants),
        key=lambda node: constants[node.input[0]].size,
    )
    wrong = (constants[weight.input[1]] * 1.5).astype(np.float32)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(wrong, "wrong"))
    weight.input[1] = "wrong"
    onnx.save(proto, "wrong.onnx")
    assert main(["compare", "net.tflite", "right.onnx", "-q"]) == 0
    assert main(["compare", "net.tflite", "wrong.onnx", "-q"]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "the original is quantized already, and the rounding error of integer kernels is up to 2.5 %" in out


def test_who_is_off_is_said_where_a_runtime_rounds_what_the_file_does_not(room: Path) -> None:
    """ONNX Runtime makes of blocks of four bits a product that rounds its other operand to eight bits."""
    text = "net (float[n, 8, 256] x) => (float[n, 8, 10] y) { h = MatMul (x, v)\n r = Relu (h)\n y = MatMul (r, w) }"
    weights = {"v": drawn(256, 128, scale=0.06), "w": drawn(128, 10, seed=1, scale=0.1)}
    made = MatMulNBitsQuantizer(
        onnx.load(written(room / "net.onnx", text, weights)),
        block_size=32,
        is_symmetric=True,
        quant_format=QuantFormat.QDQ,
    )
    made.process()
    made.model.save_model_to_file(str(room / "blocks.onnx"))
    samples = {"dataset": {"synthetic": {"samples": 8}}, "backends": ["libraries", "onnxruntime"]}
    result = audit(room, {"name": "net", "path": "blocks.onnx"}, **samples)
    (row,) = [row for row in result.rows if row.backend == "onnxruntime"]
    assert "onnxruntime runs the same file, so its optimizations or kernels make the difference" in row.reason
