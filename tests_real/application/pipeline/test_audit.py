"""Whole audits of small models, in worker processes, as a user runs them."""

from __future__ import annotations

import csv
import dataclasses
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from documents import document
from PIL import Image

from conrepair.application.cli import main
from conrepair.application.config.load import parse_config
from conrepair.application.pipeline.audit import run_audit
from conrepair.application.report.audit_folder import write_audit
from conrepair.application.report.result import AuditResult, Row
from conrepair.application.report.saved import read_result
from conrepair.ground.runtime.files.whole import sha256_of
from conrepair.ground.runtime.shown.progress import ProgressDisplay

NETS = '''
import os
import signal
import time

import torch
from torch import nn


class Small(nn.Module):
    def __init__(self, classes=5):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 7, 3, stride=2, padding=1), nn.BatchNorm2d(7), nn.ReLU6(), nn.Conv2d(7, 6, 3, groups=1),
            nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, classes)
        )

    def forward(self, image):
        return self.body(image)


def build(classes=5):
    return Small(classes)


class Treacherous(Small):
    """Answers like any other, but not to the exporter."""

    def __init__(self, deed):
        super().__init__()
        self.deed = deed

    def forward(self, image):
        if torch.jit.is_tracing():
            os.write(2, b"native words before the end\\n")
            if self.deed == "crash":
                os.kill(os.getpid(), signal.SIGSEGV)
            time.sleep(600)
        return super().forward(image)


def treacherous(deed):
    return Treacherous(deed)


def broken():
    raise RuntimeError("no such luck")
'''
SHAPE = ["batch", 3, 20, 14]


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mynets.py").write_text(NETS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    generator = np.random.default_rng(0)
    (tmp_path / "photos").mkdir()
    for index in range(6):
        pixels = generator.integers(0, 256, (30, 24, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "photos" / f"p_{index}_{index % 5}.png")
    return tmp_path


def source(**changes: Any) -> dict[str, Any]:
    return {
        "name": "small",
        "factory": "mynets:build",
        "inputs": [{"shape": SHAPE}],
        "recipe": "torchvision",
        "initialize": "variance-preserving",
    } | changes


def audit(room: Path, *models: dict[str, Any], **changes: Any) -> AuditResult:
    value = {"models": list(models), "dataset": {"folder": "photos", "labels": "filenames"}, "batch_size": 4}
    config = parse_config(value | changes, "test")
    result = run_audit(config, room, ProgressDisplay(quiet=True))
    write_audit(result, room / config.output / "store")
    return result


def rows(result: AuditResult) -> dict[str, Row]:
    return {f"{row.name}@{row.backend}": row for row in result.rows}


def test_an_audit_from_source_to_report(room: Path) -> None:
    routes = [{"via": ["torch-onnx-script", "onnx2torch"]}]
    result = audit(room, source(conversions=routes), backends=["libraries", "onnxruntime"])
    assert result.exit_code == 0
    found = rows(result)
    assert {name: str(row.verdict) for name, row in found.items()} == {
        "small/source@libraries": "None",
        "small/torch-onnx-script@libraries": "equivalent",
        "small/torch-onnx-script@onnxruntime": "equivalent",
        "small/torch-onnx-script+onnx2torch@libraries": "equivalent",
    }
    assert found["small/source@libraries"].ran.accuracy is not None
    assert found["small/source@libraries"].ran.accuracy[1] == 6
    folder = room / "generated" / "audit"
    report = document(folder)
    assert [row["verdict"] for row in report["rows"]] == [None, "equivalent", "equivalent", "equivalent"]
    assert len(report["pairs"]) == 3
    provenance = json.loads((folder / "models/small/torch-onnx-script/provenance.json").read_text())
    assert provenance["model"]["provenance"]["converter"] == "torch-onnx-script"
    assert provenance["model"]["provenance"]["options"] == {"opset": 17, "fold_constants": True}
    assert provenance["model"]["sha256"] == sha256_of(folder / "models/small/torch-onnx-script/model.onnx")
    run = folder / "runs/small/torch-onnx-script/libraries"
    answers = list(csv.DictReader((run / "answers.csv").open()))
    assert [line["input"] for line in answers] == [f"p_{i}_{i % 5}.png" for i in range(6)]
    inputs = list(csv.DictReader((run / "inputs.csv").open()))
    assert {line["input"] for line in inputs} == {line["input"] for line in answers}
    assert {line["differs"] for line in inputs} == {"false"}
    made = folder / "models/small/torch-onnx-script/model.onnx"
    assert read_result(folder).rows[1].ran.artifact == dataclasses.replace(
        found["small/torch-onnx-script@libraries"].ran.artifact, path=str(made)
    )
    lines = (run / "p_0_0.png.txt").read_text().splitlines()
    assert len(lines) == 7
    assert [line.split(", ")[0] for line in lines[:5]] == [answers[0][f"class_{rank}"] for rank in range(1, 6)]
    assert lines[5] == ""
    assert float(lines[6]) > 0
    assert "small/torch-onnx-script on onnxruntime: 6 inputs" in (folder / "execution_log.txt").read_text()
    assert "equivalent" in (folder / "summary.txt").read_text()


def test_a_second_run_repeats_nothing(room: Path) -> None:
    model = source(conversions=["onnx"])
    first = audit(room, model)
    second = audit(room, model)
    assert [row.ran.reused for row in first.rows] == [False, False]
    assert [row.ran.reused for row in second.rows] == [True, True]
    assert rows(second)["small/torch-onnx-dynamo@libraries"].verdict == "equivalent"
    photo = next((room / "photos").iterdir())
    Image.new("RGB", (30, 24), "red").save(photo)
    assert [row.ran.reused for row in audit(room, model).rows] == [False, False]


def test_other_models_run_when_one_cannot_be_loaded(room: Path) -> None:
    (room / "bad.onnx").write_bytes(b"\x00garbage" * 50)
    good = source(conversions=[{"via": ["torch-onnx-script"]}])
    result = audit(
        room,
        {"name": "bad", "path": "bad.onnx"},
        {"name": "missing", "path": "missing.onnx"},
        {"name": "broken", "factory": "mynets:broken", "inputs": [{"shape": SHAPE}]},
        {"name": "unweighted", "factory": "mynets:build", "weights": "none.pth", "inputs": [{"shape": SHAPE}]},
        good,
    )
    found = rows(result)
    assert result.exit_code == 3
    assert "bad.onnx can't be loaded as an ONNX model" in found["bad/source@libraries"].reason
    assert "no such model file" in found["missing/source@libraries"].reason
    assert "no such luck" in found["broken/source@libraries"].reason
    assert "no such weights file" in found["unweighted/source@libraries"].reason
    assert found["small/torch-onnx-script@libraries"].verdict == "equivalent"


@pytest.mark.workers
def test_a_converter_that_crashes_is_a_result(room: Path) -> None:
    routes = [{"via": ["torch-onnx-script", "onnx2torch"]}]
    crashing = source(name="crashing", factory="mynets:treacherous", kwargs={"deed": "crash"}, conversions=routes)
    result = audit(room, crashing, source(conversions=routes))
    found = rows(result)
    assert result.exit_code == 4
    crashed = found["crashing/torch-onnx-script@libraries"]
    assert crashed.verdict == "undeployable"
    assert crashed.problem is not None
    assert "SIGSEGV" in crashed.problem.message
    assert "native words before the end" in crashed.problem.last_words
    assert "crashed the worker process" in crashed.problem.explanation
    blocked = found["crashing/torch-onnx-script+onnx2torch@libraries"]
    assert blocked.verdict == "undeployable"
    assert "crashing/torch-onnx-script failed" in blocked.reason
    assert found["crashing/source@libraries"].ran.run is not None
    assert found["small/torch-onnx-script+onnx2torch@libraries"].verdict == "equivalent"
    assert not list((room / "generated" / "store").glob(".scratch*"))
    log = (result.folder / "errors" / "crashing__torch-onnx-script@libraries.log").read_text()
    assert "native words before the end" in log


@pytest.mark.slow  # it waits for the time limit, as test_workers.py does without an audit
@pytest.mark.workers
def test_a_converter_that_hangs_is_a_result(room: Path) -> None:
    routes = [{"via": ["torch-onnx-script"]}]
    hanging = source(name="hanging", factory="mynets:treacherous", kwargs={"deed": "hang"}, conversions=routes)
    result = audit(room, hanging, source(conversions=routes), limits={"seconds": 25})
    found = rows(result)
    assert result.exit_code == 4
    late = found["hanging/torch-onnx-script@libraries"]
    assert late.verdict == "undeployable"
    assert late.problem is not None
    assert "25 s" in late.problem.explanation
    assert found["small/torch-onnx-script@libraries"].verdict == "equivalent"
    assert not list((room / "generated" / "store").glob(".scratch*"))


def test_a_wrong_conversion_made_elsewhere_is_faulty(room: Path) -> None:
    import onnx
    from onnx import numpy_helper

    first = audit(room, source(conversions=[{"via": ["torch-onnx-script"]}]))
    path = room / "wrong.onnx"
    proto = onnx.load(str(first.folder / "models/small/torch-onnx-script/model.onnx"))
    weights = next(item for item in proto.graph.initializer if len(item.dims) == 4)
    weights.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weights) * 1.01, weights.name))
    onnx.save(proto, path)
    before = sha256_of(path)
    result = audit(room, source(), {"name": "elsewhere", "path": "wrong.onnx", "compare_with": "small"})
    row = rows(result)["elsewhere/source@libraries"]
    assert row.verdict == "faulty"
    assert result.exit_code == 1
    assert sha256_of(path) == before


