"""Networks made of models: found, learned of once, grown from, and told apart from others."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import onnx_networks
import pytest

import conrepair
from conrepair.application.cli import main
from conrepair.ground.runtime.errors import UsageError
from conrepair.ground.runtime.shown.progress import ProgressDisplay
from conrepair_lab.campaigns.generate_material import CASES, MaterialFiles, material_files, material_of
from conrepair_lab.generate.generated import each_generated
from conrepair_lab.generate.wishes import Wishes

FEW = ["--operators", "Relu,Add,Mul", "-j", "1"]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "models").mkdir()
    return onnx_networks.residual(tmp_path / "models" / "residual.onnx")


def test_files_folders_and_cases_are_found(tmp_path: Path, model: Path) -> None:
    found = material_files(["onnx", "models"], ["models/residual.onnx"], tmp_path)
    assert found == MaterialFiles(cases=True, learned=(model,), models=(model,))
    assert found.identity["learned"][0] == CASES
    assert MaterialFiles().identity == {}
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"has no \.onnx file"):
        material_files([], ["empty"], tmp_path)
    with pytest.raises(UsageError, match="is no file or folder"):
        material_files(["nowhere"], [], tmp_path)


def test_one_input_and_output_are_not_grown_from_models(model: Path) -> None:
    with pytest.raises(UsageError, match="exclude each other"):
        MaterialFiles(models=(model,)).check(Wishes(single=True))
    MaterialFiles(learned=(model,)).check(Wishes(single=True))


def test_networks_in_this_process_have_what_is_named(model: Path) -> None:
    files = MaterialFiles(cases=True, models=(model,))
    with ProgressDisplay(quiet=True) as display:
        material = material_of(files, files.instances(display), 20)
    wishes = Wishes(nodes=5, changes=2, operators=("Relu", "Add", "Mul"))
    for network in each_generated(wishes, 1, 2, material):
        onnx.checker.check_model(network.model, full_check=True)
        assert network.about["from"] == "residual.onnx"
        assert len(network.about["changes"]) == 2
    cases = conrepair.generated(2, nodes=2, operators=["SequenceLength"], learn=["onnx"])
    assert [network.about["operators"] for network in cases] == [{"SequenceLength": 2}] * 2


@pytest.mark.workers
def test_networks_of_a_folder_are_made_of_what_is_named(tmp_path: Path, model: Path) -> None:
    root = tmp_path / "out"
    code = main(
        ["generate", "-n", "2", "--nodes", "5", "--from", str(model), "--learn", str(model), *FEW, "-o", str(root)]
    )
    assert code == 0
    for folder in sorted(root.glob("0*")):
        assert json.loads((folder / "model.json").read_text())["from"] == "residual.onnx"
    wishes = json.loads((root / "generated.json").read_text())["wishes"]
    assert len(wishes["grown from"]) == len(wishes["learned"]) == 1
    assert main(["generate", "-n", "2", "--nodes", "5", *FEW, "-o", str(root)]) == 2  # others
