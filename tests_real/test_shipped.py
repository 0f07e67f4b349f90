"""The shipped audit on real networks and photos, as `python3 main.py` runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from documents import rows_in

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
@pytest.mark.network
def test_the_shipped_audit(tmp_path: Path) -> None:
    def run() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "main.py", "config.json", "--output", str(tmp_path / "out")]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    first = run()
    assert first.returncode == 0, first.stderr
    rows = rows_in(tmp_path / "out" / "shipped")
    verdicts = {f"{row['name']}@{row['backend']}": row["verdict"] for row in rows}
    correct = {name: verdict for name, verdict in verdicts.items() if "uint8" not in name and verdict is not None}
    compiled = {label for name, _, label in (key.partition("@") for key in correct) if "compiled" in name}
    devices = {"tvm-opencl-O2"} & compiled  # where there's one
    assert compiled - devices == {f"tvm-llvm-O{level}" for level in range(4)}
    assert len(correct) == 20 + len(devices)
    assert set(correct.values()) <= {"equivalent", "noise"}
    assert verdicts["efficientnet_lite0_uint8/source@libraries"] == "quantized"
    quantized = next(row for row in rows if row["verdict"] == "quantized")
    answers = quantized["comparison"]["outputs"][0]["answers"]
    assert 0.02 < answers["top1_differs"] / answers["samples"] < 0.25
    accuracy = {row["name"]: row["ran"]["accuracy"] for row in rows}
    for name in ("efficientnet_lite0/source", "mobilenet_v2/source"):
        assert accuracy[name][0] >= 16  # of 20: the networks are the trained ones, the preprocessing theirs

    second = run()
    assert second.returncode == 0, second.stderr
    rows = rows_in(tmp_path / "out" / "shipped")
    assert all(row["ran"]["reused"] for row in rows)
