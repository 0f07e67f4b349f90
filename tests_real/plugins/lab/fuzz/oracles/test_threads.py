"""Answers may be added in another order with other threads, and are the same otherwise."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz_cases import case, padded_pool, right
from fuzz_findings import finding_of, written_finding

from conrepair.formats.models.model import Model
from conrepair.formats.models.runnable import Runnable
from conrepair_lab.cases.case import Array, Case
from conrepair_lab.fuzz.looking import ALIKE, RIGHT, SUSPECT, UNJUDGED, look
from conrepair_lab.fuzz.oracles.answers import threads
from conrepair_lab.fuzz.reducing import reduced
from conrepair_lab.fuzz.suspicion import THREADS, Suspicion
from conrepair_lab.fuzz.trial import OTHER_THREADS, tried
from conrepair_lab.systems.registry import SYSTEMS, entry
from conrepair_lab.systems.system import Setting

ORT = SYSTEMS["ort"]
ONES = np.ones(2, np.float32)


def told(one: Any, two: Any, allowed: Any = None) -> list[tuple[str, str]]:
    apart = np.zeros(np.shape(one)) if allowed is None else np.asarray(allowed)
    return [(item.kind, item.stage) for item in threads({"y": one}, {"y": two}, {"y": apart})]


@pytest.mark.parametrize("array", [ONES, np.array([np.nan, np.inf]), np.array([1, 2]), np.array(["a", ""])])
def test_the_same_is_never_suspected(array: Any) -> None:
    assert not told(array, array.copy())


def test_two_right_answers_are_as_far_apart_as_both_may_be() -> None:
    assert not told(ONES, ONES + 0.02, [0.01, 0.01001])
    assert told(ONES, ONES + 0.02, [0.01001, 0.009]) == [(THREADS, THREADS)]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (ONES, ONES[:1]),
        (ONES, np.array([1, np.nan])),
        (np.array(["a"]), np.array(["b"])),
        (np.array([1]), np.array([2])),
    ],
)
def test_what_no_rounding_does_is_suspected(one: Any, two: Any) -> None:
    assert told(one, two)[0] == (THREADS, THREADS)


def test_what_nobody_knows_a_bound_of_is_left_out() -> None:
    assert not list(threads({"y": ONES}, {"y": 2 * ONES}, {}))


class Changed(Runnable):
    """A model whose answers are made others."""

    def __init__(self, runnable: Runnable, change: Callable[[Array], Array]) -> None:
        self.runnable, self.change = runnable, change
        self.inputs, self.outputs = runnable.inputs, runnable.outputs

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        return {name: self.change(array) for name, array in self.runnable.run(feeds).items()}


def threaded(change: Callable[[Array], Array]) -> Any:
    """ONNX Runtime whose answers are others where there's more than one thread."""

    class Threaded(type(ORT)):  # type: ignore[misc]
        name = "threaded"

        def open(self, model: Model, setting: Setting, folder: Path) -> Runnable:
            opened = super().open(model, setting, folder)
            return Changed(opened, change) if setting.options.get("threads", os.cpu_count()) > 1 else opened

    return Threaded()


def doubled(array: Array) -> Array:
    return 2 * array


def larger() -> Case:
    text = "g (float[4] x) => (float[4] y, float[4] w) { a = Abs (x) b = Exp (a) y = Sqrt (b) w = Neg (a) }"
    return case(text, x=np.linspace(-1, 2, 4).astype(np.float32))


def test_what_hangs_on_threads_is_told_from_wrong_numbers(tmp_path: Path) -> None:
    system, setting = threaded(doubled), ORT.settings["all"]
    found = look(larger(), system, setting, tmp_path, stage=THREADS).suspicion
    assert found is not None
    assert (found.kind, found.stage) == (THREADS, THREADS)
    assert found.given is not None
    assert "threads" in found.message
    assert look(right(), ORT, setting, tmp_path, stage=THREADS).verdict == RIGHT


def test_another_order_of_additions_is_right(tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    made = case("g (float[1000] x) => (float[1] y) { y = ReduceSum (x) }", x=x)
    nudged = threaded(lambda array: np.nextafter(array, np.float32(9)))
    for stage in ("", THREADS):
        assert look(made, nudged, ORT.settings["all"], tmp_path, stage=stage).verdict == RIGHT


@pytest.mark.parametrize("name", ["none", "all"])
def test_where_nobody_computes_exact_values_rounding_is_estimated(name: str, tmp_path: Path) -> None:
    text = """g (float[1, 1, 2] x, float[1, 3, 2] w, float[1, 3, 1] r, float[1, 6] b) => (float[1, 1, 1, 1] y)
    { y = GRU <hidden_size = 1, clip = 0.5> (x, w, r, b) }"""
    arrays = {"x": (1, 1, 2), "w": (1, 3, 2), "r": (1, 3, 1), "b": (1, 6)}
    made = case(text, **{name: np.full(shape, 0.1, np.float32) for name, shape in arrays.items()})
    asked = functools.partial(look, made, setting=ORT.settings[name], folder=tmp_path, stage=THREADS)
    found = asked(threaded(doubled)).suspicion
    assert found is not None
    assert found.kind == THREADS
    nudged = asked(threaded(lambda array: np.nextafter(array, np.float32(9))))
    assert nudged.verdict == (ALIKE if name == "all" else UNJUDGED)


def test_it_is_reduced_and_keeps_what_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SYSTEMS, "threaded", threaded(doubled))
    asked = entry("threaded-all")
    seen = look(larger(), asked.runs, asked.chosen, tmp_path, stage=THREADS).suspicion
    assert seen is not None
    found = reduced(larger(), seen, asked, tmp_path, seconds=10, longest=10)
    assert (found.verdict, found.suspicion.kind) == (SUSPECT, THREADS), found.words
    assert len(found.case.model.graph.node) == 1
    assert found.cause.plainly


