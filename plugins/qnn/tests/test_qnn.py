"""A file runs on the simulated NPU; one that it computes otherwise than the original is faulty."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

import conrepair

pytest.importorskip("onnxruntime_qnn", reason="ONNX Runtime's QNN isn't installed: pip install onnxruntime-qnn")
pytest.importorskip("conrepair_qnn", reason="the plug-in isn't installed: pip install plugins/qnn")

pytestmark = (
    pytest.mark.workers
)  # what prepared a model in half precision does so with all that follow in its process


def _net(path: Path, factor: float = 1.0) -> Path:
    numbers = ", ".join(f"{factor * (place * 7919 % 23 - 11) / 12:.4f}" for place in range(72))
    onnx.save(
        onnx.parser.parse_model(
            f"""<ir_version: 8, opset_import: ["" : 17]> net (float[n, 2, 8, 8] x) => (float[n, 4, 8, 8] y)
            <float[4, 2, 3, 3] w = {{{numbers}}}> {{ c = Conv <pads = [1, 1, 1, 1]> (x, w) y = Relu (c) }}"""
        ),
        path,
    )
    return path


@pytest.mark.parametrize(("fp16", "verdict"), [(True, "noise"), (False, "equivalent")])
def test_a_right_file(tmp_path: Path, *, fp16: bool, verdict: str) -> None:
    done = conrepair.execute(_net(tmp_path / "net.onnx"), backend="qnn", options={"fp16": fp16})
    assert done.verdict == verdict


def test_a_wrong_file_of_an_audit(tmp_path: Path) -> None:
    right, wrong = _net(tmp_path / "net.onnx"), _net(tmp_path / "wrong.onnx", 1.1)
    config = {
        "output": str(tmp_path / "out"),
        "dataset": {"synthetic": {"samples": 4}},
        "models": [
            {"name": "net", "path": str(right)},
            {"name": "wrong", "path": str(wrong), "compare_with": "net"},
        ],
        "backends": ["libraries", "qnn"],
        "localize": {"when": "different"},
    }
    (tmp_path / "audit.json").write_text(json.dumps(config))
    result = conrepair.audit(tmp_path / "audit.json")
    verdicts = {(row.model, row.backend): row.verdict for row in result.rows}
    assert verdicts["net", "qnn"] == "noise"
    assert verdicts["wrong", "qnn"] == "faulty"


def test_an_option_that_there_is_not(tmp_path: Path) -> None:
    with pytest.raises(conrepair.ConrepairError, match="qnn has no option 'fp61'; it has: fallback, fp16, soc_model"):
        conrepair.execute(_net(tmp_path / "net.onnx"), backend="qnn", options={"fp61": True})


def test_a_layer_that_it_computes_wrongly_is_named_within_half_precision(tmp_path: Path) -> None:
    numbers = ", ".join(f"{(place * 7919 % 23 - 11) / 12:.4f}" for place in range(192))
    text = f"""<ir_version: 8, opset_import: ["" : 17]> net (float[n, 12] x) => (float[n, 16] y)
    <float[12, 16] w = {{{numbers}}}, float k = {{9.0}}, int32 four = {{4}}>
    {{ a = MatMul (x, w) m = Mul (a, k) i = Cast <to = 6> (m) q = Div (i, four)
    c = Cast <to = 1> (q) y = Softmax (c) }}"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "net.onnx")
    found = conrepair.localize(tmp_path / "net.onnx", tmp_path / "net.onnx", backend="qnn", samples=4)
    if found.verdict == "noise":
        pytest.skip("this QNN divides whole numbers as ONNX does")
    assert [fault.source_tensor for fault in found.faults] == ["q"]


@pytest.mark.parametrize(("fp16", "verdict"), [(True, "noise"), (False, "equivalent")])
def test_layers_that_it_computes_rightly_are_not_at_fault(tmp_path: Path, *, fp16: bool, verdict: str) -> None:
    net = _net(tmp_path / "net.onnx")
    found = conrepair.localize(net, net, backend="qnn", options={"fp16": fp16})
    assert (found.verdict, found.faults) == (verdict, ())
