"""Accuracy on labelled photos as the gate: what it fails, and what it excuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import small_models as small
from PIL import Image

import conrepair
from conrepair.application.cli import main
from conrepair.application.verbs.tolerances import max_drops
from conrepair.ground.runtime.errors import ConfigError, UsageError

CLASSES, PHOTOS, SIZE = 4, 20, 4


def classifier(path: Path, scale: float = 1.0, *, best: int | None = None, whole: bool = False) -> Path:
    """The mean of a photo's part says its class; with `best` one class wins that never does."""
    helper, float32 = onnx.helper, onnx.TensorProto.FLOAT
    weights = np.zeros((3 * SIZE * SIZE, CLASSES), np.float32)
    for place in range(CLASSES):
        weights.reshape(3, SIZE, SIZE, CLASSES)[:, place, :, place] = scale
    bias = np.zeros(CLASSES, np.float32)
    if best is not None:
        bias[best] = 1e5
    nodes = [
        helper.make_node("Flatten", ["x"], ["flat"]),
        helper.make_node("Gemm", ["flat", "weights", "bias"], ["scores"]),
    ]
    out = helper.make_tensor_value_info("scores", float32, ["batch", CLASSES])
    if whole:
        nodes.append(helper.make_node("ReduceMax", ["scores"], ["most"], axes=[1], keepdims=0))
        out = helper.make_tensor_value_info("most", float32, ["batch"])
    held = {"weights": weights, "bias": bias}
    graph = helper.make_graph(
        nodes,
        "classes",
        [helper.make_tensor_value_info("x", float32, ["batch", 3, SIZE, SIZE])],
        [out],
        [onnx.numpy_helper.from_array(array, name) for name, array in held.items()],
    )
    return small.save_onnx(path, graph)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("labelled")
    generator = np.random.default_rng(0)
    for index in range(PHOTOS):
        pixels = generator.integers(0, 100, (SIZE, SIZE, 3), dtype=np.uint8)
        pixels[index % CLASSES] = 200
        (place := made / "photos" / str(index % CLASSES)).mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(place / f"{index}.png")
    classifier(made / "source.onnx")
    return made


def compared(folder: Path, target: Path, **options: Any) -> Any:
    found = conrepair.compare(folder / "source.onnx", target, data=folder / "photos", recipe="raw", **options)
    return found.run.rows[-1]


def test_a_target_that_answers_worse_is_faulty(folder: Path, tmp_path: Path) -> None:
    worse = classifier(tmp_path / "worse.onnx", best=0)
    loose = {"atol": 1e9}
    assert compared(folder, worse, **loose).verdict == "equivalent"
    row = compared(folder, worse, max_drop="top1:0.5%", **loose)
    assert row.verdict == "faulty"
    assert row.reason.startswith(
        "top-1 accuracy is 5 of 20 samples, 20 with the original model: it fell by 75 percentage points "
        "(allowed: 0.5) (its outputs: equivalent"
    )
    assert row.comparison.verdict == "faulty"
    assert compared(folder, worse, max_drop={"top1": 0.75}, **loose).verdict == "equivalent"
    assert compared(folder, worse, max_drop=["top4:0%", "top1:75%"], **loose).verdict == "equivalent"
    assert compared(folder, worse, max_drop=["top4:0%", "top1:1%"], **loose).verdict == "faulty"


def test_one_that_answers_as_well_isnt_excused_for_it(folder: Path, tmp_path: Path) -> None:
    """A wrong scale of a float target is a fault, whatever it answers."""
    row = compared(folder, classifier(tmp_path / "other.onnx", 1.5), max_drop="top1:0.5%")
    assert row.verdict == "faulty"
    assert (
        "top-1 accuracy is 20 of 20 samples, 20 with the original model: it fell by 0 percentage points" in row.reason
    )


