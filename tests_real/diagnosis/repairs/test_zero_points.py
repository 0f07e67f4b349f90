"""Zero points that are wrong by some: told from the file, the source's operators or its values, and put back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from quantized_faults import in_eight_bits
from quantized_networks import converted, source, subject
from small_models import model_of

from conrepair.application.cli import main
from conrepair.diagnosis.localization.models import localize_models
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.repairs.options import RepairOptions
from conrepair.diagnosis.repairs.repair import repair_models
from conrepair.diagnosis.repairs.result import RepairResult
from conrepair.formats.models.model import Model
from conrepair.formats.tflite.edit.file import EditedTfliteFile
from conrepair.verdicts.evaluate.verdict import Verdict

_OPTIONS = Options(samples=8, batch_size=8, quantized=True)
_QUANTIZES, _READS = ("QuantizeLinear", 1), ("DequantizeLinear", 1)

Grid = tuple[float, int]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Model]:
    folder = tmp_path_factory.mktemp("zeros")
    right = source(folder)
    rows = np.random.default_rng(3).normal(size=(32, 3, 12, 12)).astype(np.float32)
    found = {"right": right}
    for form in ("QDQ", "QOperator"):
        found[form] = model_of("onnx", in_eight_bits(Path(right.path), folder / f"{form}.onnx", rows, form))
    found["channels"] = model_of(
        "onnx", in_eight_bits(Path(right.path), folder / "channels.onnx", rows, per_channel=True)
    )
    path = in_eight_bits(Path(right.path), folder / "symmetric.onnx", rows, symmetric=True)
    found["symmetric"] = model_of("onnx", path)
    keras = converted(right, "onnx-keras", folder / "keras")
    found["tflite"] = converted(keras, "keras-tflite", folder / "tflite", quantize="int8")
    return found


def _grids(path: str) -> dict[str, Grid]:
    """Scale and zero point of each tensor, by who reads them: nodes' names and the places among their inputs."""
    proto = onnx.load(path)
    held = {item.name: numpy_helper.to_array(item) for item in proto.graph.initializer}
    return {
        f"{node.name}/{place}": held[name]
        for node in proto.graph.node
        for place, name in enumerate(node.input)
        if name in held
    }


def _repaired(made: dict[str, Model], wrong: Model, folder: Path) -> RepairResult:
    ours, theirs = (subject(model, folder) for model in (made["right"], wrong))
    result = repair_models(ours, theirs, folder / "out", RepairOptions(_OPTIONS, seconds=60, unseen=16))
    assert result.mended, result.after.faults
    assert result.storage is not None
    assert result.storage.quantized == result.storage.quantized_before
    return result


def _shifted(model: Model, folder: Path, choose: Callable[[onnx.NodeProto], int | None], by: int) -> Model:
    """Another zero point for one reading or writing: a constant of its own."""
    proto = onnx.load(model.path)
    held = {item.name: numpy_helper.to_array(item) for item in proto.graph.initializer}
    node, place = next((node, place) for node in proto.graph.node if (place := choose(node)) is not None)
    zero = held[node.input[place]]
    proto.graph.initializer.append(numpy_helper.from_array((zero.astype(int) + by).astype(zero.dtype), "other"))
    node.input[place] = "other"
    onnx.save(proto, folder / "wrong.onnx")
    return model_of("onnx", folder / "wrong.onnx")


def _read(node: onnx.NodeProto) -> int | None:
    """Of what the last convolution reads: by an operator of integers, or in front of one of real numbers."""
    if node.op_type == "QLinearConv" and "w2" in node.input[3]:
        return 2
    return 2 if node.op_type == "DequantizeLinear" and node.input[0].startswith("f_") else None


def _assert_same(right: Model, result: RepairResult, but: str = "-") -> None:
    """Bit by bit, but for nodes whose names begin so."""
    assert result.model is not None
    ours, theirs = _grids(right.path), _grids(result.model.path)
    assert ours.keys() == theirs.keys()
    for place, array in ours.items():
        if not place.startswith(but):
            np.testing.assert_array_equal(theirs[place], array, err_msg=place)


