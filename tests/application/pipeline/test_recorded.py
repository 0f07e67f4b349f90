"""Outputs that were computed elsewhere stand for a model in `compare` and `localize`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
from localized import WEIGHTS, Variant, pictures

import conrepair
from conrepair.application.cli import main
from conrepair.ground.data.stored_values import quantized
from conrepair.ground.data.tensor_spec import Quantization

Arrays = Mapping[str, npt.NDArray[Any]]
IMAGES = pictures()
INNER = ["a", "b", "c", "d", "f"]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("in.npz", image=IMAGES)


def _model(name: str, *, wrong: str = "") -> str:
    weights = {wrong: WEIGHTS[wrong] * np.float32(1.5)} if wrong else {}
    return str(Variant(weights=weights).write(Path(f"{name}.onnx")).path)


def _computed(path: str, names: list[str]) -> dict[str, npt.NDArray[Any]]:
    """By ONNX Runtime, tensors on the way included."""
    model = onnx.load(path)
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in names)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    outputs = [item.name for item in session.get_outputs()]
    return dict(zip(outputs, session.run(None, {"image": IMAGES}), strict=True))


def _recorded(path: str, names: list[str], arrays: Arrays | None = None) -> str:
    np.savez("out.npz", **(_computed(path, names) if arrays is None else arrays))
    return "out.npz"


def test_right_outputs_are_equivalent_and_wrong_ones_are_not() -> None:
    right, wrong = _model("right"), _model("wrong", wrong="dense")
    assert conrepair.compare(right, _recorded(right, []), data="in.npz", in_process=True).verdict == "equivalent"
    assert conrepair.compare(right, _recorded(wrong, []), data="in.npz", in_process=True).verdict == "faulty"
    assert conrepair.compare(_recorded(right, []), right, data="in.npz", in_process=True).verdict == "equivalent"


@pytest.mark.parametrize(
    ("weights", "tensors", "layers"),
    [
        ("first", INNER, {"a"}),
        ("inner", INNER, {"c"}),
        ("dense", INNER, {"scores", "y"}),
        ("first", ["b", "f"], {"a", "b"}),
        ("inner", ["b", "f"], {"c", "d", "e", "f"}),
        ("inner", [], {"a", "b", "c", "d", "e", "f", "scores", "y"}),
    ],
)
@pytest.mark.parametrize("recorded_is_right", [False, True])
def test_the_piece_between_recorded_tensors_is_named(
    weights: str, tensors: list[str], layers: set[str], recorded_is_right: bool
) -> None:
    right, wrong = _model("right"), _model("wrong", wrong=weights)
    if recorded_is_right:
        found = conrepair.localize(_recorded(right, tensors), wrong, data="in.npz", in_process=True)
    else:
        found = conrepair.localize(right, _recorded(wrong, tensors), data="in.npz", in_process=True)
    assert (found.exit_code, found.verdict) == (1, "faulty")
    (fault,) = found.faults
    assert set(fault.target_layers if recorded_is_right else fault.source_layers) == layers
    assert ("operators: record" in fault.evidence[0]) == (len(layers) > 1)
    assert any("only outputs" in note for note in found.localization.notes) == (not tensors)


def test_a_right_recording_accuses_no_layer(tmp_path: Path) -> None:
    right = _model("right")
    found = conrepair.localize(right, _recorded(right, INNER), data="in.npz", in_process=True)
    assert (found.exit_code, found.verdict, found.faults) == (0, "equivalent", ())
    assert [row.source_tensor for row in found.localization.layers] == [*INNER, "y"]
    assert "report.html" in {path.name for path in found.save(tmp_path / "report").iterdir()}


def test_names_and_layouts_of_other_formats_are_known() -> None:
    """Channels last, signs in names that Keras and others don't have, and an array of no tensor."""
    right, wrong = _model("right"), _model("wrong", wrong="inner")
    computed = _computed(wrong, ["b", "c"])
    arrays = {"/B": computed["b"], "C": computed["c"].transpose(0, 2, 3, 1), "y": computed["y"], "other": IMAGES}
    found = conrepair.localize(right, _recorded(right, [], arrays), data="in.npz", in_process=True)
    assert [fault.source_layers for fault in found.faults] == [("c",)]
    assert (
        "no tensor of the model has the name and size of these recorded arrays: `other`" in found.localization.notes
    )


