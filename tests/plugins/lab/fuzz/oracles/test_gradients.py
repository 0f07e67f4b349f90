"""Wrong gradients are suspected, right ones and those that may be chosen freely aren't."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import onnx
import pytest
from fuzz_cases import case

from conrepair.formats.models.identity import copy_model
from conrepair.formats.models.runnable import Runnable
from conrepair.formats.onnx.load.file import nodes_of
from conrepair.ground.runtime.errors import InferenceError
from conrepair_lab.cases.case import Array, Case
from conrepair_lab.fuzz.finding import Finding
from conrepair_lab.fuzz.looking import RIGHT, SUSPECT, Looked, further, look, other_answers
from conrepair_lab.fuzz.oracles.gradients import Training, gradients, trained
from conrepair_lab.fuzz.reducing import reduced
from conrepair_lab.fuzz.suspicion import GRADIENT
from conrepair_lab.fuzz.trial import Trial
from conrepair_lab.report.fuzz.reproducer import reproducer
from conrepair_lab.systems import torch as torch_system
from conrepair_lab.systems.registry import entry

X = np.array([0.5, -1.25, 2.0], np.float32)
SMOOTH = "g (float[3] x) => (float[3] y) { a = Tanh (x) b = Mul (a, x) y = Exp (b) }"


class Differing(Runnable):
    """Gradients that aren't what they should be."""

    def __init__(self, right: Runnable, change: Any, only: str = "") -> None:
        self.inputs, self.outputs, self._right = right.inputs, right.outputs, right
        self._change, self._only = change, only

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        found = self._right.run(feeds)
        return {name: array if self._only not in {"", name} else self._change(array) for name, array in found.items()}


class Changed(torch_system.Torch):
    """PyTorch whose compiler isn't asked, but something in its place."""

    def __init__(self, change: Any) -> None:
        self._change = change

    def gradients(self, model: Any, setting: Any, folder: Path, *, double: bool = False) -> Runnable:
        found = super().gradients(model, self.settings["eager"], folder, double=double)
        return found if setting == self.settings["eager"] else Differing(found, self._change)


def differentiated(made: Case, change: Any, folder: Path) -> Training:
    answers = other_answers(made)
    assert answers is not None
    return trained(made, answers, Changed(change), Changed.settings["compile"], folder)


def kept(array: Array) -> Array:
    return array


def off(array: Array) -> Array:
    return array * np.float32(1.01)


def test_what_is_off_by_a_hundredth_is_suspected_and_said(tmp_path: Path) -> None:
    (found,) = gradients(differentiated(case(SMOOTH, x=X), off, tmp_path))
    assert (found.kind, found.stage, found.output) == (GRADIENT, GRADIENT, "x")
    assert found.given == pytest.approx(1.01 * (found.exact or 0), rel=1e-5)
    assert (found.over or 0) > 100


class OfWeights(Changed):
    """Wrong gradients of what's called w alone; where that's said it takes no such input."""

    def __init__(self, *, refuses: bool) -> None:
        super().__init__(lambda array: array)
        self._refuses = refuses

    def gradients(self, model: Any, setting: Any, folder: Path, *, double: bool = False) -> Runnable:
        fed = {item.name for item in onnx.load(model.path).graph.input}
        if self._refuses and "w" in fed:
            raise InferenceError("w must be constant")
        found = super().gradients(model, self.settings["eager"], folder, double=double)
        return found if setting == self.settings["eager"] else Differing(found, off, only="w")


@pytest.mark.parametrize(("refuses", "verdict"), [(False, SUSPECT), (True, RIGHT)])
def test_weights_have_gradients_too_where_they_are_taken_as_inputs(
    refuses: bool, verdict: str, tmp_path: Path
) -> None:
    text = "g (float[3] x) => (float[3] y) <float[3] w = {2, 3, 4}> { a = Tanh (w) y = Mul (a, x) }"
    made = case(text, x=X)
    trial = Trial((other_answers(made) or {},), None, 0.0)
    system = OfWeights(refuses=refuses)
    seen = further(Looked(RIGHT), made, trial, system, system.settings["compile"], tmp_path, {GRADIENT})
    assert (seen.verdict, seen.message) == (verdict, "")
    assert verdict == RIGHT or (seen.suspicion is not None and seen.suspicion.output == "w")


def test_right_gradients_are_not_suspected_and_are_known_well(tmp_path: Path) -> None:
    found = differentiated(case(SMOOTH, x=X), kept, tmp_path)
    assert not list(gradients(found))
    assert (found.allowed["x"] < 1e-4 * abs(found.exact["x"])).all()


