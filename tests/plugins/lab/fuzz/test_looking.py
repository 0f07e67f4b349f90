"""Verdicts on real cases of installed releases."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fuzz_cases import case, compared_by_halves, padded_pool, right

from conrepair.formats.models.model import Model
from conrepair.formats.models.runnable import Runnable
from conrepair_lab.cases.case import Case
from conrepair_lab.fuzz.looking import ILL, RIGHT, SUSPECT, UNJUDGED, Looked, look, other_answers
from conrepair_lab.fuzz.suspicion import REFUSAL, REFUSED
from conrepair_lab.systems.ort import SYSTEM as ORT
from conrepair_lab.systems.registry import entry
from conrepair_lab.systems.system import Setting


def seen(made: Case, name: str, folder: Path) -> Looked:
    asked = entry(name)
    return look(made, asked.runs, asked.chosen, folder)


@pytest.mark.parametrize("name", ["ort-none", "ort-all", "convert-version", "convert-onnxslim"])
def test_a_right_network_is_right(name: str, tmp_path: Path) -> None:
    assert seen(right(), name, tmp_path).verdict == RIGHT


def test_a_kernel_is_suspected_although_nobody_else_was_asked(tmp_path: Path) -> None:
    found = seen(compared_by_halves(), "ort-none", tmp_path)
    assert found.verdict == SUSPECT
    assert found.suspicion is not None
    assert found.suspicion.kind == "numbers"


def test_an_optimization_is_suspected_alone(tmp_path: Path) -> None:
    assert seen(padded_pool(), "ort-none", tmp_path).verdict == RIGHT
    assert seen(padded_pool(), "ort-all", tmp_path).verdict == SUSPECT


def test_what_cancels_is_ill_conditioned_and_nobodys_fault(tmp_path: Path) -> None:
    text = "g (float[1] x) => (float[1] y) <float[1] c = {1.0}> { a = Sin (x) b = Add (a, c) y = Sub (b, c) }"
    found = seen(case(text, x=np.array([1e-7], np.float32)), "ort-none", tmp_path)
    assert found.verdict == ILL


def test_what_nobody_computes_exactly_is_not_judged(tmp_path: Path) -> None:
    text = """g (float[1, 1, 2] x, float[1, 3, 2] w, float[1, 3, 1] r, float[1, 6] b) => (float[1, 1, 1, 1] y)
    { y = GRU <hidden_size = 1, clip = 0.5> (x, w, r, b) }"""
    arrays = {"x": (1, 1, 2), "w": (1, 3, 2), "r": (1, 3, 1), "b": (1, 6)}
    made = case(text, **{name: np.full(shape, 0.1, np.float32) for name, shape in arrays.items()})
    assert seen(made, "ort-none", tmp_path).verdict == UNJUDGED


def test_a_refusal_says_stage_and_words(tmp_path: Path) -> None:
    made = case("g (double[1] x) => (double[1] y) { y = Softsign (x) }", x=np.ones(1))
    found = seen(made, "ort-none", tmp_path)
    assert found.verdict == REFUSED
    assert found.message.startswith("load: ")
    assert other_answers(made) is None


def test_judges_that_stumble_say_nothing_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(*_: object) -> None:
        raise ValueError("operands could not be broadcast")

    monkeypatch.setattr("conrepair_lab.fuzz.looking.numbers", stumble)
    found = seen(compared_by_halves(), "ort-none", tmp_path)
    assert found.verdict == UNJUDGED
    assert "could not be broadcast" in found.message


def test_whole_numbers_that_are_computed_as_real_ones_are_not_judged(tmp_path: Path) -> None:
    text = "g (int64 x) => (int64 y) { y = Shrink <bias: float = 0.5> (x) }"
    assert seen(case(text, x=np.array(1, np.int64)), "ort-none", tmp_path).verdict in {RIGHT, UNJUDGED}


def test_what_optimizations_make_that_nothing_computes_is_a_finding(tmp_path: Path) -> None:
    text = "g (double[2] x) => (double[2] y) <double a = {1.702}> { s = Mul (x, a) t = Sigmoid (s) y = Mul (x, t) }"
    made = case(text, x=np.ones(2))

    class Refusing(type(ORT)):  # type: ignore[misc]
        name = "refusing"

        def loaded(self, there: Model, setting: Setting, folder: Path) -> Runnable:
            if setting != self.settings[self.plain]:
                raise NotImplementedError("could not find an implementation for QuickGelu(1)")
            return super().loaded(there, setting, folder)

    setting = ORT.settings["all"]
    usual = look(made, Refusing(), setting, tmp_path)
    assert (usual.verdict, usual.suspicion) == (REFUSED, None)
    found = look(made, Refusing(), setting, tmp_path, stage=REFUSAL)
    assert found.suspicion is not None
    assert (found.suspicion.kind, found.suspicion.stage, found.plainly) == ("exception", REFUSAL, False)
    nobody = case("g (double[1] x) => (double[1] y) { y = Softsign (x) }", x=np.ones(1))
    assert look(nobody, ORT, setting, tmp_path, stage=REFUSAL).verdict == REFUSED
