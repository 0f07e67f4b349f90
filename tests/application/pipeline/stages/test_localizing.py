"""The stage that names layers at fault, in whole audits; and which step of a route a fault came in at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import rewritten_networks as networks
from documents import localized_in

from conrepair.application.cli import main
from conrepair.application.config.load import parse_config
from conrepair.application.pipeline.audit import run_audit
from conrepair.application.report.result import AuditResult, Row
from conrepair.ground.runtime.errors import ExitCode
from conrepair.ground.runtime.shown.progress import ProgressDisplay
from conrepair.verdicts.evaluate.verdict import Verdict

pytestmark = pytest.mark.timeout(180)


def audit(folder: Path, *models: dict[str, Any], **changes: Any) -> AuditResult:
    value = {
        "models": list(models),
        "stages": {"localize": True},
        "dataset": {"synthetic": {"samples": 6}},
        "batch_size": 4,
    }
    return run_audit(parse_config(value | changes, "test"), folder, ProgressDisplay(quiet=True))


def by_name(result: AuditResult) -> dict[str, Row]:
    return {row.model: row for row in result.rows}


def test_targets_that_differ_are_localized(tmp_path: Path) -> None:
    source = networks.residual_blocks(tmp_path / "source.onnx", 2)
    networks.renamed(source, tmp_path / "same.onnx")
    names = networks.renamed(networks.damaged(source, tmp_path / "d.onnx", ["two1"]), tmp_path / "faulty.onnx")
    before = source.read_bytes(), (tmp_path / "faulty.onnx").read_bytes()
    models = [
        {"name": "source", "path": "source.onnx"},
        {"name": "same", "path": "same.onnx", "compare_with": "source"},
        {"name": "faulty", "path": "faulty.onnx", "compare_with": "source"},
    ]
    result = by_name(audit(tmp_path, *models))
    assert result["same"].verdict is Verdict.EQUIVALENT
    assert result["same"].localized.result is None
    found = result["faulty"].localized.result
    assert found is not None
    assert (found.verdict, found.samples, len(found.faults)) == (Verdict.FAULTY, 6, 1)
    assert (found.faults[0].source_tensor, found.faults[0].target_tensor) == ("c1", names["c1"])
    assert found.faults[0].step == ""  # nobody said how it was made
    again = by_name(audit(tmp_path, *models, localize={"when": "always", "samples": 3}))
    clean, faulty = again["same"].localized.result, again["faulty"].localized.result
    assert clean is not None
    assert (clean.verdict, clean.faults, clean.samples) == (Verdict.EQUIVALENT, (), 3)
    assert faulty is not None
    assert [fault.source_tensor for fault in faulty.faults] == ["c1"]
    assert (source.read_bytes(), (tmp_path / "faulty.onnx").read_bytes()) == before


def test_a_target_that_cannot_be_compared_layer_by_layer_says_why(tmp_path: Path) -> None:
    """Both have batches of their own, and the source has numbers for each of its samples: it takes no other batch."""
    text = "small (float[{}, 4] x) => (float[{}, 4] y) {{ h = MatMul (x, w)\n y = Add (h, each) }}"
    for name, batch, seed in (("source", 2, 0), ("target", 3, 1)):
        numbers = {"w": networks.drawn(4, 4, seed=seed), "each": networks.drawn(batch, 4, seed=seed)}
        networks.written(tmp_path / f"{name}.onnx", text.format(batch, batch), numbers)
    models = [
        {"name": "source", "path": "source.onnx"},
        {"name": "target", "path": "target.onnx", "compare_with": "source"},
    ]
    row = by_name(audit(tmp_path, *models))["target"]
    assert row.verdict is Verdict.FAULTY
    assert row.localized.result is None
    assert row.localized.problem is not None
    assert "fixed batches of 2 and 3" in row.localized.problem.message


def hardmax(path: Path) -> Path:
    """Opset 11: ONNX's version converter forgets that Hardmax joins the axes behind its axis."""
    text = """small (float[batch, 3, 8] x) => (float[batch, 3, 8] y) {
        [before] h = MatMul (x, w)
        [hard] m = Hardmax <axis = 1> (h)
        s = Add (m, h)
        [behind] y = Tanh (s)
    }"""
    return networks.written(path, text, {"w": networks.drawn(8, 8)}, opset=11)


CONVERTER = "onnx-version-converter"
OPTIONS = {CONVERTER: {"opset": 13}}


@pytest.mark.parametrize(
    ("via", "row", "step"),
    [
        ([CONVERTER, "onnx-onnxslim"], f"{CONVERTER},opset=13+onnx-onnxslim", f"{CONVERTER},opset=13"),
        (["onnx-onnxsim", CONVERTER], f"onnx-onnxsim+{CONVERTER},opset=13", f"{CONVERTER},opset=13"),
    ],
)
def test_the_step_that_a_fault_came_in_at(via: list[str], row: str, step: str, tmp_path: Path) -> None:
    hardmax(tmp_path / "net.onnx")
    model = {"name": "net", "path": "net.onnx", "conversions": [{"via": via, "options": OPTIONS}]}
    result = audit(tmp_path, model)
    [last] = [item for item in result.rows if item.conversion == row]
    assert last.localized.result is not None
    [fault] = last.localized.result.faults
    assert fault.step == step
    assert fault.source_layers[0] == "hard"


def test_steps_of_files_that_are_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A faulty model made by hand: the first step is to blame for one fault, the second for the other."""
    source = networks.residual_blocks(tmp_path / "source.onnx", 2)
    networks.damaged(source, tmp_path / "between.onnx", ["two0"])
    networks.damaged(tmp_path / "between.onnx", tmp_path / "target.onnx", ["dense"])
    files = [str(tmp_path / f"{name}.onnx") for name in ("source", "target", "between")]
    command = [
        "localize",
        *files[:2],
        "--intermediate",
        files[2],
        "--output",
        str(tmp_path / "out"),
        "--format",
        "json",
    ]
    assert main([*command, "-q"]) == ExitCode.DIFFERENT
    row = json.loads(capsys.readouterr().out)["rows"][-1]
    steps = {fault["source_tensor"]: fault["step"] for fault in localized_in(row)["faults"]}
    assert steps == {"c0": "between.onnx", "y": "target.onnx"}
