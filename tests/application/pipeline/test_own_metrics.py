"""Metrics of a user's own: shown, decisive where they have a limit, and not run from files that nobody trusts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import small_models as small

import conrepair
from conrepair.application.cli import main
from conrepair.application.report.saved import read_result
from conrepair.application.verbs.metrics import metrics
from conrepair.ground.runtime.errors import ModelLoadError, UsageError

FILE = """
from pathlib import Path

import numpy as np

from beside_measures import FACTOR

Path(__file__).with_name("ran.txt").write_text("it ran")

def largest(reference, candidate):
    return FACTOR * np.abs(candidate - reference).max()

def failing(reference, candidate):
    raise LookupError("of mine")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A source and a target that gives one unit in the last place more, and functions beside them."""
    made = tmp_path_factory.mktemp("metrics")
    for name, more in (("source", 0.0), ("target", 1e-6)):
        helper, float32 = onnx.helper, onnx.TensorProto.FLOAT
        graph = helper.make_graph(
            [helper.make_node("Add", ["x", "more"], ["y"]), helper.make_node("Neg", ["y"], ["z"])],
            "add",
            [helper.make_tensor_value_info("x", float32, ["batch", 4])],
            [helper.make_tensor_value_info(output, float32, ["batch", 4]) for output in ("y", "z")],
            [onnx.numpy_helper.from_array(np.float32([8 + more]), "more")],
        )
        small.save_onnx(made / f"{name}.onnx", graph)
    (made / "measures.py").write_text(FILE)
    (made / "beside_measures.py").write_text("FACTOR = 2")
    return made


@pytest.fixture
def pair(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    monkeypatch.chdir(folder)
    return "source.onnx", "target.onnx"


def mean(reference: np.ndarray, candidate: np.ndarray) -> float:
    assert reference.shape == candidate.shape == (32, 4)
    return float(reference.mean())


def broken(reference: np.ndarray, candidate: np.ndarray) -> float:
    raise LookupError("of mine")


def test_a_function_is_shown_and_decides_only_by_its_limit(pair: tuple[str, str]) -> None:
    shown = conrepair.compare(*pair, metrics=mean)
    assert shown.verdict == "equivalent"
    values = [output.metrics["mean"] for output in shown.run.rows[-1].comparison.outputs]
    assert values[0] == pytest.approx(-values[1])
    within = {"function": mean, "min": 7, "output": "y"}
    assert conrepair.compare(*pair, metrics=[within]).verdict == "equivalent"
    for limits, told in (({"min": 9}, "at least 9"), ({"max": 7}, "at most 7")):
        beyond = conrepair.compare(*pair, metrics=[{"function": mean, "output": "y", **limits}])
        assert (beyond.verdict, beyond.exit_code) == ("faulty", 1)
        assert (
            f"output y: the metric mean is {values[0]:.4g}; {told} is wanted (without your metrics the "
            "output is equivalent"
        ) in beyond.reason
    located = conrepair.localize(*pair, metrics=[{"function": mean, "min": 9, "output": "y"}])
    assert located.verdict == "undecided"  # no layer is at fault
    assert "mean is" in located.reason


def test_one_that_fails_is_said_and_passes_nothing(pair: tuple[str, str]) -> None:
    shown = conrepair.compare(*pair, metrics=broken)
    assert shown.verdict == "equivalent"
    assert any(
        "broken failed: LookupError: of mine" in note for note in shown.run.rows[-1].comparison.outputs[0].notes
    )
    decisive = conrepair.compare(*pair, metrics={"function": broken, "max": 1})
    assert (decisive.verdict, decisive.exit_code) == ("undecided", 1)
    nothing = conrepair.compare(*pair, metrics={"function": lambda one, two: float("nan"), "max": 1})
    assert nothing.verdict == "faulty"


def test_a_program_is_run_only_where_it_is_trusted(
    pair: tuple[str, str], folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["compare", *pair, "--metric", "measures.py:largest,max=1"]
    assert main(command) == 3
    assert "measures.py:largest: metric functions weren't run" in capsys.readouterr().err
    config: dict[str, Any] = {
        "models": [
            {"name": "a", "path": str(folder / pair[0])},
            {"name": "b", "path": str(folder / pair[1]), "compare_with": "a"},
        ],
        "dataset": {"synthetic": {"samples": 4}},
        "output": str(tmp_path),
        "metrics": {"functions": ["measures.py:largest,max=1e-9", "measures:largest,output=z"]},
    }
    (folder / "audit.json").write_text(json.dumps(config))
    with pytest.raises(ModelLoadError, match="`trust: true` of `metrics`"):
        conrepair.audit(folder / "audit.json")
    assert not (folder / "ran.txt").exists()
    assert main([*command, "--trust", "-o", str(tmp_path / "report")]) == 0
    assert (folder / "ran.txt").exists()
    [run] = (tmp_path / "report").iterdir()
    output = read_result(run).rows[-1].comparison.outputs[0]
    assert output.metrics["largest"] == pytest.approx(2 * output.error.max_abs, rel=1e-6)
    config["metrics"]["trust"] = True
    (folder / "audit.json").write_text(json.dumps(config))
    audited = conrepair.audit(folder / "audit.json").rows[-1]
    assert audited.verdict == "faulty"
    assert "the metric largest is 1.907e-06; at most 1e-09 is wanted" in audited.reason


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("measures.py", "metrics is 'measures.py': give a function, or its name"),
        ("measures.py:a,least=1", "'least' is no part of a metric: give function, min, max, output"),
        ("measures.py:a,min=x", "metrics min is 'x': give a number"),
        ({"min": 1}, "metrics is None: give a function"),
        (7, "metrics is 7"),
    ],
)
def test_what_is_no_metric_is_said(value: Any, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        metrics("metrics", value)


@pytest.mark.parametrize(
    ("named", "error", "told"),
    [
        ("nowhere.py:largest", UsageError, "there is no file"),
        ("measures.py:smallest", UsageError, "has no function 'smallest'"),
        ("no_such_module:largest", ModelLoadError, "importing no_such_module failed: ModuleNotFoundError"),
        ("measures.py:largest,output=x", UsageError, "metric: the original has no output 'x'"),
    ],
)
def test_what_is_not_there_is_said(pair: tuple[str, str], named: str, error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        conrepair.compare(*pair, metrics=named, trust=True)
