"""Converters as systems: each is run without optimizations, and answers for its own libraries."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from fuzz_cases import padded_pool, right

from conrepair.formats.models.model import Model
from conrepair.ground.runtime.errors import ConfigError
from conrepair_lab.cases.case import Case
from conrepair_lab.fuzz.cause import isolated
from conrepair_lab.fuzz.looking import RIGHT, look
from conrepair_lab.fuzz.reducing import reduced
from conrepair_lab.fuzz.suspicion import REFUSED
from conrepair_lab.systems.converters import SYSTEM
from conrepair_lab.systems.registry import entry

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
    assert [item.name for item in off] == [
        f"onnx-onnxsim:{name}" for name in ("fuse_batch_norm", "fold_constants", "infer_shapes")
    ]
    without = asked.runs.without(asked.chosen, off)
    assert without.conversion == {
        "onnx-onnxsim": {"fuse_batch_norm": False, "fold_constants": False, "infer_shapes": False}
    }


def drawn(name: str, seed: int) -> dict[str, Any]:
    return SYSTEM.drawn(SYSTEM.settings[name], np.random.default_rng(seed))


@pytest.mark.parametrize("name", NAMES)
def test_options_that_are_drawn_exist_and_are_written_into_programs(name: str) -> None:
    found = [drawn(name, seed) for seed in range(20)]
    assert any(found) == (name not in {SYSTEM.plain, "import"})  # the importer's options change what inputs look like
    for options in found:
        setting = SYSTEM.with_drawn(SYSTEM.settings[name], options)
        for step in SYSTEM.route(setting).steps:
            step.complete(setting.conversion.get(step.name, {}))
        compile(SYSTEM.program(setting).text, name, "exec")
    assert SYSTEM.drawn(SYSTEM.settings[name], np.random.default_rng(0)) == found[0]


@pytest.mark.parametrize("name", ["onnxslim", "onnxsim", "onnxoptimizer", "version", "normalise"])
def test_a_right_network_is_right_with_them_too(name: str, tmp_path: Path) -> None:
    for seed in range(5):
        made = right()
        made = Case(made.network, made.inputs, {"convert": drawn(name, seed)})
        found = look(made, SYSTEM, SYSTEM.settings[name], tmp_path)
        assert found.verdict in {RIGHT, REFUSED}, found


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        (
            "onnxslim",
            {"onnx-onnxslim:infer_shapes": False, "onnx-onnxslim:FusionGemm": False},
            ("no_shape_infer=True", "skip_fusion_patterns=[name for name in ['FusionGemm']"),
        ),
        (
            "onnxsim",
            {"onnx-onnxsim:fold_constants": False, "onnx-onnxsim:branches": True},
            ("skip_constant_folding=True", "include_subgraph=True"),
        ),
        ("onnxoptimizer", {"onnx-onnxoptimizer:eliminate_identity": False}, ("not in ['eliminate_identity']",)),
        ("version", {"onnx-version-converter:opset": 22}, ("convert_version(model, 22)",)),
        ("normalise", {"onnx-normalise:opset": 17}, ("{'onnx-normalise': {'opset': 17}}",)),
        ("keras", {"keras-onnx-tf2onnx:remove_identity": False}, ("{'without': 'remove_identity'}",)),
        ("script", {"torch-onnx-script:opset": 9}, ("{'torch-onnx-script': {'opset': 9}}",)),
    ],
)
def test_a_program_says_what_was_drawn_and_does_it(
    name: str, options: dict[str, Any], words: tuple[str, ...], tmp_path: Path
) -> None:
    program = SYSTEM.program(SYSTEM.with_drawn(SYSTEM.settings[name], options)).text
    assert [item for item in words if item not in program] == []
    made = right()
    (tmp_path / "model.onnx").write_bytes(made.network)
    np.savez(tmp_path / "inputs.npz", **made.inputs)
    (tmp_path / "program.py").write_text(program)
    subprocess.run([sys.executable, "program.py"], cwd=tmp_path, check=True, capture_output=True)
    with np.load(tmp_path / "outputs.npz") as found:
        assert found["y"].tolist() == [1.0, -2.0]


def test_optimizers_of_tf2onnx_are_switches(tmp_path: Path) -> None:
    made = padded_pool()
    setting = SYSTEM.settings["keras"]
    switches = SYSTEM.switches(Model("onnx", "", ""), setting, tmp_path)
    off = [item for item in switches if item.name == "keras-onnx-tf2onnx:optimize_transpose"]
    counts = []
    for one in (setting, SYSTEM.without(setting, off)):
        there = SYSTEM.converted(made.file(tmp_path), one, tmp_path)
        counts.append([node.op_type for node in onnx.load(there.path).graph.node].count("Transpose"))
    assert counts[0] < counts[1]
    with pytest.raises(ConfigError, match="there is no pass 'optimise_transpose'"):
        SYSTEM.converted(
            made.file(tmp_path),
            SYSTEM.with_drawn(setting, {"keras-onnx-tf2onnx:optimise_transpose": False}),
            tmp_path,
        )


def test_what_is_left_out_besides_what_was_drawn_adds_to_it(tmp_path: Path) -> None:
    setting = SYSTEM.with_drawn(SYSTEM.settings["onnxslim"], {"onnx-onnxslim:FusionGemm": False})
    switches = SYSTEM.switches(Model("onnx", "", ""), setting, tmp_path)
    off = [item for item in switches if item.name.endswith((":infer_shapes", ":FusionPadConv"))]
    assert SYSTEM.without(setting, off).conversion == {
        "onnx-onnxslim": {"infer_shapes": False, "without": "FusionGemm,FusionPadConv"}
    }


def test_drawn_options_are_part_of_a_finding(tmp_path: Path) -> None:
    """Of passes that are left out nothing stays where the fault is another's, as reducing finds."""
    options = {"convert": {"onnx-onnxoptimizer:eliminate_identity": False}}
    made = Case(padded_pool().network, padded_pool().inputs, options)
    asked = entry("convert-onnxoptimizer")
    seen = look(made, asked.runs, asked.chosen, tmp_path).suspicion
    assert seen is not None
    found = reduced(made, seen, asked, tmp_path, seconds=5, longest=5)
    assert not found.case.options
