"""What's filed has what maintainers ask for: versions, expected and given, how to see it, and a workaround."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
from fuzz_cases import compared_by_halves, padded_pool, right
from fuzz_findings import comparing, finding_of

from conrepair_lab.cases.case import Case
from conrepair_lab.fuzz.cause import Cause
from conrepair_lab.fuzz.suspicion import Suspicion
from conrepair_lab.report.fuzz.folder import issue_text


def test_numbers_with_expected_given_and_tolerances(tmp_path: Path) -> None:
    finding = comparing(tmp_path)
    text = issue_text(finding, compared_by_halves())
    assert text.startswith(f"# {finding.title}\n")
    assert f"onnxruntime {finding.versions['onnxruntime']}" in text
    assert f"- given: {finding.suspicion.given!r}" in text
    assert f"- exactly: {finding.suspicion.exact!r}" in text
    assert "NumPy's default): fails" in text
    assert "Min (x, c)" in text
    assert "python reproduce.py" in text
    assert "optimizations off, too" in text


def test_what_usual_tolerances_do_not_see_is_said(tmp_path: Path) -> None:
    small = Suspicion("numbers", "answers", "", "y is off", "", "y", (0,), 1.000001, 1.0, 1e-8, 100.0)
    text = issue_text(comparing(tmp_path, suspicion=small), compared_by_halves())
    assert "NumPy's default): passes" in text
    nan = dataclasses.replace(small, kind="not finite", given=float("nan"))
    assert "NumPy's default): fails" in issue_text(comparing(tmp_path, suspicion=nan), compared_by_halves())


def test_a_workaround_is_code(tmp_path: Path) -> None:
    cause = Cause(causes=(("Pad_Fusion",),), heals=(("Pad_Fusion",),), lines=("options.off = ['Pad_Fusion']",))
    text = issue_text(finding_of(padded_pool(), "ort-all", tmp_path, cause=cause), padded_pool())
    assert "It happens only with: `Pad_Fusion`" in text
    assert "```python\noptions.off = ['Pad_Fusion']\n```" in text
    assert "off, too" not in text


def test_an_exceptions_words_break_no_code(tmp_path: Path) -> None:
    thrown = Suspicion("exception", "load", "Fail", "no `a` and ```b```")
    text = issue_text(finding_of(right(), "ort-all", tmp_path, suspicion=thrown), right())
    assert text.count("```") % 2 == 0
    assert "no 'a' and '''b'''" in text


def test_a_large_network_is_not_printed(tmp_path: Path) -> None:
    model = right().model
    for place in range(60):
        model.graph.node.add(op_type="Relu", input=["x"], output=[f"more{place}"])
    text = issue_text(comparing(tmp_path), Case.of(model, {"x": np.ones(2, np.float32)}))
    assert "more59" not in text