def test_a_function_and_arrays_stand_for_a_model() -> None:
    right, wrong = _model("right"), _model("wrong", wrong="dense")
    session = onnxruntime.InferenceSession(wrong)
    drawn = conrepair.inputs(right, in_process=True)
    assert {name: array.shape for name, array in drawn.items()} == {"image": (32, 3, 12, 10)}
    options: dict[str, Any] = {"data": drawn, "in_process": True}
    assert conrepair.compare(right, lambda feeds: session.run(None, feeds), **options).verdict == "faulty"
    assert conrepair.compare(wrong, lambda feeds: session.run(None, feeds), **options).verdict == "equivalent"
    assert conrepair.compare({"y": session.run(None, drawn)[0]}, wrong, **options).verdict == "equivalent"


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda _: 3, "returned a int"),
        (lambda _: np.zeros((2, 3)), r"was called with 7 samples, and returned an array of shape \[2, 3\]"),
        (lambda _: 1 / 0, "target failed: ZeroDivisionError"),
    ],
)
def test_what_a_function_does_wrong_is_said(function: Any, words: str) -> None:
    with pytest.raises(conrepair.ConrepairError, match=words):
        conrepair.compare(_model("right"), function, data={"image": IMAGES}, in_process=True)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("compare right.onnx out.npz", "Give the inputs that they were computed for"),
        ("compare right.onnx out.npz --data more.npz", "has outputs of 7 samples, and the data has 14"),
        ("repair right.onnx out.npz --data in.npz", "which can't be repaired: give the model's file"),
        ("localize out.npz out.npz --data in.npz", "both sides are recorded outputs"),
        ("inspect out.npz", "`compare` and `localize` take them"),
        ("convert out.npz --to onnx -o x.onnx", "`compare` and `localize` take them"),
    ],
)
def test_what_cannot_be_meant_is_said(command: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    right = _model("right")
    _recorded(right, [])
    np.savez("more.npz", image=np.concatenate([IMAGES, IMAGES]))
    assert main([*command.split(), "-q"]) in {2, 3}
    assert words in " ".join("".join(capsys.readouterr()).split())


def test_what_execute_wrote_is_a_target(capsys: pytest.CaptureFixture[str]) -> None:
    """With times beside the outputs, and files that are numbered."""
    right = _model("right")
    assert main(["execute", right, "--data", "in.npz", "-o", "elsewhere", "-q"]) == 0
    assert main(["compare", right, "elsewhere", "--data", "in.npz", "-q"]) == 0
    assert "equivalent" in capsys.readouterr().out


def test_inputs_are_written_once_and_compare_with_what_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    right = _model("right")
    assert main(["inputs", right, "-o", "drawn.npz", "--samples", "5", "-q"]) == 0
    assert "image: float32[5, 3, 12, 10]" in capsys.readouterr().out
    first = Path("drawn.npz").read_bytes()
    assert main(["inputs", right, "-o", "drawn.npz", "-q"]) == 2
    assert main(["inputs", right, "-o", "drawn.txt", "-q"]) == 2
    assert Path("drawn.npz").read_bytes() == first
    assert main(["inputs", right, "-o", "drawn.npz", "-q", "--force", "--samples", "5", "--seed", "1"]) == 0
    assert Path("drawn.npz").read_bytes() != first
    with np.load("drawn.npz") as held:
        computed = onnxruntime.InferenceSession(right).run(None, dict(held))
    np.savez("out.npz", y=computed[0])
    assert main(["compare", right, "out.npz", "--data", "drawn.npz", "-q"]) == 0


@pytest.mark.parametrize("size", [8, 9, 13])
def test_a_fixed_batch_of_more_samples_than_are_looked_at(size: int) -> None:
    """The batch is filled up with the last sample that's looked at, and so is what was recorded."""
    ends = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [size, 4]) for name in ("x", "y", "z")]
    nodes = [onnx.helper.make_node("Relu", ["x"], ["y"]), onnx.helper.make_node("Neg", ["y"], ["z"])]
    graph = onnx.helper.make_graph(nodes, "net", ends[:1], [*ends[1:], ends[0]])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)]), "fixed.onnx")
    x = np.random.default_rng(0).normal(size=(size, 4)).astype(np.float32)
    recorded = {"y": np.maximum(x, 0), "z": -np.maximum(x, 0), "x": x}
    found = conrepair.localize("fixed.onnx", recorded, data={"x": x}, in_process=True)
    assert found.verdict == "equivalent", found.reason