def test_an_exception_with_other_threads_alone_is_of_that_stage(tmp_path: Path) -> None:
    class Raising(type(ORT)):  # type: ignore[misc]
        def with_threads(self, *_: Any) -> Any:
            raise IndexError("no such thread")

    found = look(right(), Raising(), ORT.settings["all"], tmp_path, stage=THREADS).suspicion
    assert found is not None
    assert (found.kind, found.stage) == ("exception", THREADS)


@pytest.mark.parametrize(
    "name",
    [
        *("ort-all", "tvm-O2", "torch-eager", "torch-compile", "tflite-delegate"),
        *("convert-onnxslim", "convert-script", "convert-onnx2torch", "convert-tflite", "convert-tvm-torch"),
    ],
)
def test_installed_systems_run_and_show_both_numbers(name: str, tmp_path: Path) -> None:
    """Their answers are the same, so their programs say that nothing is there."""
    asked = entry(name)
    found = tried(right(), asked.runs, asked.chosen, tmp_path, threads=True)
    assert found.ended is None, found.ended
    assert found.otherwise["y"].tolist() == found.answers[0]["y"].tolist()
    assert not tried(right(), asked.runs, asked.chosen, tmp_path).otherwise


def test_a_chain_has_the_threads_of_what_runs_it() -> None:
    chains = SYSTEMS["convert"]
    without = {name for name, setting in chains.settings.items() if not chains.threads(setting)}
    assert without == {"import"}
    assert not any(entry(name).runs.threads(entry(name).chosen) for name in ("tensorflow-xla", "tvm-cuda"))


@pytest.mark.parametrize("name", ["convert-onnxslim", "convert-onnx2torch"])
def test_a_chains_program_compares_both(name: str, tmp_path: Path) -> None:
    said = Suspicion(THREADS, THREADS, "", "the number of threads matters", "", "y", (0,), 1.0, 2.0, 1e-9)
    program = written_finding(finding_of(right(), name, tmp_path, suspicion=said), right(), tmp_path) / "reproduce.py"
    text = program.read_text()
    option = f"_threads = {OTHER_THREADS}" if "onnxslim" in name else f"'threads': {OTHER_THREADS}"
    assert text.count(option) == 1
    found = subprocess.run([sys.executable, program], capture_output=True, text=True, cwd="/", check=False)
    assert found.returncode == 0, found.stderr
    assert f"y[(0,)] is 1.0, and 1.0 with {OTHER_THREADS} threads" in found.stdout


def test_a_session_takes_as_many_as_it_is_told(tmp_path: Path) -> None:
    from conrepair.formats.models.identity import model_sha256

    path = tmp_path / "model.onnx"
    path.write_bytes(right().network)
    model = Model("onnx", str(path), model_sha256(path))
    for count in (1, 3):
        opened = ORT.open(model, ORT.settings["all"].with_options({"threads": count}), tmp_path)
        assert opened._session.get_session_options().intra_op_num_threads == count  # type: ignore[attr-defined]


@pytest.mark.parametrize(("plain", "code"), [(True, 1), (False, 0)])
def test_a_program_compares_both(plain: bool, code: int, tmp_path: Path) -> None:
    """Of a network that optimizations are wrong on, where the second run has none of them, and as it is."""
    made = padded_pool()
    said = Suspicion(THREADS, THREADS, "", "the number of threads matters", "", "y", (0,) * 4, 0.0, 1.0, 1e-9)
    finding = finding_of(made, "ort-all", tmp_path, suspicion=said)
    program = written_finding(finding, made, tmp_path) / "reproduce.py"
    assert finding.title.startswith("ort-all: outputs depend on the number of threads")
    text = program.read_text()
    if plain:
        line = f"options.intra_op_num_threads = {OTHER_THREADS}"
        assert text.count(line) == 1
        level = "onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL"
        program.write_text(text.replace(line, f"options.graph_optimization_level = {level}"))
    found = subprocess.run([sys.executable, "-I", program], capture_output=True, text=True, cwd="/", check=False)
    assert (found.returncode, found.stderr) == (code, "")
    assert f"with {OTHER_THREADS} threads" in found.stdout
