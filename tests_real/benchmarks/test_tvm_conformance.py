"""ONNX's cases through TVM: what's wrong is TVM's fault only where another implementation says so."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from benchmarks import tvm_conformance
from benchmarks.tvm_conformance import Outcome


@pytest.mark.parametrize(
    ("others", "fault"),
    [
        ("ONNX Runtime agrees with ONNX, onnx.reference agrees with ONNX", "yes"),
        ("ONNX Runtime differs, too, onnx.reference agrees with ONNX", "no"),
        ("ONNX Runtime can't (Fail), onnx.reference agrees with ONNX", "yes, by the reference alone"),
        ("ONNX Runtime can't (Fail), onnx.reference differs, too", "not known"),
    ],
)
def test_whose_fault(others: str, fault: str) -> None:
    assert Outcome("case", "Cast", "wrong", "", others).fault == fault


def test_the_table_of_some_operators(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "table.md"
    monkeypatch.setattr(sys, "argv", ["tvm_conformance", "Abs", "BatchNormalization", "Det", "-o", str(table)])
    assert tvm_conformance.main() == 1
    text = table.read_text()
    assert re.search(r"\| Abs \| 1 \|  \|  \|  \|  \|", text)
    assert re.search(r"\| BatchNormalization \| 2 \|  \| 2 \|", text)
    assert re.search(r"\| Det \|  \|  \|  \| 2 \|", text)
    assert "TVM's fault? yes: 2." in text
    assert text.count("| wrong | ") == 3  # the heading, too
    assert text.count("| yes |") == 2
