"""Two files are looked at in one job, and come to the same as stage by stage."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_networks
import pytest
from localized import WEIGHTS, Variant
from PIL import Image

import conrepair
from conrepair.application.cli import main
from conrepair.application.engine.job_table import JOBS
from conrepair.application.pipeline import look, run
from conrepair.application.pipeline.evaluation import Looked
from conrepair.application.pipeline.stages import looked
from conrepair.application.pipeline.stages.state import RunState
from conrepair.ground.runtime.errors import ConrepairError, DataError, ToolCrashError
from conrepair.ground.runtime.processes.executor import InProcess

Paths = tuple[Path, Path]
_OWN = {"seconds", "folder", "path", "batch_seconds", "times", "load_seconds", "run_seconds", "traceback", "reused"}


@pytest.fixture
def kinds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the jobs that were started."""
    started, start = [], InProcess.start

    def noted(self: InProcess, lane: Any, job: Any) -> Any:
        started.append(job.function)
        return start(self, lane, job)

    monkeypatch.setattr(InProcess, "start", noted)
    return started


def _right(folder: Path) -> Paths:
    return Path(Variant().write(folder / "a.onnx").path), Path(Variant().write(folder / "b.onnx").path)


def _wrong(folder: Path) -> Paths:
    wrong = {name: values * np.float32(1.5) for name, values in list(WEIGHTS.items())[:1]}
    return Path(Variant().write(folder / "a.onnx").path), Path(Variant(weights=wrong).write(folder / "b.onnx").path)


def _named_in_cyrillic(folder: Path) -> Paths:
    source, target = _wrong(folder)
    return source.rename(folder / "исток.onnx"), target.rename(folder / "цель ☃.onnx")


def _unloadable(folder: Path) -> Paths:
    source, target = _right(folder)
    target.write_bytes(target.read_bytes()[:-40])
    return source, target


def _other_sizes(folder: Path) -> Paths:
    return _right(folder)[0], Path(onnx_networks.residual(folder / "c.onnx"))


@pytest.mark.parametrize("make", [_right, _wrong, _named_in_cyrillic, _unloadable, _other_sizes])
@pytest.mark.parametrize("verb", ["compare", "localize"])
def test_it_comes_to_the_same_as_stage_by_stage(
    verb: str, make: Callable[[Path], Paths], tmp_path: Path, kinds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = make(tmp_path)
    one = told(verb, paths)
    assert kinds == ["look"]
    monkeypatch.setattr(run, "look_in_one_job", lambda _: None)
    assert told(verb, paths) == one
    assert "describe" in kinds


def test_a_file_that_is_replaced_meanwhile_is_looked_at_stage_by_stage(
    tmp_path: Path, kinds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = _wrong(tmp_path)
    look_at = looked.look_at

    def replacing(state: RunState) -> Looked:
        found = look_at(state)
        if kinds == ["look"]:
            target.write_bytes(source.read_bytes())
        return found

    monkeypatch.setattr(looked, "look_at", replacing)
    assert conrepair.compare(source, target, in_process=True, samples=4).exit_code == 0
    assert kinds[0] == "look"
    assert "describe" in kinds


def told(verb: str, paths: Paths) -> Any:
    """What a verb says, but for times and scratch folders."""
    try:
        found = getattr(conrepair, verb)(*paths, in_process=True, samples=4)
    except ConrepairError as error:
        return str(error), error.exit_code
    return _bare(found.to_dict())


def _bare(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _bare(item) for key, item in value.items() if key not in _OWN}
    return [_bare(item) for item in value] if isinstance(value, list) else value


def test_a_repair_goes_on_from_it(tmp_path: Path, kinds: list[str]) -> None:
    assert conrepair.repair(*_wrong(tmp_path), in_process=True, samples=4, advice=0).mended
    assert kinds == ["look", "repair"]  # what is the source to the bit answers as that does


@pytest.mark.parametrize(
    ("error", "stages"), [(ToolCrashError("it died"), True), (DataError("no"), True), (KeyError("a bug"), False)]
)
def test_one_that_ends_its_worker_is_done_stage_by_stage(
    error: Exception, stages: bool, tmp_path: Path, kinds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(**_: Any) -> None:
        raise error

    monkeypatch.setattr(look, "look", failing)
    if stages:
        assert conrepair.compare(*_right(tmp_path), in_process=True).exit_code == 0
        assert kinds[:3] == ["look", "describe", "describe"]
    else:
        with pytest.raises(ConrepairError, match="a bug"):
            conrepair.compare(*_right(tmp_path), in_process=True)


def test_what_needs_other_processes_is_done_stage_by_stage(tmp_path: Path, kinds: list[str]) -> None:
    path = Variant(size=(12, 12)).write(tmp_path / "net.onnx").path
    assert conrepair.execute(path, in_process=True, samples=2).exit_code == 0
    assert kinds == ["look"]
    (tmp_path / "photos").mkdir()
    Image.new("RGB", (20, 20)).save(tmp_path / "photos" / "a.png")
    for more in ({"data": tmp_path / "photos", "recipe": "torchvision"}, {"backend": "onnxruntime"}):
        kinds.clear()
        conrepair.execute(path, in_process=True, **more)
        assert ("look" in kinds) is ("data" not in more)
    kinds.clear()
    conrepair.convert(path, to="keras", in_process=True)
    assert "look" not in kinds


@pytest.mark.workers
def test_what_a_tool_printed_is_told(tmp_path: Path) -> None:
    """A target that its runtime refuses in words of its own, on standard error."""
    source, target = _right(tmp_path)
    model = onnx.load(target)
    model.graph.node[0].op_type = "Convolve"
    onnx.save(model, target)
    found = conrepair.compare(source, target, samples=2)
    assert found.verdict is None or found.exit_code
    assert "Convolve" in str(found.problem)


def test_its_function_is_in_the_table() -> None:
    assert JOBS["look"] == f"{look.__name__}:look"


@pytest.mark.workers
def test_a_look_of_an_earlier_run_goes_on_with_the_data_of_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It's kept by what data hold: they may lie elsewhere by now."""
    monkeypatch.setenv("CONREPAIR_CACHE", str(tmp_path / "cache"))
    files = [*map(str, _wrong(tmp_path))]
    before, now = tmp_path / "before" / "data.npz", tmp_path / "now" / "data.npz"
    before.parent.mkdir()
    np.savez(before, **conrepair.inputs(files[0], samples=24, in_process=True))
    assert main(["repair", *files, "--data", str(before), "-q", "-o", str(tmp_path / "one")]) == 0
    before.parent.rename(now.parent)
    repairs = list((tmp_path / "cache").rglob("repair-*"))
    assert repairs
    for entry in repairs:
        shutil.rmtree(entry)
    assert main(["repair", *files, "--data", str(now), "-q", "-o", str(tmp_path / "two")]) == 0
