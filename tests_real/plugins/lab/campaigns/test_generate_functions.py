"""A user's own filters and constraints: run only where they're trusted, and then as programs."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

import conrepair
from conrepair.application.cli import main
from conrepair.application.engine.job_table import reach_of
from conrepair.ground.runtime.processes.confinement import CONFINED, OPEN

FILE = """
from pathlib import Path

from beside import LARGEST

Path("ran.txt").write_text("it ran")

def at_most_one_relu(network):
    assert network.inputs and network.outputs and network.about["seed"] == 3
    return sum(node.op_type == "Relu" for node in network.model.graph.node) <= LARGEST

def flat(setting):
    return all(item is None or item.type.rank == 1 for item in setting.inputs)

def failing(network):
    raise LookupError("of mine")

def silent(setting):
    if setting.op == "Relu":
        raise NotAllowedError("of mine")

def of_what(model):
    return True

from conrepair_lab.generate.settings.ports import NotAllowedError
"""
WORDS = ["generate", "-n", "8", "--nodes", "3", "--operators", "Add,Relu", "--dtypes", "float32", "--seed", "3", "-q"]


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "checks.py").write_text(FILE)
    (tmp_path / "beside.py").write_text("LARGEST = 1")


def models(folder: str) -> dict[int, onnx.ModelProto]:
    return {int(path.parent.name): onnx.load(path) for path in Path(folder).glob("*/model.onnx")}


def relus(model: onnx.ModelProto) -> int:
    return sum(node.op_type == "Relu" for node in model.graph.node)


def ranks(model: onnx.ModelProto) -> set[int]:
    return {len(item.type.tensor_type.shape.dim) for item in model.graph.input}


@pytest.mark.workers
def test_what_a_filter_does_not_keep_is_counted_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*WORDS, "-o", "all"]) == 0
    assert main([*WORDS, "-o", "some", "--function", "checks.py:at_most_one_relu", "--trust"]) == 1
    assert Path("ran.txt").exists()  # not confined
    every, some = models("all"), models("some")
    assert some == {index: model for index, model in every.items() if relus(model) <= 1}
    assert 0 < len(some) < len(every)
    lines = capsys.readouterr().out.splitlines()
    assert "  your own functions, run unconfined: checks.py:at_most_one_relu" in lines
    assert any(line.endswith("checks.py:at_most_one_relu doesn't keep it") for line in lines)


def test_constraints_narrow_what_there_is() -> None:
    def flat(setting: object) -> bool:
        return all(item is None or item.type.rank == 1 for item in setting.inputs)  # type: ignore[attr-defined]

    wishes = {"nodes": 3, "operators": ["Add", "Relu"], "dtypes": ["float32"], "seed": 3}
    found = list(conrepair.generated(8, functions=[flat], **wishes))  # type: ignore[arg-type]
    assert len(found) == 8
    assert {rank for item in found for rank in ranks(item.model)} == {1}
    assert {rank for item in conrepair.generated(8, **wishes) for rank in ranks(item.model)} > {1}  # type: ignore[arg-type]


@pytest.mark.workers
def test_a_constraint_of_a_file_may_raise(tmp_path: Path) -> None:
    section = {"count": 3, "nodes": 3, "operators": ["Add", "Relu"], "dtypes": ["float32"], "trust": True}
    section |= {"functions": ["checks.py:silent", "checks.py:flat"]}
    Path("config.json").write_text(json.dumps({"output": "out", "generate": section}))
    assert main(["run", "config.json", "-q"]) == 0
    found = models("out/networks").values()
    assert len(found) == 3
    assert {(relus(model), *ranks(model)) for model in found} == {(0, 1)}


def test_nothing_runs_that_is_not_trusted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*WORDS, "-o", "out", "--function", "checks.py:flat"]) == 3
    told = capsys.readouterr().err
    assert "checks.py:flat: not run, as functions are programs" in told
    assert "--trust on the command line" in told
    Path("config.json").write_text(json.dumps({"generate": {"functions": ["checks.py:flat"]}}))
    for verb, code in ((["config", "check"], 2), (["run"], 3)):
        assert main([*verb, "config.json"]) == code
        assert "`trust: true` of `generate` in a configuration" in capsys.readouterr().err
    assert not Path("ran.txt").exists()
    assert not Path("out").exists()


@pytest.mark.workers
def test_what_a_function_raises_ends_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*WORDS, "-o", "out", "--function", "checks.py:failing", "--trust"]) == 3
    told = capsys.readouterr().err
    assert "checks.py:failing failed: LookupError: of mine" in told
    assert "line 16" in told
    assert [path.name for path in Path("out").iterdir()] == ["generated.json"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("checks.py", "names no function: write FILE.py:NAME"),
        ("checks.py:", "names no function: write FILE.py:NAME"),
        ("checks:flat", "names no function: write FILE.py:NAME"),
        ("missing.py:flat", "missing.py can't be read: No such file"),
        ("checks.py:flta", "defines no function 'flta'; did you mean 'flat'?"),
        (
            "checks.py:of_what",
            "of_what(model): a filter has one parameter, `network`; a constraint has one, `setting`",
        ),
        ("broken.py:flat", "is no Python program"),
    ],
)
def test_functions_that_are_not_there_are_told(text: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("broken.py").write_text("def flat(")
    assert main([*WORDS, "-o", "out", "--function", text, "--trust"]) == 2
    assert told in capsys.readouterr().err
    assert not Path("out").exists()


@pytest.mark.workers
def test_networks_of_another_version_of_a_function_are_not_mixed(capsys: pytest.CaptureFixture[str]) -> None:
    words = [*WORDS, "-n", "1", "-o", "out", "--function", "checks.py:flat", "--trust"]
    assert main(words) == 0
    Path("checks.py").write_text(FILE + "\n")
    assert main(words) == 2
    assert "made with other options (wishes functions:" in capsys.readouterr().err


def test_a_job_that_runs_a_user_s_program_has_no_bounds() -> None:
    assert reach_of("generate") == CONFINED
    assert reach_of("generate", program=True) == OPEN