def _scores(*, probabilities: bool) -> tuple[str, npt.NDArray[Any]]:
    """A network of ten scores, its outputs for `in.npz`, which is written."""
    weights = np.random.default_rng(0).normal(size=(6, 10)).astype(np.float32)
    ending = "y = Softmax <axis = -1> (scores)" if probabilities else "y = Identity (scores)"
    head = '<ir_version: 8, opset_import: ["" : 17]> g (float[batch, 6] x) => (float[batch, 10] y)'
    model = onnx.parser.parse_model(f"{head} {{ scores = MatMul (x, weights) {ending} }}")
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "weights"))
    onnx.save(model, "scores.onnx")
    x = np.random.default_rng(1).normal(size=(32, 6)).astype(np.float32)
    np.savez("in.npz", x=x)
    return "scores.onnx", onnxruntime.InferenceSession("scores.onnx").run(None, {"x": x})[0]


@pytest.mark.parametrize(
    ("probabilities", "dtype", "grid", "words"),
    [
        (True, "uint8", Quantization(1 / 256, 0), "scale 1/256 and zero point 0"),
        (True, "int8", Quantization(1 / 256, -128), "scale 1/256 and zero point -128"),
        (False, "int8", Quantization(0.07, 4), "and zero point 4"),
    ],
)
def test_integers_are_taken_for_quantized_numbers(
    probabilities: bool, dtype: str, grid: Quantization, words: str
) -> None:
    """As a phone gives them: the difference is that of a quantized model, and a fault is still one."""
    model, right = _scores(probabilities=probabilities)
    stored = quantized(right, grid, np.dtype(dtype))
    found = conrepair.compare(model, {"y": stored}, data="in.npz", in_process=True)
    assert found.verdict == "quantized", found.reason
    (note,) = (note for note in found.run.notes if "integers" in note)
    assert f"the integers ({dtype}) of y are taken for quantized numbers of" in note
    assert words in note
    assert found.run.rows[-1].ran.intent.quantized
    found = conrepair.compare(model, {"y": np.roll(stored, 1, axis=1)}, data="in.npz", in_process=True)
    assert found.verdict == "faulty"
    assert found.run.rows[-1].comparison.worst.error.relative_l2 < 200
    looked = conrepair.localize(model, {"y": stored}, data="in.npz", in_process=True)
    assert (looked.verdict, looked.faults) == ("quantized", ())
    assert "bfloat16" not in looked.reason


def test_integers_that_fit_no_scale_stay_what_they_are_and_that_is_said() -> None:
    model, right = _scores(probabilities=False)
    stored = np.random.default_rng(2).integers(-128, 127, right.shape, np.int8)
    found = conrepair.compare(model, {"y": stored}, data="in.npz", in_process=True)
    assert found.verdict == "faulty"
    assert any("scale and zero point aren't known: save (output - zero_point) * scale" in n for n in found.run.notes)
