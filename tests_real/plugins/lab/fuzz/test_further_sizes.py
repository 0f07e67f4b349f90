"""One build that serves several sizes has to be right with all of them."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz_cases import case
from fuzz_findings import finding_of, written_finding

from conrepair.formats.models.model import Model
from conrepair.formats.models.runnable import Runnable
from conrepair_lab.cases.case import Array, Case
from conrepair_lab.cases.sizes import SIZES, definite, open_sizes, with_sizes
from conrepair_lab.fuzz.cause import isolated
from conrepair_lab.fuzz.looking import RIGHT, SUSPECT, look
from conrepair_lab.fuzz.reducing import reduced
from conrepair_lab.fuzz.suspicion import Suspicion
from conrepair_lab.fuzz.trial import tried, with_options
from conrepair_lab.systems.registry import SYSTEMS, entry
from conrepair_lab.systems.system import Setting

ORT = SYSTEMS["ort"]


def opened(further: int = 5) -> Case:
    text = """g (float[batch, 2] x, float[2] c) => (float[batch, 2] y, float[2] z)
    { a = Abs (x) b = Mul (a, c) y = Sub (b, x) z = Neg (c) }"""
    x = np.array([[1, -2], [3, 4]], np.float32)
    return with_sizes(case(text, x=x, c=np.ones(2, np.float32)), {"batch": further})


class Remembering(Runnable):
    """A build that takes all sizes, and computes only so many rows as it was first given, in which zeros follow."""

    def __init__(self, runnable: Runnable) -> None:
        self.runnable, self.rows = runnable, 0
        self.inputs, self.outputs = runnable.inputs, runnable.outputs

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        found = self.runnable.run(feeds)
        self.rows = self.rows or max((len(array) for array in feeds.values() if array.ndim > 1), default=0)
        return {
            name: np.concatenate([array[: self.rows], np.zeros_like(array[self.rows :])]) if array.ndim > 1 else array
            for name, array in found.items()
        }


class Remembered(type(ORT)):  # type: ignore[misc]
    name = "remembered"

    def open(self, model: Model, setting: Setting, folder: Path) -> Runnable:
        return Remembering(super().open(model, setting, folder))


@pytest.mark.parametrize(
    "name",
    [
        *("ort-none", "ort-all", "convert-onnxslim", "tvm-O0", "tvm-O2", "torch-eager", "torch-compile"),
        *("tensorflow-eager", "convert-import", "convert-dynamo", "convert-keras"),
    ],
)
@pytest.mark.parametrize("further", [1, 5])
def test_installed_systems_build_once(name: str, further: int, tmp_path: Path) -> None:
    asked = entry(name)
    found = tried(opened(further), asked.runs, asked.chosen, tmp_path)
    assert found.ended is None, found.ended
    if further == 1 and name.startswith("torch"):  # an exported program's open sizes are two at least, as it says
        assert not found.further
    else:
        assert found.further["y"].shape == (further, 2)
    assert look(opened(further), asked.runs, asked.chosen, tmp_path).verdict == RIGHT


def test_who_builds_for_definite_sizes_is_not_asked(tmp_path: Path) -> None:
    for name in ("tflite-delegate", "tensorflow-xla", "convert-tflite", "tvm-cuda"):
        assert entry(name).runs.symbolic(entry(name).chosen) is None
    asked = entry("tvm-O2")
    assert with_options(asked.runs, asked.chosen, definite(opened())) == asked.chosen
    assert with_options(asked.runs, asked.chosen, opened()).options["symbolic"]
    assert not tried(definite(opened()), ORT, ORT.settings["all"], tmp_path).further


def test_what_a_build_narrows_is_not_tried(tmp_path: Path) -> None:
    class Narrowed(type(ORT)):  # type: ignore[misc]
        def open(self, model: Model, setting: Setting, folder: Path) -> Runnable:
            found = super().open(model, setting, folder)
            found.inputs = tuple(dataclasses.replace(spec, shape=(2, *spec.shape[1:])) for spec in found.inputs)
            return found

    found = tried(opened(), Narrowed(), ORT.settings["all"], tmp_path)
    assert found.ended is None, found.ended
    assert not found.further


def test_a_further_size_is_judged_as_the_first_one(tmp_path: Path) -> None:
    found = look(opened(), Remembered(), ORT.settings["all"], tmp_path)
    assert found.verdict == SUSPECT
    assert found.suspicion is not None
    assert (found.suspicion.kind, found.suspicion.stage, found.suspicion.index) == ("numbers", SIZES, (2, 1))
    assert look(opened(1), Remembered(), ORT.settings["all"], tmp_path).verdict == RIGHT


def test_it_is_reduced_with_the_sizes_that_show_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SYSTEMS, "remembered", Remembered())
    asked = entry("remembered-all")
    seen = look(opened(), asked.runs, asked.chosen, tmp_path).suspicion
    assert seen is not None
    found = reduced(opened(), seen, asked, tmp_path, seconds=20, longest=10)
    assert (found.verdict, found.suspicion.stage) == (SUSPECT, SIZES), found.words
    assert len(found.case.model.graph.node) == 1
    assert found.case.options == {SIZES: {"batch": 5}}
    assert open_sizes(found.case)
    assert "torch-eager" in found.words or "convert-import" in found.words
    assert found.cause.plainly
    assert isolated(found.case, found.suspicion, asked.runs, ORT.settings["all"], tmp_path).plainly


def test_what_is_wrong_with_that_size_alone_is_no_matter_of_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Small(Remembered):
        name = "small"

        def open(self, model: Model, setting: Setting, folder: Path) -> Runnable:
            found = super().open(model, setting, folder)
            found.rows = 2
            return found

    monkeypatch.setitem(SYSTEMS, "small", Small())
    asked = entry("small-all")
    seen = look(opened(), asked.runs, asked.chosen, tmp_path).suspicion
    assert seen is not None
    assert seen.stage == SIZES
    found = reduced(opened(), seen, asked, tmp_path, seconds=20, longest=10)
    assert (found.verdict, found.suspicion.stage) == (SUSPECT, "answers"), found.words
    assert not found.case.options
    assert not open_sizes(found.case)


def test_an_exception_with_a_further_size_is_of_that_stage(tmp_path: Path) -> None:
    class Raising(Remembered):
        def open(self, model: Model, setting: Setting, folder: Path) -> Runnable:
            found = super().open(model, setting, folder)
            run = found.run

            def raising(feeds: Mapping[str, Array], **more: Any) -> Any:
                if len(feeds["x"]) == 5:
                    raise IndexError("out of range")
                return run(feeds, **more)

            found.run = raising
            return found

    found = look(opened(), Raising(), ORT.settings["all"], tmp_path).suspicion
    assert found is not None
    assert (found.kind, found.stage, found.error) == ("exception", SIZES, "IndexError")


@pytest.mark.parametrize(
    ("name", "exact", "code"),
    [("ort-all", 3.0, 1), ("ort-all", 4.0, 0), ("torch-compile", 3.0, 1), ("tensorflow-eager", 3.0, 1)],
)
def test_a_program_runs_both_sizes_and_shows_the_further_one(
    name: str, exact: float, code: int, tmp_path: Path
) -> None:
    """Two rows become five, of which the last one is as the first."""
    said = Suspicion("numbers", SIZES, "", "y is wrong", "", "y", (4, 1), 4.0, exact, 1e-6)
    finding = finding_of(opened(), name, tmp_path, suspicion=said)
    program = written_finding(finding, opened(), tmp_path)
    assert "with a further size" in finding.title
    assert "with other sizes (batch = 5)" in (program / "issue.md").read_text()
    found = subprocess.run(
        [sys.executable, "-I", program / "reproduce.py"], capture_output=True, text=True, cwd="/", check=False
    )
    assert found.returncode == code, found.stderr
    assert "y[(4, 1)] is 4.0" in found.stdout
