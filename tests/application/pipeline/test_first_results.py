"""What an audit says before it's done, and what it doesn't wait for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx_networks
import pytest
from localized import Variant

from conrepair.application.config.load import parse_config
from conrepair.application.pipeline.audit import run_audit
from conrepair.application.report.result import AuditResult
from conrepair.ground.runtime.shown.progress import ProgressDisplay
from conrepair.verdicts.evaluate.verdict import Verdict


class _Noting(ProgressDisplay):
    """Keeps what is said, and which stages begin, in their order."""

    def __init__(self) -> None:
        super().__init__(quiet=True)
        self.said: list[str] = []

    def note(self, text: str) -> None:
        self.said.append(text)

    def stage(self, name: str, total: int, *, long: bool = False) -> Any:
        if total:
            self.said.append(name)
        return super().stage(name, total, long=long)


def audited(folder: Path, models: list[dict[str, Any]], **more: Any) -> tuple[AuditResult, list[str]]:
    value = {"output": "generated", "dataset": {"synthetic": {"samples": 6}}, "batch_size": 2, "models": models}
    with _Noting() as display:
        return run_audit(parse_config({**value, **more}, "a test"), folder, display), display.said


def test_what_needs_no_conversion_is_said_before_conversions_begin(tmp_path: Path) -> None:
    for name in ("right", "same"):
        Variant(size=(12, 12)).write(tmp_path / f"{name}.onnx")
    models = [
        {"name": "right", "path": "right.onnx", "conversions": ["keras"]},
        {"name": "same", "path": "same.onnx", "compare_with": "right"},
    ]
    result, said = audited(tmp_path, models)
    first = said.index("converting")
    assert any(line.startswith("same on ONNX Runtime: equivalent") for line in said[:first])
    assert any(line.startswith("right on ONNX Runtime: the original") for line in said[:first])
    assert [row.verdict for row in result.rows if row.kind == "target"] == [Verdict.EQUIVALENT] * 2


def test_nothing_is_said_twice_where_nothing_is_waited_for(tmp_path: Path) -> None:
    Variant(size=(12, 12)).write(tmp_path / "net.onnx")
    _, said = audited(tmp_path, [{"name": "net", "path": "net.onnx"}])
    assert said.count("running models") == 1
    assert not any(line.startswith("net on") for line in said)


@pytest.mark.parametrize("seconds", [1e-6, 600.0, None])
def test_a_slow_device_gets_the_samples_that_it_has_time_for(tmp_path: Path, seconds: float | None) -> None:
    onnx_networks.residual(tmp_path / "net.onnx")
    backends = ["libraries", *({"name": "tvm", "target": "llvm", "setting": name} for name in ("O0", "O1"))]
    models = [{"name": "net", "path": "net.onnx", "backends": backends}]
    result, _ = audited(tmp_path, models, limits={"compiled_seconds": seconds})
    assert [row.verdict for row in result.rows] == [None, Verdict.EQUIVALENT, Verdict.EQUIVALENT]
    runs = [row.ran.run for row in result.rows]
    whole = seconds != 1e-6
    assert [run and run.count for run in runs] == ([6, 6, 6] if whole else [6, 2, 2])
    assert [run and {len(array) for array in run.arrays.values()} for run in runs[1:]] == [{6 if whole else 2}] * 2
    assert any("net: ran on 2 of 6 samples on tvm-llvm-O0" in note for note in result.notes) is not whole
    assert len(result.pairs) == 1
