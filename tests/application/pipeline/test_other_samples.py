"""Where all samples say more than those whose layers were looked at: the ones that differ most are looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rewritten_networks as networks

from conrepair.application.config.load import parse_config
from conrepair.application.pipeline.audit import run_audit
from conrepair.application.report.result import Row
from conrepair.ground.runtime.shown.progress import ProgressDisplay
from conrepair.verdicts.evaluate.verdict import Verdict

pytestmark = pytest.mark.timeout(180)

SHOWS = 9  # the only sample whose values reach the bound


def files(folder: Path, shows: int = SHOWS) -> list[dict[str, Any]]:
    """A table of which the target has one row wrong; one sample reads that row."""
    table = networks.drawn(12, 5, seed=1)
    other = table.copy()
    other[shows] *= -1
    for name, rows in (("source", table), ("target", other)):
        text = "small (int64[batch] ids) => (float[batch, 4] y) { h = Gather (table, ids)\n y = MatMul (h, w) }"
        networks.written(folder / f"{name}.onnx", text, {"table": rows, "w": networks.drawn(5, 4, seed=2)})
    np.savez(folder / "data.npz", ids=np.arange(12))
    return [
        {"name": "source", "path": "source.onnx"},
        {"name": "target", "path": "target.onnx", "compare_with": "source"},
    ]


def audited(folder: Path, shows: int = SHOWS, **stages: bool) -> Row:
    value = {
        "models": files(folder, shows),
        "stages": stages,
        "dataset": {"tensors": "data.npz"},
        "localize": {"samples": 3, "when": "always"},
        "repair": {"advice_seconds": 0},
    }
    return run_audit(parse_config(value, "test"), folder, ProgressDisplay(quiet=True)).rows[-1]


def test_the_samples_that_differ_most_are_looked_at(tmp_path: Path) -> None:
    row = audited(tmp_path, localize=True)
    assert row.verdict is Verdict.FAULTY
    found = row.localized.result
    assert found is not None
    assert found.verdict is Verdict.FAULTY, found.reason
    assert found.first[0] == SHOWS
    assert found.faults[0].target_layers[0] == "h"


def test_samples_are_spread_over_the_data(tmp_path: Path) -> None:
    """As a folder of photos has one class behind the other: the first three of twelve would be of one."""
    found = audited(tmp_path, shows=8, localize=True).localized.result
    assert found is not None
    assert (found.samples, found.first) == (3, ())
    assert found.faults[0].target_layers[0] == "h"


def test_a_repair_looks_at_them_too(tmp_path: Path) -> None:
    row = audited(tmp_path, localize=True, repair=True)
    assert row.repaired.result is not None
    assert row.repaired.result.mended, row.repaired.result.after.reason
    assert row.repaired.result.unseen_after.error == 0.0
