"""What takes longer by a clock of the test's own: real times are never compared."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from fuzz_cases import padded_pool, right
from fuzz_findings import finding_of, written_finding

from conrepair.formats.models.model import Model
from conrepair.formats.models.runnable import Runnable
from conrepair_lab.cases.case import Array
from conrepair_lab.fuzz.looking import RIGHT, SUSPECT, look
from conrepair_lab.fuzz.reducing import reduced
from conrepair_lab.fuzz.suspicion import SLOWER, Suspicion
from conrepair_lab.fuzz.trial import RUNS, slower, timed
from conrepair_lab.systems.registry import SYSTEMS, entry
from conrepair_lab.systems.system import Setting

ORT = SYSTEMS["ort"]
CLOCK = [0.0]
TOOK = {"disabled": [1.0], "basic": [1.9], "extended": [2.1], "all": [3.0, 3.0, 900.0, 3.0, 3.0]}
"""Seconds of a run by level; of one of them some runs are held up."""


class Timed(Runnable):
    """Takes so long by the test's clock."""

    def __init__(self, runnable: Runnable, level: str) -> None:
        self.runnable, self.level, self.count = runnable, level, 0
        self.inputs, self.outputs = runnable.inputs, runnable.outputs

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        self.count += 1
        took = TOOK[self.level]
        CLOCK[0] += 100.0 if self.count == 1 else took[self.count % len(took)]  # the first run isn't counted
        return self.runnable.run(feeds)


class Slow(type(ORT)):  # type: ignore[misc]
    name = "slow"

    def open(self, model: Model, setting: Setting, folder: Path) -> Runnable:
        return Timed(super().open(model, setting, folder), str(setting.options["optimization"]))


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conrepair_lab.fuzz.trial.perf_counter", lambda: CLOCK[0])


def test_twice_as_long_is_not_suspected_and_more_is() -> None:
    assert not list(slower(2.0, 1.0))
    assert [(item.kind, item.stage) for item in slower(2.01, 1.0)] == [(SLOWER, SLOWER)]
    assert not list(slower(3e-5, 1e-5)), "what calls take"


def test_a_few_runs_that_are_held_up_do_not_count(tmp_path: Path) -> None:
    assert timed(right(), Slow(), (ORT.settings["all"], ORT.settings["none"]), tmp_path) == [3.0, 1.0]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "verdict"), [("none", RIGHT), ("basic", RIGHT), ("extended", SUSPECT), ("all", SUSPECT)]
)
def test_a_setting_is_compared_with_the_plain_one(name: str, verdict: str, tmp_path: Path) -> None:
    assert look(right(), Slow(), ORT.settings[name], tmp_path, stage=SLOWER).verdict == verdict
    assert look(right(), Slow(), ORT.settings[name], tmp_path).verdict == RIGHT


def test_wrong_answers_come_first(tmp_path: Path) -> None:
    found = look(padded_pool(), Slow(), ORT.settings["all"], tmp_path, stage=SLOWER).suspicion
    assert found is not None
    assert found.kind == "numbers"


def test_what_the_plain_setting_does_not_run_is_not_timed(tmp_path: Path) -> None:
    class Refusing(Slow):
        def open(self, model: Model, setting: Setting, folder: Path) -> Runnable:
            if setting == self.settings["none"]:
                raise NotImplementedError("not yet")
            return super().open(model, setting, folder)

    found = look(right(), Refusing(), ORT.settings["all"], tmp_path, stage=SLOWER)
    assert found.verdict == RIGHT
    assert "couldn't be timed" in found.message


def test_it_is_reduced_and_its_program_times_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SYSTEMS, "slow", Slow())
    asked = entry("slow-all")
    seen = look(right(), asked.runs, asked.chosen, tmp_path, stage=SLOWER).suspicion
    assert seen is not None
    found = reduced(right(), seen, asked, tmp_path, seconds=10, longest=10)
    assert (found.verdict, found.suspicion.kind) == (SUSPECT, SLOWER), found.words
    assert f"{RUNS} runs" in found.words
    assert len(found.case.model.graph.node) == 1


@pytest.mark.parametrize(("given", "code"), [(1e9, 0), (-1e9, 1)])
def test_a_program_compares_medians(given: float, code: int, tmp_path: Path) -> None:
    """By half of the difference that was seen: one that no machine can show, and one that each does."""
    said = Suspicion(SLOWER, SLOWER, message="a run takes long", given=given, exact=0.0)
    finding = finding_of(right(), "ort-all", tmp_path, suspicion=said)
    program = written_finding(finding, right(), tmp_path) / "reproduce.py"
    found = subprocess.run([sys.executable, "-I", program], capture_output=True, text=True, cwd="/", check=False)
    assert (found.returncode, found.stderr) == (code, "")
    assert "with optimizations off" in found.stdout
    assert "slower than with optimizations off" in finding.title
