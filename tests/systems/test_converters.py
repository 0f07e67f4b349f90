"""Converters as systems: each is run without optimizations, and answers for its own libraries."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzz_cases import padded_pool, right

from conrepair.frameworks.model import Model
from conrepair.fuzz.cause import isolated
from conrepair.fuzz.looking import RIGHT, look
from conrepair.systems.converters import SYSTEM
from conrepair.systems.registry import entry

VERSIONS = {
    "onnx": "1",
    "onnxruntime": "2",
    "onnxslim": "3",
    "onnxsim": "4",
    "onnxoptimizer": "4",
    "torch": "5",
    "numpy": "6",
    "keras": "7",
}
NAMES = tuple(SYSTEM.settings)


@pytest.mark.parametrize("name", NAMES)
def test_each_has_a_chain_libraries_and_a_program(name: str) -> None:
    setting = SYSTEM.settings[name]
    route = SYSTEM.route(setting)
    assert (not route.steps) == (name == SYSTEM.plain)
    compile(SYSTEM.program(setting).text, name, "exec")
    assert SYSTEM.cost(setting) >= 1
    assert set(SYSTEM.blamed(setting, VERSIONS)) <= set(VERSIONS)


def test_the_libraries_at_fault_are_the_converters_and_what_runs_it() -> None:
    assert SYSTEM.blamed(SYSTEM.settings["none"], VERSIONS) == {"onnxruntime": "2"}
    assert set(SYSTEM.blamed(SYSTEM.settings["onnxslim"], VERSIONS)) >= {"onnxslim", "onnxruntime"}
    assert "torch" in SYSTEM.blamed(SYSTEM.settings["dynamo"], VERSIONS)
    assert "onnxruntime" not in SYSTEM.blamed(SYSTEM.settings["onnx2torch"], VERSIONS)


def test_optimizers_of_onnx_files_cost_less_than_frameworks() -> None:
    few, many = (SYSTEM.cost(SYSTEM.settings[name]) for name in ("onnxslim", "keras"))
    assert few < many


@pytest.mark.parametrize("name", ["onnxslim", "onnxsim", "onnxoptimizer", "version"])
def test_one_library_alone_needs_nothing_of_ours(name: str) -> None:
    assert "conrepair" not in SYSTEM.program(SYSTEM.settings[name]).text
    assert "ORT_DISABLE_ALL" in SYSTEM.program(SYSTEM.settings[name]).text


@pytest.mark.parametrize("name", ["none", "onnxslim", "onnxsim", "version", "normalise"])
def test_an_optimizations_fault_is_no_converters(name: str, tmp_path: Path) -> None:
    for made in (right(), padded_pool()):
        assert look(made, SYSTEM, SYSTEM.settings[name], tmp_path).verdict == RIGHT


def test_its_plain_setting_is_onnx_runtimes() -> None:
    assert SYSTEM.settings[SYSTEM.plain] == entry("ort-none").chosen
    assert entry("convert").setting == "onnxslim"
    assert not SYSTEM.kernels


def test_a_converters_pass_is_a_switch(tmp_path: Path) -> None:
    made = padded_pool()
    asked = entry("convert-onnxoptimizer")
    found = look(made, asked.runs, asked.chosen, tmp_path)
    assert found.suspicion is not None
    cause = isolated(made, found.suspicion, asked.runs, asked.chosen, tmp_path)
    assert cause.causes == (("onnx-onnxoptimizer:fuse_pad_into_pool",),)
    assert cause.exact


def test_options_of_converters_are_switches(tmp_path: Path) -> None:
    asked = entry("convert-onnxsim")
    off = asked.runs.switches(Model("onnx", "", ""), asked.chosen, tmp_path)
    assert [item.name for item in off] == ["onnx-onnxsim:fuse_batch_norm", "onnx-onnxsim:fold_constants"]
    without = asked.runs.without(asked.chosen, off)
    assert without.conversion == {"onnx-onnxsim": {"fuse_batch_norm": False, "fold_constants": False}}
