"""The table of verdicts: what's said of answers, of layers, and of a repair, by one look at each pair of models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from verdict_table import CASES, Case

from conrepair.application.engine.session import Session
from conrepair.application.pipeline.pair import compare_pair, localize_pair, pair_of, repair_pair
from conrepair.application.verbs.options import Compare, Localize, Repair

_VERBS: Any = {
    "compare": (Compare, compare_pair, {}),
    "localize": (Localize, localize_pair, {}),
    "repair": (Repair, repair_pair, {"advice": 0}),
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_is_said_of_two_models(case: Case, tmp_path: Path) -> None:
    called = {"source": case.source, "target": case.target}
    source, target = (case.make(tmp_path / f"{name}.onnx", **told) for name, told in called.items())
    options, look, usual = _VERBS[case.verb]
    with Session(tmp_path / "room", in_process=True) as session:
        found = look(
            pair_of(options(source, target, **usual, **case.options), tmp_path / "given", shown=True), session
        )
        row, layers = found.row, found.row.localized.result
        assert row.verdict == case.says, row.reason
        told = [row.reason, *found.notes, *(note for output in row.comparison.outputs for note in output.notes)]
        if case.verb != "compare":
            assert layers.verdict == case.says, layers.reason
            assert not (found.faults and layers.is_right)
            told += [layers.reason]
        assert any(case.reason in words for words in told), told
        assert not any("ONNXRuntimeError" in words for words in told), told
        if case.layer or case.evidence:
            first = found.faults[0]
            assert case.layer in ("", first.target_layers[0])
            assert case.evidence in f"{first.kind.value}: {' '.join(first.evidence)}"
        if case.verb == "repair":
            assert found.mended
            assert (found.result is not None) == bool(case.repaired)
        if case.repaired:
            assert case.repaired in found.reason
            assert found.result.after.faults == ()
            again = Compare(source, found.model, seed=1, **case.options)
            assert compare_pair(pair_of(again, tmp_path / "again"), session).verdict.is_right
