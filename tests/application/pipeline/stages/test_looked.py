"""A comparison that writes no report runs as many inputs as its verdict needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest

import conrepair
from conrepair.application.engine.session import Session
from conrepair.application.jobs import execution, localization
from conrepair.application.pipeline import run
from conrepair.application.pipeline.pair import compare_pair, pair_of
from conrepair.application.report.result import AuditResult
from conrepair.application.verbs.options import Compare

FAULTY = "faulty"


def _net(path: Path, weights: npt.NDArray[np.float32], behind: str = "y = Relu (h)") -> str:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> '
        f"g (float[n, 8] x) => (float[n, 8] y) {{ h = MatMul (x, w) {behind} }}"
    )
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    onnx.save(model, path)
    return str(path)


WEIGHTS = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)


def _compared(source: str, target: str, *, shown: bool = False, **more: Any) -> AuditResult:
    pair = pair_of(Compare.of({"source": source, "target": target, **more}), shown=shown)
    with Session(in_process=True) as session:
        return compare_pair(pair, session).run


def _counts(found: AuditResult) -> set[int]:
    return {row.ran.run.count for row in found.rows if row.ran.run is not None}


@pytest.fixture
def source(tmp_path: Path) -> str:
    return _net(tmp_path / "source.onnx", WEIGHTS)


@pytest.fixture
def wrong(tmp_path: Path) -> str:
    return _net(tmp_path / "wrong.onnx", WEIGHTS * np.float32(1.5))


def test_the_first_inputs_say_what_is_wrong_by_far(source: str, wrong: str) -> None:
    found = _compared(source, wrong)
    row = found.rows[-1]
    assert _counts(found) == {4}
    assert row.verdict == conrepair.compare(source, wrong, in_process=True).verdict == FAULTY
    assert row.comparison is not None
    assert row.comparison.outputs[0].error.relative_l2 == pytest.approx(0.5)
    assert any(
        "the first 4 of 32 samples show that it differs" in note and "--samples 32" in note for note in found.notes
    )


@pytest.mark.parametrize("more", [{"shown": True}, {"samples": 32}, {"metrics": ["mean"]}])
def test_all_run_where_somebody_wants_to_know(source: str, wrong: str, more: dict[str, Any], tmp_path: Path) -> None:
    if "metrics" in more:
        (tmp_path / "own.py").write_text("def mean(one, two):\n    return float(abs(one - two).mean())\n")
        more = {"metrics": [f"{tmp_path / 'own.py'}:mean"], "trust": True}
    found = _compared(source, wrong, **more)
    assert _counts(found) == {32}
    assert not any("show that it differs" in note for note in found.notes)


@pytest.mark.parametrize(
    ("factor", "behind"),
    [
        (1.0, "y = Relu (h)"),
        (1.0001, "y = Relu (h)"),
        (1.05, "y = Relu (h)"),
        (1.0, "n = RandomNormalLike (h) y = Add (h, n)"),
    ],
)
def test_more_run_where_these_leave_it_open(source: str, factor: float, behind: str, tmp_path: Path) -> None:
    target = _net(tmp_path / "target.onnx", WEIGHTS * np.float32(factor), behind)
    found = _compared(source, target)
    assert _counts(found) == {32}
    whole = _compared(source, target, shown=True)
    assert [(row.verdict, row.problem) for row in found.rows] == [(row.verdict, row.problem) for row in whole.rows]
    if not behind.startswith("n ="):
        assert found.rows[-1].reason == whole.rows[-1].reason


def test_a_random_source_is_told_so(tmp_path: Path) -> None:
    """Its first batch is run more often, of all inputs."""
    paths = [_net(tmp_path / f"{name}.onnx", WEIGHTS, "n = RandomNormalLike (h) y = Add (h, n)") for name in "ab"]
    found = _compared(*paths)
    assert _counts(found) == {32}
    assert "both models are random" in found.rows[-1].reason


def test_what_is_exact_is_looked_at_on_the_first_inputs_too(
    source: str, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It tells which side is off, so that no target is accused of what its source's runtime does."""
    asked, outputs_again = [], localization.outputs_again

    def noted(model: Any, *others: Any) -> Any:
        asked.append(model)
        return outputs_again(model, *others)

    monkeypatch.setattr(localization, "outputs_again", noted)
    assert _counts(_compared(source, wrong)) == {4}
    assert len(asked) == 1


def test_whether_a_model_is_random_is_asked_of_all_inputs(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that answers differently now and then may repeat on the first ones."""
    asked, executed = [], execution.executed

    def noted(folder: Path, model: Any, request: Any, runnable: Any) -> Any:
        asked.append(request.limit)
        return executed(folder, model, request, runnable)

    monkeypatch.setattr(execution, "executed", noted)
    assert _counts(_compared(source, source)) == {32}
    assert asked == [4, 4, 4, None, 16, None]


def test_a_model_that_is_random_on_some_inputs_is_no_fault(tmp_path: Path) -> None:
    """On the first ones it isn't."""
    files = [str(tmp_path / f"{name}.onnx") for name in ("one", "two")]
    highest = np.sort(
        conrepair.inputs(_net(tmp_path / "plain.onnx", WEIGHTS), in_process=True)["x"].max(axis=1)[4:16]
    )
    for seed, file in enumerate(files):
        noisy = (
            f"z = RandomUniformLike <seed = {seed}.0, low = 1.0, high = 9.0> (x) m = ReduceMax <axes = [1]> (x) "
            "is = Greater (m, limit) none = Sub (z, z) some = Where (is, z, none) r = Relu (h) y = Add (r, some)"
        )
        model = onnx.load(_net(Path(file), WEIGHTS, noisy))
        model.graph.initializer.append(onnx.numpy_helper.from_array(highest[-2], "limit"))
        onnx.save(model, file)
    assert conrepair.compare(*files, in_process=True).verdict == "noise"
    assert _compared(*files).rows[-1].verdict == "noise"


def test_it_is_the_same_stage_by_stage(source: str, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the worker of the one job died."""
    reasons = [_compared(source, target).rows[-1].reason for target in (wrong, source)]
    monkeypatch.setattr(run, "look_in_one_job", lambda _: None)
    runs = [_compared(source, target) for target in (wrong, source)]
    assert [*map(_counts, runs)] == [{4}, {32}]
    assert [found.rows[-1].reason for found in runs] == reasons
