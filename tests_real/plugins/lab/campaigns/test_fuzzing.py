"""A campaign on ONNX Runtime, from a worker's process to a program that shows what's wrong; and killed ones."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import onnx
import pytest
from fuzz_cases import compared_by_halves_of_any, right

from conrepair.application.cli.main import main
from conrepair_lab.campaigns.fuzz_database import DATABASE
from conrepair_lab.campaigns.fuzzing import FINDINGS
from conrepair_lab.report.fuzz.folder import FINDINGS as TOLD
from conrepair_lab.report.fuzz.folder import PAGE, read_finding

# Among five networks of this seed, one operator each, is a Min or Max of whole numbers.
GENERATED = ["--systems", "ort-none,ort-all", "--alone", "6", "--count", "4", "--nodes", "4"]


def files_of(root: Path) -> dict[str, bytes]:
    found = root / FINDINGS
    return {path.relative_to(found).as_posix(): path.read_bytes() for path in found.rglob("*") if path.is_file()}


@pytest.mark.workers
def test_a_kernel_of_onnx_runtime_is_found_and_a_program_shows_it(tmp_path: Path) -> None:
    for name, case in (("wrong", compared_by_halves_of_any()), ("right", right())):
        onnx.save(case.model, tmp_path / f"{name}.onnx")
    files = [str(tmp_path / "wrong.onnx"), str(tmp_path / "right.onnx")]
    systems = "ort-none,ort-all,convert-version"
    assert main(["fuzz", *files, "--systems", systems, "-o", str(tmp_path / "out"), "-q"]) == 1
    (folder,) = (tmp_path / "out" / FINDINGS).iterdir()
    finding = read_finding(folder)
    assert (finding.system, finding.operators, finding.cause.plainly) == ("ort", ("Max",), True)
    assert finding.judges == "ONNX's reference in float64 and torch-eager"
    shown = subprocess.run([sys.executable, folder / "reproduce.py"], capture_output=True, text=True, cwd=tmp_path)
    assert shown.returncode == 1, shown.stderr
    assert "right is" in shown.stdout
    counts = json.loads((tmp_path / "out" / TOLD).read_text(encoding="utf-8"))["counts"]
    assert counts["convert-version"] == {"right": 3}, "what ONNX Runtime gives is right for a converter"


@pytest.mark.slow
def test_ten_kills_lose_and_double_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "conrepair", "fuzz", *GENERATED, "--seed", "5", "-q", "-o"]
    assert subprocess.run([*command, str(tmp_path / "whole")]).returncode in {0, 1}
    for place in range(10):
        process = subprocess.Popen([*command, str(tmp_path / "killed")])
        time.sleep(1 + 0.7 * place)
        process.kill()
        process.wait()
    assert subprocess.run([*command, str(tmp_path / "killed")]).returncode in {0, 1}
    whole, killed = (json.loads((tmp_path / name / "findings.json").read_text()) for name in ("whole", "killed"))
    assert whole["counts"] == killed["counts"]
    assert [item["key"] for item in whole["findings"]] == [item["key"] for item in killed["findings"]]
    assert whole["suspicions"] == killed["suspicions"]


def tried(database: Path) -> int:
    try:
        with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as opened:
            return int(opened.execute("select count(*) from tries").fetchone()[0])
    except sqlite3.Error:
        return 0


@pytest.mark.slow
@pytest.mark.workers
def test_a_killed_campaign_ends_as_one_that_was_not(tmp_path: Path) -> None:
    files = []
    for name, made in (("wrong", compared_by_halves_of_any()), ("right", right())):
        files.append(str(tmp_path / f"{name}.onnx"))
        onnx.save(made.model, files[-1])
    words = ["fuzz", *files, "--systems", "ort-none,ort-all", "--reduce", "5", "-j", "1", "-q", "-o"]
    command = [sys.executable, "-m", "conrepair", *words]
    assert subprocess.run([*command, tmp_path / "whole"], check=False).returncode == 1
    killed = tmp_path / "killed"
    process = subprocess.Popen([*command, killed], start_new_session=True)
    limit = time.monotonic() + 120
    while not tried(killed / DATABASE) and process.poll() is None and time.monotonic() < limit:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (killed / PAGE).exists(), "it was killed on the way"
    assert subprocess.run([*command, killed], check=False).returncode == 1
    one, two = (json.loads((tmp_path / name / TOLD).read_text()) for name in ("whole", "killed"))
    for name in ("findings", "counts", "suspicions", "seen_in", "over"):
        assert one[name] == two[name]
    assert files_of(tmp_path / "whole") == files_of(killed)
    assert not [path for path in killed.iterdir() if path.name.startswith(".fuzzing-")], "what it left is gone"