def test_it_stands_in_for_the_budgets_of_few_bits(folder: Path) -> None:
    """Through a configuration: a budget that nothing fits into, and the accuracy in its place."""
    config: dict[str, Any] = {
        "models": [
            {
                "name": "a",
                "path": "source.onnx",
                "recipe": "raw",
                "conversions": [{"via": ["onnx-quantize-dynamic"]}],
            }
        ],
        "dataset": {"folder": "photos"},
        "tolerance": {"quantized_cosine": 1.0, "quantized_top1": 0.0},
        "output": "audited",
    }
    (folder / "audit.json").write_text(json.dumps(config))
    verdicts = []
    for tolerance in ({"quantized_cosine": 1.0}, {"max_drop": {"top1": 0.005}}):
        (folder / "audit.json").write_text(json.dumps(config | {"tolerance": tolerance}))
        verdicts.append(conrepair.audit(folder / "audit.json").rows[-1].verdict)
    assert verdicts == ["faulty", "quantized"]


def test_without_labels_it_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = folder / "source.onnx"
    with pytest.raises(ConfigError, match=r"max_drop: source\.onnx.* has no labels"):
        conrepair.compare(source, source, max_drop="top1:1%")
    assert main(["localize", str(source), str(source), "--max-drop", "top1:1%"]) == 2
    assert "has no labels, so accuracy can't be measured. Give photos (--data)" in capsys.readouterr().err
    assert main(["compare", str(source), str(source), "--max-drop", "top0:1%"]) == 2
    assert "--max-drop: 'top0' is no accuracy: write top1:0.5%" in capsys.readouterr().err


def test_outputs_without_classes_pass_nothing(folder: Path, tmp_path: Path) -> None:
    whole = classifier(tmp_path / "whole.onnx", whole=True)
    found = conrepair.compare(whole, whole, data=folder / "photos", recipe="raw", max_drop="top1:1%")
    assert (found.verdict, found.exit_code) == ("undecided", 1)
    assert "the first output has no score for each class" in found.reason


def test_shares_are_read_as_points_or_decimals() -> None:
    assert max_drops("max_drop", ["top1:0.5%", "top5:0.01"]) == {"top1": 0.005, "top5": 0.01}
    assert max_drops("max_drop", {"top1": 0.25}) == {"top1": 0.25}
    for wrong in ("top1:120%", "top1:-1%", "top1", "top1:x", {"best": 1}, 3):
        with pytest.raises(UsageError):
            max_drops("max_drop", wrong)


def test_labels_that_are_numbered_otherwise_decide_nothing(folder: Path, tmp_path: Path) -> None:
    """Folders by name in another order than the model's: its accuracy is 0, and no drop means anything."""
    photos = tmp_path / "named"
    for place, name in enumerate("dcba"):
        (photos / name).mkdir(parents=True)
        for file in (folder / "photos" / str(place)).iterdir():
            (photos / name / file.name).write_bytes(file.read_bytes())
    worse = classifier(tmp_path / "worse.onnx", best=0)

    def verdict(**options: Any) -> Any:
        given = {"data": photos, "recipe": "raw", "max_drop": "top1:1%", "atol": 1e9, **options}
        return conrepair.compare(folder / "source.onnx", worse, **given).run

    found = verdict()
    assert found.rows[-1].verdict == "equivalent"
    assert "accuracy can't decide, as the classes are probably numbered otherwise" in found.rows[-1].reason
    assert "classes: 0 = a, 1 = b, 2 = c, 3 = d, in alphabetical order; --classes FILE" in found.notes[0]
    assert any("100 % would be with 0 = d, 1 = c, 2 = b, 3 = a" in note for note in found.notes)
    (tmp_path / "own.txt").write_text("d\nc\nb\na\n")
    for classes in (list("dcba"), tmp_path / "own.txt"):
        found = verdict(classes=classes)
        assert found.rows[0].ran.accuracy == (20, 20)
        assert found.rows[-1].verdict == "faulty"
        assert not any("numbered otherwise" in note for note in found.notes)