@pytest.mark.parametrize(
    "text",
    [
        "g (float[3] x) => (float[3] y) { y = Relu (x) }",
        "g (float[3] x) => (float[3] y) { y = Abs (x) }",
        "g (float[3] x) => (float[1] y) { y = ReduceMax (x) }",
        "g (float[3] x) => (float[3] y) { n = Neg (x) y = Max (x, n) }",
    ],
)
def test_where_it_may_be_chosen_freely_nothing_is_suspected(text: str, tmp_path: Path) -> None:
    """All three are equal and zero: each subgradient is right."""
    made = case(text, x=np.zeros(3, np.float32))
    chosen = differentiated(made, lambda array: array * np.float32(0.5), tmp_path)
    assert not list(gradients(chosen))


def test_an_exception_where_the_plain_setting_has_none_is_suspected_and_a_refusal_is_not(tmp_path: Path) -> None:
    def stumble(error: Exception) -> Any:
        return mock.Mock(side_effect=error)

    (found,) = gradients(differentiated(case(SMOOTH, x=X), stumble(AssertionError("no such buffer")), tmp_path))
    assert (found.kind, found.stage, found.error) == ("exception", GRADIENT, "AssertionError")
    for error in (NotImplementedError("derivative"), ValueError("XLA requires a fixed tensor list size.")):
        refused = differentiated(case(SMOOTH, x=X), stumble(error), tmp_path)
        assert not list(gradients(refused))
        assert refused.ended is not None


def test_what_the_plain_setting_does_not_differentiate_is_not_judged(tmp_path: Path) -> None:
    whole = case("g (int64[3] x) => (int64[3] y) { y = Neg (x) }", x=np.arange(3))
    assert "nothing" in differentiated(whole, off, tmp_path).words


def test_settings_that_are_plain_are_not_asked(tmp_path: Path) -> None:
    asked = entry("torch-eager")
    with mock.patch("conrepair_lab.fuzz.looking.trained") as never:
        assert look(case(SMOOTH, x=X), asked.runs, asked.chosen, tmp_path, stage=GRADIENT).verdict == RIGHT
    never.assert_not_called()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["torch-compile", "tensorflow-xla"])
def test_compiled_gradients_are_right_and_a_program_gives_them(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = entry(name)
    for variable, value in asked.runs.environment(asked.chosen).items():
        monkeypatch.setenv(variable, value)
    made = case(SMOOTH, x=X)
    found = look(made, asked.runs, asked.chosen, tmp_path, stage=GRADIENT)
    assert (found.verdict, found.message) == (RIGHT, "")
    there = asked.runs.programmed(made.file(tmp_path), asked.chosen, tmp_path)
    copy_model(Path(there.path), tmp_path / asked.runs.file)
    np.savez(tmp_path / "inputs.npz", **made.inputs)
    program = asked.runs.training_program(asked.chosen).text
    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path)
    right = trained(made, other_answers(made) or {}, asked.runs, asked.chosen, tmp_path).exact["x"]
    with np.load(tmp_path / "outputs.npz") as outputs:
        np.testing.assert_allclose(outputs["x"], right, rtol=1e-5)


@pytest.mark.slow
def test_a_planted_fault_of_a_compiler_becomes_a_finding_that_a_program_shows(tmp_path: Path) -> None:
    import torch
    from torch._inductor.decomposition import fast_random_decomps

    operator = torch.ops.aten.tanh_backward.default
    wrong = {operator: lambda given, result: 1.01 * given * (1 - result * result)}
    asked = entry("torch-compile")
    text = """g (float[3] x, float[3] z) => (float[3] y, float[3] w)
    { a = Exp (z) b = Tanh (x) c = Mul (a, b) y = Sigmoid (c) w = Cos (z) }"""
    with mock.patch.dict(fast_random_decomps(), wrong):
        seen = look(case(text, x=X, z=X), asked.runs, asked.chosen, tmp_path, stage=GRADIENT)
        assert (seen.verdict, seen.suspicion and seen.suspicion.kind) == (SUSPECT, GRADIENT)
        assert seen.suspicion is not None
        found = reduced(case(text, x=X, z=X), seen.suspicion, asked, tmp_path, seconds=30, longest=60)
    assert (found.verdict, found.suspicion.kind, found.suspicion.stage) == (SUSPECT, GRADIENT, GRADIENT)
    assert [node.op_type for node in nodes_of(found.case.model.graph)] == ["Tanh"]
    assert shown(found, tmp_path) == 0  # in a process without the fault
    assert found.cause.causes == (("decomposition:aten.tanh_backward.default",),)


def shown(found: Any, folder: Path) -> int:
    """What a program ends with."""
    programmed = entry("torch-compile").runs.programmed(
        found.case.file(folder), entry("torch-compile").chosen, folder
    )
    finding = Finding(
        *("0" * 64, "torch", "compile", found.suspicion, ("Tanh",), found.cause, found.words, {}, {}, "", ""),
        *(found.tries, found.smallest),
    )
    program = folder / "reproduce.py"
    program.write_text(reproducer(finding, found.case, Path(programmed.path), None), encoding="utf-8")
    return subprocess.run([sys.executable, str(program)], check=False, cwd=folder).returncode