def test_stages_and_switches_of_the_older_format(room: Path) -> None:
    result = audit(
        room,
        source(conversions=["noop_onnx", {"via": ["torch-onnx-script"]}]),
        source(name="left-out", skip_analysis=True),
        stages={"evaluate": False},
    )
    found = rows(result)
    assert list(found) == ["small/source@libraries", "small/torch-onnx-script@libraries"]
    assert found["small/torch-onnx-script@libraries"].verdict is None
    assert found["small/torch-onnx-script@libraries"].ran.run is not None
    both = source(conversions=["onnx", {"via": ["torch-onnx-script"]}])
    found = rows(audit(room, both, stages={"execute": False}))
    assert found["small/torch-onnx-dynamo@libraries"].reason == "not run (stage execute is off)"
    assert found["small/torch-onnx-script@libraries"].verdict == "equivalent", "what an earlier run did is evaluated"
    found = rows(audit(room, source(name="new", conversions=["onnx"]), stages={"convert": False}))
    assert list(found) == ["new/source@libraries", "new/torch-onnx-dynamo@libraries"], "an earlier run made it"
    found = rows(audit(room, source(seed=5, conversions=["onnx"]), stages={"convert": False}))
    assert list(found) == ["small/source@libraries"]
    (row,) = audit(room, source(seed=6), stages={"build": False}).rows
    assert "no earlier run built this model" in row.reason


