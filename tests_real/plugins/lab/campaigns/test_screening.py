"""Campaigns that screen patterns by ONNX Runtime itself: known gaps of its fusions are findings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from conrepair_lab.campaigns.fuzz_database import DATABASE, Database
from conrepair_lab.generate.patterns.pattern import patterns
from conrepair_lab.options.fuzz import Fuzz
from conrepair_lab.runs.fuzzing import fuzz


def asked(*names: str, systems: tuple[str, ...] = ("ort-all",), screen: int = 1) -> Fuzz:
    others = {name: 0.0 for name in patterns() if name not in names}
    return Fuzz(systems=systems, screen=screen, alone=0, count=0, workers=1, patterns=others)


def test_gaps_of_fusions_are_findings_with_switch_and_program(tmp_path: Path) -> None:
    names = ("layer norm of a sum", "pad and pool", "one dequantized tensor for two", "rms norm written out")
    summary = fuzz(asked(*names), tmp_path / "fuzz", quiet=True)
    found = {(item.suspicion.kind, causes) for item in summary.findings for causes in item.cause.causes}
    assert {
        ("numbers", ("SkipLayerNormFusion",)),  # an axis that isn't the last one
        ("exception", ("SkipLayerNormFusion",)),  # a scale of one element
        ("numbers", ("Pad_Fusion",)),  # zeros around what is negative
        ("exception", ("QDQSelectorActionTransformer",)),  # scales of shape (1)
        ("exception", ("SimplifiedLayerNormFusion",)),  # a scale that widens the result
    } <= found
    first = next(item for item in summary.findings if item.cause.causes == (("SkipLayerNormFusion",),))
    assert "disabled_optimizers=['SkipLayerNormFusion']" in first.cause.lines[0]
    program = tmp_path / "fuzz" / "findings" / first.name / "reproduce.py"
    shown = subprocess.run([sys.executable, program], capture_output=True, text=True)
    assert shown.returncode == 1, shown.stderr


@pytest.mark.workers
def test_a_network_that_ends_its_process_costs_itself(tmp_path: Path) -> None:
    """Repeats below zero end ONNX Runtime, which is no finding, as nobody computes them."""
    request = asked("tiled and sliced")
    summary = fuzz(request, tmp_path / "fuzz", quiet=True)
    assert summary.over
    assert not summary.findings
    with Database(tmp_path / "fuzz" / DATABASE, request.identity | {"own": []}) as database:
        (told,) = database.screened().values()
    assert told["networks"] > told["computed"] > 40


def test_an_optimizer_of_files_is_screened_too(tmp_path: Path) -> None:
    names = ("reshape that copies a size", "operator without effect")
    summary = fuzz(asked(*names, systems=("convert-onnxoptimizer",), screen=2), tmp_path / "fuzz", quiet=True)
    assert summary.screened["convert-onnxoptimizer"] > 100
    assert all(item.system == "convert" for item in summary.findings)
    assert summary.findings
