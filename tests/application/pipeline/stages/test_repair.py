"""A repair runs what wasn't run before, and nothing twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_networks import drawn, written

import conrepair
from conrepair.application.jobs import execution
from conrepair.application.jobs.values import RunRecord, RunRequest
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.diagnosis.repairs import verify
from conrepair.formats.models.model import Model
from conrepair.formats.models.runnable import Runnable
from conrepair.verdicts.evaluate.verdict import Verdict


@pytest.mark.parametrize("behind", ["", "b = Abs (a)"])
def test_what_is_known_is_not_run_again(behind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executed, proven = [], []
    execute, answers = execution.executed, verify.Unseen.answers

    def noted(folder: Path, model: Model, request: RunRequest, runnable: Runnable) -> RunRecord:
        executed.append(Path(model.path).stem)
        return execute(folder, model, request, runnable)

    def proved(self: verify.Unseen, subject: FedModel, model: Model) -> Iterator[verify.SampledAnswers]:
        proven.append(Path(model.path).stem)
        return answers(self, subject, model)

    monkeypatch.setattr(execution, "executed", noted)
    monkeypatch.setattr(verify.Unseen, "answers", proved)
    layers = "a = LeakyRelu <alpha = {alpha}> (x) {behind} y = MatMul (a, w)"
    text = f"net (float[n, 16] x) => (float[n, 16] y) {{{{ {layers} }}}}"
    sides = [("right", 0.1, ""), ("wrong", 0.5, behind)]  # an operator that leads nowhere stays
    paths: list[Any] = [
        written(tmp_path / f"{name}.onnx", text.format(alpha=alpha, behind=more), {"w": drawn(16, 16)})
        for name, alpha, more in sides
    ]
    found = conrepair.repair(*paths, in_process=True)
    repaired = found.run.rows[-1].repaired
    assert found.mended
    assert repaired.verdict is Verdict.EQUIVALENT
    assert repaired.result is not None
    assert (repaired.result.unseen_after.samples, repaired.result.unseen_after.error) == (64, 0)
    again = ["repaired"] if behind else []
    assert proven == again
    assert executed == ["right", "right", "wrong", *again]  # the source in another arithmetic, too


def test_answers_that_depend_on_their_batch_are_proved_in_the_same_batches(tmp_path: Path) -> None:
    layers = "m = MatMul (x, w) d = Add (m, b) a = Relu (d) s = ReduceMean <axes = [0]> (a) {behind} y = Sub (a, s)"
    text = f"net (float[n, 16] x) => (float[n, 16] y) {{{{ {layers} }}}}"
    shift = np.where(np.arange(16) < 2, 0.4, 0).astype(np.float32)
    sides = [("right", shift * 0, ""), ("wrong", shift, "e = Abs (s)")]  # never the same graph
    paths: list[Any] = [
        written(tmp_path / f"{name}.onnx", text.format(behind=behind), {"w": drawn(16, 16), "b": bias})
        for name, bias, behind in sides
    ]
    found = conrepair.repair(*paths, in_process=True)
    repaired = found.run.rows[-1].repaired
    assert found.mended
    assert repaired.result is not None
    assert repaired.result.unseen_after.error == 0