@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
def test_who_reads_integers_takes_them_as_they_are_written(made: dict[str, Model], form: str, tmp_path: Path) -> None:
    wrong = _shifted(made[form], tmp_path, _read, 9)
    result = _repaired(made, wrong, tmp_path)
    (fault,) = result.before.faults
    assert "have more than one scale and zero point" in fault.evidence[0]
    _assert_same(made[form], result)


def _all_of(model: Model, folder: Path, of: str, by: int) -> Model:
    """Another zero point wherever a constant says it."""
    proto = onnx.load(model.path)
    (zero,) = [item for item in proto.graph.initializer if item.name == of]
    array = numpy_helper.to_array(zero)
    zero.CopyFrom(numpy_helper.from_array((array.astype(int) + by).astype(array.dtype), of))
    onnx.save(proto, folder / "wrong.onnx")
    return model_of("onnx", folder / "wrong.onnx")


@pytest.mark.parametrize(
    ("form", "of"), [("QDQ", "b_zero_point"), ("QDQ", "f_zero_point"), ("QOperator", "e_zero_point")]
)
def test_a_range_that_stands_for_a_relu_begins_at_zero(
    made: dict[str, Model], form: str, of: str, tmp_path: Path
) -> None:
    result = _repaired(made, _all_of(made[form], tmp_path, of, 40), tmp_path)
    words = [text for fault in result.before.faults for text in fault.evidence]
    assert any("stands for a ReLU, but begins at -" in text for text in words), words
    _assert_same(made[form], result, but="c_")  # of what's pooled behind one of them, nothing is cut off


@pytest.mark.parametrize("form", ["QDQ", "QOperator", "channels"])
def test_a_weight_gets_the_zero_point_that_its_integers_have(
    made: dict[str, Model], form: str, tmp_path: Path
) -> None:
    result = _repaired(made, _all_of(made[form], tmp_path, "w1_zero_point", 5), tmp_path)
    (fault,) = result.before.faults
    assert "are shifted by -5 quantization steps, as by another zero point" in fault.evidence[0]
    _assert_same(made[form], result)


@pytest.mark.parametrize("form", ["QDQ", "QOperator", "channels", "symmetric", "tflite"])
def test_nothing_is_said_of_right_files(made: dict[str, Model], form: str, tmp_path: Path) -> None:
    found = localize_models(*(subject(made[name], tmp_path) for name in ("right", form)), tmp_path / "at", _OPTIONS)
    assert not found.faults, found.reason
    assert found.verdict is Verdict.QUANTIZED or form == "symmetric", found.reason
    assert not any("zero points above" in note for note in found.notes)


def test_values_beyond_one_end_get_the_same_steps_elsewhere(made: dict[str, Model], tmp_path: Path) -> None:
    file = EditedTfliteFile(Path(made["tflite"].path))
    (index,) = {item.outputs[0] for item in file.operators if file.kind(item) == "QUANTIZE"}
    before, zero = file.scales(index), int(file.tensors[index].quantization.zeroPoint[0])
    moved = {index, *(item.outputs[0] for item in file.readers(index) if file.kind(item) == "TRANSPOSE")}
    for place in moved:
        file.tensors[place].quantization.zeroPoint = np.array([zero + 80])
    file.save(tmp_path / "wrong.tflite")
    result = _repaired(made, model_of("tflite", tmp_path / "wrong.tflite"), tmp_path)
    words = [text for fault in result.before.faults for text in fault.evidence]
    assert any("a shifted range, as by another zero point" in text for text in words), words
    repaired = EditedTfliteFile(tmp_path / "out" / "repaired.tflite")
    assert repaired.scales(index) == before
    assert abs(int(repaired.tensors[index].quantization.zeroPoint[0]) - zero) <= 3, "calibrated on these samples"


def test_what_no_output_shows_is_noted_and_left(
    made: dict[str, Model], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = EditedTfliteFile(Path(made["tflite"].path))
    (index,) = {item.outputs[0] for item in file.operators if file.kind(item) == "ADD"}
    file.tensors[index].quantization.zeroPoint = np.array([-122])
    file.save(tmp_path / "wrong.tflite")
    files = [str(made["right"].path), str(tmp_path / "wrong.tflite")]
    assert main(["repair", "-q", *files, "-o", str(tmp_path / "out"), "--advice", "0"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "nothing to repair" in words
    assert "note: zero points above the lowest value" in words
    assert not (tmp_path / "out").exists()
