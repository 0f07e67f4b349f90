"""Benchmarks that stand alone still run: the smallest case of each."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        pytest.param("onnx_conformance Asinh", "| Asinh | 2 |", marks=pytest.mark.slow),
        pytest.param("imported_mobilenet --rounds 1 --batch 1 --target 100", "ratio", marks=pytest.mark.slow),
        pytest.param("throughput --repeats 1 --copies 1", "ratio", marks=pytest.mark.slow),
        pytest.param("tvm_cost --rounds 2 --target llvm", "overhead", marks=pytest.mark.slow),
        pytest.param("localization_cost --repeats 1 --photos 4", "ratio", marks=pytest.mark.slow),
        pytest.param("onnx_to_keras recurrent", "recurrent network", marks=pytest.mark.slow),
    ],
)
def test_it_runs(words: str, shown: str) -> None:
    name, *more = words.split()
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}", *more], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr, done.stderr[-2000:]
    assert shown in done.stdout, done.stdout[-2000:] + done.stderr[-2000:]
