"""Backends of plug-ins as systems: judged like others, with their own settings, switches and programs."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from conrepair.formats.backends.all_backends import BACKENDS
from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import Model
from conrepair.ground.runtime.errors import ConversionError, UsageError
from conrepair.plugins import Backend, ConfigError, Runnable, Switch, describe
from conrepair_lab.cases.case import Case
from conrepair_lab.fuzz.cause import isolated
from conrepair_lab.fuzz.looking import RIGHT, SUSPECT, look
from conrepair_lab.fuzz.suspicion import REFUSED
from conrepair_lab.fuzz.trial import tried
from conrepair_lab.systems import registry
from conrepair_lab.systems.plugged import Plugged
from conrepair_lab.systems.registry import SYSTEMS, entry, names
from conrepair_lab.systems.system import System

TEXT = """<ir_version: 8, opset_import: ["" : 17]> net (float[3] x) => (float[3] y) { y = Mul (x, x) }"""
PROGRAM = """\
from onnx.reference import ReferenceEvaluator

session = ReferenceEvaluator("model.onnx")


def compute(feeds):
    return {{"y": session.run(None, feeds)[0] * numpy.float32({factor})}}
"""


class Evaluated(Runnable):
    def __init__(self, model: Model, options: Mapping[str, Any]) -> None:
        from onnx.reference import ReferenceEvaluator

        found = describe(model)
        self.inputs, self.outputs = found.inputs, found.outputs
        if "Neg" in found.operators:
            raise RuntimeError("Unimplemented(Neg)\n\nStack backtrace:\n 0: one\n 1: two")
        self._session, self._factor = ReferenceEvaluator(model.path), np.float32(options.get("factor", 1))

    def _run(self, feeds: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"y": self._session.run(None, dict(feeds))[0] * self._factor}


class Mine(Backend):
    packages: Mapping[str, str] = {"onnx": "onnx"}

    def check(self, options: Mapping[str, Any]) -> None:
        if unknown := set(options) - {"factor", "threads"}:
            raise ConfigError(f"no {unknown}")

    def takes(self, model: Model, options: Mapping[str, Any]) -> str:
        return "onnx"

    def load(self, model: Model, options: Mapping[str, Any]) -> Runnable:
        return Evaluated(model, options)

    def switches(self, options: Mapping[str, Any], load: Any) -> list[Switch]:
        return [Switch("factor", "option", "factor=1")] if "factor" in options else []

    def without(self, options: Mapping[str, Any], names: Any) -> dict[str, Any]:
        return {name: value for name, value in options.items() if name not in names}


class Fast(Mine):
    settings: Mapping[str, Mapping[str, Any]] = {"plain": {}, "fast": {"factor": 0.5}}

    def program(self, options: Mapping[str, Any]) -> str:
        return PROGRAM.format(factor=options.get("factor", 1))


class Narrow(Mine):
    narrowed = frozenset({"float64"})


class Half(Mine):
    def arithmetic(self, options: Mapping[str, Any]) -> str:
        return "float16"


class Absent(Mine):
    def lacks(self) -> str:
        return "pip install mine"


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, backend in {
        "mine": Mine(),
        "my-fast": Fast(),
        "half": Half(),
        "narrow": Narrow(),
        "absent": Absent(),
    }.items():
        monkeypatch.setitem(BACKENDS._loaded, name, backend)
        if name != "half":
            monkeypatch.setitem(SYSTEMS, name, Plugged(name, {"onnx": "model.onnx"}))


def case(text: str = TEXT) -> Case:
    feeds = {"x": np.array([0.5, 1.25, 3.0], np.float32)}
    return Case(onnx.parser.parse_model(text).SerializeToString(), feeds)


@pytest.mark.parametrize(("name", "verdict"), [("mine", RIGHT), ("my-fast-plain", RIGHT), ("my-fast", SUSPECT)])
def test_a_backend_is_judged_as_it_is(name: str, verdict: str, tmp_path: Path) -> None:
    found = look(case(), entry(name).runs, entry(name).chosen, tmp_path)
    assert found.verdict == verdict
    assert found.suspicion is None or found.suspicion.kind == "numbers"


def test_a_fault_is_isolated_by_the_plugins_switches(tmp_path: Path) -> None:
    asked = entry("my-fast")
    seen = look(case(), asked.runs, asked.chosen, tmp_path).suspicion
    assert seen is not None
    assert isolated(case(), seen, asked.runs, asked.chosen, tmp_path).causes == (("factor",),)


def test_what_a_runtime_has_not_is_a_gap_and_its_stack_is_left_out(tmp_path: Path) -> None:
    ended = tried(case(TEXT.replace("Mul (x, x)", "Neg (x)")), entry("mine").runs, entry("mine").chosen, tmp_path)
    assert ended.ended is not None
    assert (ended.ended.kind, ended.ended.message) == (REFUSED, "Unimplemented(Neg)")


def test_what_is_narrowed_is_not_judged(tmp_path: Path) -> None:
    asked, feeds = entry("narrow"), {"x": np.ones(3)}
    wide = Case.of(onnx.parser.parse_model(TEXT.replace("float[", "double[")), feeds)
    found = look(wide, asked.runs, asked.chosen, tmp_path)
    assert (found.verdict, "narrow computes float64 in a narrower type" in found.message) == (REFUSED, True)
    assert look(case(), asked.runs, asked.chosen, tmp_path).verdict == RIGHT


def test_settings_are_found_by_name() -> None:
    assert {"mine-usual", "my-fast-plain", "my-fast-fast"} <= {*names()}
    assert "absent-usual" not in names()
    assert (entry("my-fast").setting, entry("my-fast").plain.name) == ("fast", "my-fast-plain")
    assert entry("mine").runs.threads(entry("mine").chosen)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("half", "half computes in float16, and rounding error is judged of float32"),
        ("absent", "what runs absent isn't installed: pip install mine"),
        ("my-fast-slow", "there is no system called 'my-fast-slow'"),
        ("mine-usual@1.0", "can't be run in other releases"),
        ("onnxruntime", "there is no system called 'onnxruntime'"),
    ],
)
def test_what_is_no_system_says_why(name: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        entry(name)


def test_a_plugin_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str, files: Mapping[str, str]) -> Plugged:
        raise KeyError(name)

    monkeypatch.delitem(SYSTEMS, "iree", raising=False)
    monkeypatch.setattr(registry, "Plugged", absent)
    with pytest.raises(UsageError, match="pip install conrepair-iree"):
        entry("iree-O0")
    monkeypatch.setitem(SYSTEMS, "iree", SYSTEMS["my-fast"])
    with pytest.raises(UsageError, match="there is no system called 'iree-O0'"):
        entry("iree-O0")


def test_a_program_does_the_same_without_conrepair(tmp_path: Path) -> None:
    asked, path = entry("my-fast"), tmp_path / "model.onnx"
    path.write_bytes(onnx.parser.parse_model(TEXT).SerializeToString())
    np.savez(tmp_path / "inputs.npz", **case().inputs)
    assert asked.runs.programmed(Model("onnx", str(path), model_sha256(path)), asked.chosen, tmp_path).path == str(
        path
    )
    text = asked.runs.program(asked.chosen).text
    (tmp_path / "program.py").write_text(text)
    subprocess.run([sys.executable, "program.py"], cwd=tmp_path, check=True)
    with np.load(tmp_path / "outputs.npz") as found:
        np.testing.assert_array_equal(found["y"], [0.125, 0.78125, 4.5])
    assert "conrepair" not in text
    assert asked.runs.distribution(asked.chosen) == "onnx"


def test_where_a_plugin_has_no_program_conrepair_runs_it() -> None:
    assert "entry('mine-usual')" in entry("mine").runs.program(entry("mine").chosen).text
    assert entry("mine").runs.distribution(entry("mine").chosen) == ""


def test_versions_of_its_packages_are_at_fault() -> None:
    assert entry("mine").runs.blamed(entry("mine").chosen, {"onnx": "1.2", "numpy": "3"}) == {"onnx": "1.2"}


def test_it_travels_to_other_processes() -> None:
    sent = copy.copy(entry("my-fast").runs)  # as pickle does
    assert (sent.name, sent.usual, sent.file) == ("my-fast", "fast", "model.onnx")


def test_what_a_converter_stumbles_over_is_no_fault_of_the_backend(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fails(self: System, *_: Any) -> Model:
        raise ConversionError("onnx2torch fails") from IndexError("out of range")

    monkeypatch.setattr(System, "converted", fails)
    ended = tried(case(), entry("mine").runs, entry("mine").chosen, tmp_path).ended
    assert ended is not None
    assert ended.kind == REFUSED
