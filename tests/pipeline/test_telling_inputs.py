"""Inputs of which nothing but NaN comes tell nothing: others are drawn."""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from onnx_networks import drawn, written

from conrepair.cli import main
from conrepair.config.load import parse_config
from conrepair.config.model import AuditConfig
from conrepair.metrics.tensors import compare_tensors
from conrepair.pipeline.telling_inputs import run_on_telling_inputs
from conrepair.report.result import AuditResult

LOGARITHM = "small (float[batch, 8] x) => (float[batch, 3] y) { [log] l = Log (x) [mm] y = MatMul (l, w) }"


def config(**dataset: object) -> AuditConfig:
    content = {
        "output": "out",
        "dataset": dataset or {"synthetic": {"samples": 2}},
        "models": [{"name": "m", "path": "m.onnx"}],
    }
    return parse_config(content, "test")


def result(*values: float) -> AuditResult:
    """Of one target, whose output is the source's."""
    array = np.array(values)
    item = SimpleNamespace(error=compare_tensors(array, array, rtol=0, atol=0))
    row = SimpleNamespace(kind="target", comparison=SimpleNamespace(outputs=(item,)))
    return cast(Any, SimpleNamespace(rows=(SimpleNamespace(kind="reference", comparison=None), row)))


def tried(
    chosen: AuditConfig, answers: list[AuditResult]
) -> tuple[AuditResult, list[tuple[float, float]], list[str]]:
    """What comes of it, the ranges that were run, and what was left in use."""
    ranges, used, answer = list[tuple[float, float]](), list[str](), iter(answers)

    def run(given: AuditConfig, use: contextlib.ExitStack) -> AuditResult:
        synthetic = None if given.dataset is None else given.dataset.synthetic
        ranges.append((0, 0) if synthetic is None else (synthetic.low, synthetic.high))
        use.callback(used.append, f"run {len(ranges)}")
        return next(answer)

    with contextlib.ExitStack() as stack:
        found = run_on_telling_inputs(chosen, run, stack, lambda _: None)
        kept = {f"run {place}" for place in range(1, len(ranges) + 1)} - {*used}
    return found, ranges, sorted(kept)


NOTHING, SOMETHING = result(np.nan, np.inf, 1.0), result(np.nan, 1.0)


@pytest.mark.parametrize(
    ("answers", "ranges"),
    [
        ([SOMETHING], 1),
        ([NOTHING, SOMETHING], 2),
        ([NOTHING, NOTHING, SOMETHING], 3),
    ],
)
def test_the_first_that_tells_something(answers: list[AuditResult], ranges: int) -> None:
    found, run, kept = tried(config(), answers)
    assert found is SOMETHING
    assert len(run) == ranges
    assert run[0] == (-1, 1)
    assert kept == [f"run {ranges}"], "what its result needs stays, all else is let go"


def test_where_none_does_it_is_the_one_that_was_asked_for() -> None:
    first = result(np.nan)
    found, run, kept = tried(config(), [first, NOTHING, NOTHING, NOTHING])
    assert (found, kept) == (first, ["run 1"])
    assert len({*run}) == 4


@pytest.mark.parametrize("dataset", [{"synthetic": {"low": -3.0}}, {"tensors": "inputs.npz"}])
def test_inputs_that_somebody_wants_are_these(dataset: dict[str, Any]) -> None:
    assert tried(config(**dataset), [NOTHING])[0] is NOTHING


@pytest.mark.parametrize(("verb", "code"), [("compare", 1), ("localize", 1), ("repair", 0)])
def test_a_logarithm_gets_inputs_that_it_takes(
    verb: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    weights = drawn(8, 3, seed=1)
    paths = [written(tmp_path / f"{name}.onnx", LOGARITHM, {"w": weights * name}) for name in (1, 2)]
    monkeypatch.chdir(tmp_path)
    assert main([verb, *map(str, paths), "-o", "out"]) == code
    assert "inputs from 0.05 to 1 are tried" in capfd.readouterr().err
