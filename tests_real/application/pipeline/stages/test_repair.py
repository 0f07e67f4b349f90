"""What would have avoided a fault is found by converting anew, and reported as tried or not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_models as small
from documents import localized_in, repair_in, rows_in

from benchmarks.faults.catalogue import faults
from benchmarks.faults.inject_file import inject_file
from conrepair.application.cli import main
from conrepair.diagnosis.repairs.conversion.remedies import RouteStep, suggestions, suggestions_for_files
from conrepair.formats.converters.all_converters import converter
from conrepair.formats.models.model import Description
from conrepair.formats.models.registry import framework
from conrepair.ground.data.tensor_spec import Quantization, TensorSpec


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def audited(*, seconds: float) -> dict[str, Any]:
    """The row of a network whose Softplus the older exporter gets wrong."""
    config = {
        "output": "out",
        "dataset": {"synthetic": {"samples": 16}},
        "limits": {"workers": 1},
        "stages": {"repair": True},
        "repair": {"advice_seconds": seconds, "seconds": 60},
        "models": [{"name": "net", "path": "net.pt2", "conversions": [{"via": ["torch-onnx-script"]}]}],
    }
    Path("config.json").write_text(json.dumps(config))
    main(["run", "config.json", "-q"])
    rows = rows_in("out/audit")
    found: dict[str, Any] = next(row for row in rows if row["kind"] == "target")
    return found


def test_the_other_exporter_avoids_a_fault(folder: Path) -> None:
    import torch
    from torch import nn

    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(6, 8), nn.Softplus(threshold=0.1), nn.Linear(8, 4)).eval()
    small.export_pt2(network, [torch.zeros(2, 6)], folder / "net.pt2")
    row = audited(seconds=0)
    assert localized_in(row)["faults"]
    assert row["repaired"]["advice"]
    assert not any(item["tried"] for item in row["repaired"]["advice"])
    assert {item["outcome"] for item in row["repaired"]["advice"]} == {"not tried: no time was given for it"}
    row = audited(seconds=120)
    assert row["verdict"] == "faulty"
    tried = [item for item in row["repaired"]["advice"] if item["tried"]]
    assert [item["conversion"] for item in tried if item["avoids"]] == ["torch-onnx-dynamo"]
    assert any(item["outcome"] == "tried: the same fault" for item in tried)  # another opset doesn't help
    assert "torch-onnx-dynamo for torch-onnx-script: tried: no layer is faulty" in Path(
        "out/audit/summary.txt"
    ).read_text().replace("\n", " ")


def test_a_file_is_made_anew(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small.keras_convnet().save(folder / "net.keras")
    assert main(["convert", "net.keras", "--to", "tflite", "-o", "net.tflite", "-q", "--no-check"]) == 0
    fault = next(fault for fault in faults() if fault.name == "weights-scaled")
    right = small.model_of("tflite", folder / "net.tflite")
    feeds = {spec.name: small.images(4, channels_last=True) for spec in framework("tflite").load(right).inputs}
    wrong = inject_file(right, fault, feeds, np.random.default_rng(3), folder / "faulty")
    assert wrong is not None
    capsys.readouterr()
    assert main(["repair", "net.keras", wrong.model.path, "-o", "out", "-q"]) == 0
    said = capsys.readouterr().out.replace("\n", " ")
    assert "advice: converted anew by keras-tflite" in said
    assert "no layer is faulty" in said
    advice = repair_in("out")["advice"]
    assert (advice[0]["tried"], advice[0]["avoids"]) == (True, True)
    assert all(item["outcome"].startswith("not tried: ") for item in advice[1:])


def test_ways_that_are_suggested(tmp_path: Path) -> None:
    source = small.model_of("torch", small.onnx_convnet(tmp_path / "net.onnx"))
    steps = [RouteStep(converter("torch-onnx-script"), {"opset": 13})]
    ways = [way.route for way in suggestions(steps, ["torch-onnx-script"], source)]
    assert "torch-onnx-script" in ways  # with its own opset
    assert "torch-onnx-dynamo" in ways
    assert "torch-onnx-script,opset=13" not in ways


def test_the_tool_that_a_file_names_is_said(tmp_path: Path) -> None:
    source = small.model_of("keras", small.onnx_convnet(tmp_path / "net.onnx"))
    ways = {way.route: way.words for way in suggestions_for_files(source, "onnx", made_by("tf2onnx 1.17.0 15c810"))}
    assert ways["keras-onnx-tf2onnx"].endswith("the tool that the file names")
    assert not ways["keras-onnx-export"].endswith("the tool that the file names")
    assert not list(suggestions_for_files(source, "keras", made_by("")))


def made_by(producer: str) -> Description:
    return Description("ONNX", (), (), {}, 0, {}, producer=producer)


@pytest.mark.parametrize(
    ("dtype", "operators", "options"),
    [
        ("uint8", {"CONV_2D": 1}, "quantize=int8,uint8_io=True"),
        ("int8", {"CONV_2D": 1}, "int8_io=True,quantize=int8"),
        ("float32", {"QUANTIZE": 1, "DEQUANTIZE": 1}, "quantize=int8"),
        ("float32", {"CONV_2D": 1}, "quantize=dynamic"),
    ],
)
def test_a_file_is_made_anew_with_its_own_quantization(
    tmp_path: Path, dtype: str, operators: dict[str, int], options: str
) -> None:
    source = small.model_of("keras", small.onnx_convnet(tmp_path / "net.onnx"))
    steps = Quantization(0.1, 3) if dtype != "float32" else None
    end = TensorSpec("x", (1, 4), dtype, quantization=steps)
    about = Description("TFLite", (end,), (end,), operators, 9, {"int8": 9})
    assert next(suggestions_for_files(source, "tflite", about)).route == f"keras-tflite,{options}"
    assert not list(suggestions_for_files(source, "torch", about))