def test_bad_photos_stop_the_models_that_need_them(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (room / "photos" / "text.jpg").write_text("I am no picture")
    tensors = np.random.default_rng(0).normal(size=(5, 3, 20, 14)).astype(np.float32)
    np.save(room / "x.npy", tensors)
    result = audit(room, source(), source(name="other", dataset={"tensors": "x.npy"}))
    found = rows(result)
    assert result.exit_code == 2
    assert "text.jpg" in found["small/source@libraries"].reason
    assert found["other/source@libraries"].ran.run is not None
    (room / "empty").mkdir()
    config = room / "c.json"
    config.write_text(json.dumps({"models": [source()], "dataset": {"folder": "empty"}}))
    assert main(["run", str(config), "-q"]) == 2
    assert "no photo" in capsys.readouterr().err


def test_data_that_do_not_fit_the_model_are_explained(room: Path) -> None:
    np.save(room / "x.npy", np.zeros((5, 3, 9, 9), np.float32))
    result = audit(room, source(dataset={"tensors": "x.npy"}))
    assert result.exit_code == 2
    assert "no array of the data fits input" in result.rows[0].reason


def test_interrupting_leaves_no_half_written_folder(room: Path) -> None:
    hanging = source(
        factory="mynets:treacherous", kwargs={"deed": "hang"}, conversions=[{"via": ["torch-onnx-script"]}]
    )
    config = room / "c.json"
    config.write_text(json.dumps({"models": [hanging], "dataset": {"folder": "photos"}, "name": "stopped"}))
    process = subprocess.Popen(
        [sys.executable, "-m", "conrepair", "run", str(config)],
        cwd=room,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Ignored where tests run in the background of a shell, and then in what they start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    store = room / "generated" / "store"
    deadline = time.monotonic() + 60
    while not list(store.glob("build-*")) and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1)  # the conversion hangs now
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "interrupted" in errors
    assert "Traceback" not in errors
    assert not (room / "generated" / "stopped").exists()
    assert list(store.glob("build-*")), "finished steps are kept"
    assert not list(store.glob(".scratch*"))
    deadline = time.monotonic() + 10
    while processes_of_session(process.pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not processes_of_session(process.pid), "no worker is left"


def processes_of_session(session: int) -> list[str]:
    """Command lines of the living processes of a session that was started for a test."""
    listing = subprocess.run(
        ["ps", "-o", "stat=,args=", "-s", str(session)], capture_output=True, text=True, check=False
    )
    return [line for line in listing.stdout.splitlines() if not line.startswith("Z")]
