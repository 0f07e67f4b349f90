"""Faults in larger networks become small cases that keep kind and stage, and blame whoever is at fault."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz_cases import case, right
from new_process import in_new_process
from stand_in import StandIn, leave_all, max_is_min, registered, relu_is_abs

import conrepair
from conrepair.formats.onnx.load.file import nodes_of
from conrepair_lab.cases.case import Case
from conrepair_lab.fuzz.apart import looked_apart
from conrepair_lab.fuzz.looking import SUSPECT, UNJUDGED, look
from conrepair_lab.fuzz.reducing import GONE, Reduction, reduced
from conrepair_lab.fuzz.suspicion import Suspicion
from conrepair_lab.systems.registry import SYSTEMS, entry

SOME = ["Abs", "Add", "Exp", "Max", "Mul", "Relu", "Sin", "Transpose"]


@pytest.fixture
def wrong(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """A system with a wrong kernel, and a wrong pass."""
    return registered(monkeypatch, StandIn(max_is_min, passes=[leave_all, relu_is_abs], name="wrong"))


def grown(wrong: StandIn, folder: Path, *, plainly: bool) -> Case:
    """The first generated network of six nodes that is wrong without passes, or with them alone."""
    for network in conrepair.generated(count=30, nodes=6, seed=0, operators=SOME, dtypes=["float32"]):
        made = Case.of(network.model, network.inputs)
        seen = [look(made, wrong, setting, folder).verdict == SUSPECT for setting in wrong.settings.values()]
        if seen == [plainly, True]:
            return made
    raise AssertionError("no network has a place for it")


def found_in(made: Case, name: str, folder: Path, seconds: float = 20) -> tuple[Suspicion, Reduction]:
    asked = entry(name)
    suspicion = look(made, asked.runs, asked.chosen, folder).suspicion
    assert suspicion is not None
    return suspicion, reduced(made, suspicion, asked, folder, seconds=seconds, longest=10)


def operators(found: Reduction) -> list[str]:
    return [node.op_type for node in nodes_of(found.case.model.graph)]


def test_an_optimizations_fault_in_a_generated_network(wrong: StandIn, tmp_path: Path) -> None:
    made = grown(wrong, tmp_path, plainly=False)
    before, found = found_in(made, "wrong-all", tmp_path)
    assert len(made.model.graph.node) >= 6
    assert found.verdict == SUSPECT, found.words
    assert before.same(found.suspicion)
    assert len(operators(found)) == 2
    assert operators(found)[1] == "Relu"
    assert found.cause.causes == (("relu_is_abs",),)
    assert not list(tmp_path.iterdir())


def test_a_kernels_fault_in_a_generated_network(wrong: StandIn, tmp_path: Path) -> None:
    before, found = found_in(grown(wrong, tmp_path, plainly=True), "wrong-none", tmp_path)
    assert found.verdict == SUSPECT, found.words
    assert before.same(found.suspicion)
    assert operators(found) == ["Max"]
    assert found.cause.plainly


def test_a_converter_is_not_blamed_for_a_kernel(tmp_path: Path) -> None:
    """It joins two layers, so that answers aren't the same to the last bit; the kernel is wrong without it, too."""
    rng = np.random.default_rng(0)
    text = """g (float[1, 1, 3, 3] x, float[4] e) => (float[1, 1, 3, 3] z, float[4] y)
    <float[1, 1, 1, 1] w = {0.37}, float[1] s = {1.7}, float[1] o = {0.3}, float[1] m = {0.11}, float[1] v = {0.9}>
    { a = Conv (x, w) z = BatchNormalization (a, s, o, m, v) y = Elu (e) }"""
    x = rng.normal(size=(1, 1, 3, 3)).astype(np.float32)
    made = case(text, x=x, e=np.array([-1e-7, -1e-6, -3e-7, -1e-5], np.float32))
    before, found = found_in(made, "convert-onnxslim", tmp_path, seconds=5)
    assert before.kind == "numbers"
    assert found.verdict == GONE
    assert "without the converter" in found.words


def test_an_optimizer_that_breaks_a_network_is_blamed(tmp_path: Path) -> None:
    text = """g (float[2] x, float r) => (bool[2] y, float[2] z) <bool t = {0}>
    { a = Erf (x) b, m = Dropout (a, r, t) y = Not (m) z = Sin (b) }"""
    before, found = found_in(case(text, x=np.ones(2, np.float32), r=np.float32(0.5)), "convert-onnxslim", tmp_path)
    assert (before.kind, before.stage) == ("exception", "load")
    assert found.verdict == SUSPECT
    assert before.same(found.suspicion)
    assert "Dropout" in operators(found)
    assert "converter" in found.cause.words


def crash_reduced(folder: Path) -> None:
    least = np.iinfo(np.int32).min
    text = "g (int32[3] x, int32[3] z) => (int32[3] y, int32[3] w) { a = Div (x, z) y = Neg (a) w = Abs (z) }"
    made = case(text, x=np.array([least, 6, 8], np.int32), z=np.array([-1, 2, 4], np.int32))
    asked = entry("ort-none")
    seen = looked_apart(lambda: look(made, asked.runs, asked.chosen, folder), 20).suspicion
    assert seen is not None
    assert (seen.kind, seen.error) == ("crash", "SIGFPE")
    found = reduced(made, seen, asked, folder, seconds=10, longest=10)
    assert (found.verdict, operators(found)) == (SUSPECT, ["Div"])
    assert seen.same(found.suspicion)


def test_a_crash_is_reduced_in_processes_of_its_own(tmp_path: Path) -> None:
    in_new_process(crash_reduced, tmp_path)


class Killed(type(SYSTEMS["ort"])):  # type: ignore[misc]
    name = "killed"

    def open(self, *_: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_that_the_system_kills_again_is_the_same_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that's killed is told to have taken all memory; a try of its own that's killed is no other thing."""
    monkeypatch.setitem(SYSTEMS, "killed", Killed())
    ended = Suspicion("memory", "process", "SIGKILL")
    found = reduced(right(), ended, entry("killed-none"), tmp_path, seconds=5, longest=5)
    assert found.verdict == SUSPECT, found.words


def test_a_network_that_no_referee_takes_is_not_judged(tmp_path: Path) -> None:
    outside = case(
        "g (float[1] x) => (float[1] y) <int64[1] i = {7}> { y = Gather (x, i) }", x=np.ones(1, np.float32)
    )
    _, found = found_in(outside, "ort-none", tmp_path, seconds=5)
    assert found.verdict == UNJUDGED
    assert "can't be reduced" in found.words
