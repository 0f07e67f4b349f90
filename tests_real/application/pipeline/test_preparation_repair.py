"""A target that is fed by a wrong recipe is repaired by another one, with or without layers at fault."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from documents import localization_in, repair_in
from localized import WEIGHTS, Variant
from PIL import Image
from told_runs import OF_EVERY_RUN

from conrepair.application.cli import main
from conrepair.diagnosis.repairs.patch import read_patch
from conrepair.ground.runtime.files.listing import LIST
from conrepair.ground.runtime.files.whole import sha256_of

SIZE = (48, 40)
PHOTOS = 14


def network(**fields: Any) -> Variant:
    return Variant(**({"size": SIZE, "scores": "y", "after": ""} | fields))


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """Photos, and the right network."""
    (tmp_path / "photos").mkdir()
    for seed in range(PHOTOS):
        generator = np.random.default_rng(seed)
        coarse = Image.fromarray(generator.integers(0, 256, (7, 9, 3), np.uint8)).resize(
            (60 + 7 * seed, 150 - 8 * seed)
        )
        noisy = np.asarray(coarse) + generator.normal(0, 30, np.asarray(coarse).shape)
        Image.fromarray(np.clip(noisy, 0, 255).astype(np.uint8)).save(tmp_path / "photos" / f"{seed}.png")
    network().write(tmp_path / "source.onnx")
    return tmp_path


def repaired(room: Path, target: str, recipe: str, *more: str) -> tuple[int, dict[str, Any] | None]:
    """The exit code, and what result.json says of the repair."""
    words = ["repair", str(room / "source.onnx"), str(room / target), "--data", str(room / "photos"), "--samples"]
    words += [str(PHOTOS), "--recipe", "torchvision", "--target-recipe", recipe, "-o", str(room / "out"), "-q"]
    code = main([*words, "--advice", "0", *more])
    return code, repair_in(room / "out") if (room / "out").exists() else None


def test_a_wrong_recipe_alone_is_repaired_without_a_copy_of_the_model(
    room: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sha256_of(room / "source.onnx")
    code, document = repaired(room, "source.onnx", "keras:tf")
    assert code == 0
    assert document is not None
    assert (document["mended"], document["model"], document["patch"]) == (True, None, "patch.json")
    assert [fault["kind"] for fault in document["before"]["faults"]] == ["preprocessing"]
    assert document["after"]["faults"] == []
    assert document["unseen_before"]["error"] > 0.01
    unseen = document["unseen_after"]
    assert (unseen["samples"], unseen["error"], unseen["top1_differing"]) == (PHOTOS - 8, 0.0, 0)
    assert unseen["right"] is None  # no photo has a label
    shown = capsys.readouterr().out
    assert "fixed by another preprocessing: 1 fault found, 0 left" in shown
    assert "no model was written: the converted file stays as it is; preprocess its inputs" in shown
    assert "the preprocessing of photos is changed" in shown
    (edit,) = document["edits"]
    assert "(x / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225] instead of x / 127.5 - 1" in edit
    names = {path.name for path in (room / "out").iterdir()}
    assert names == {"patch.json", "recipe.json"} | OF_EVERY_RUN
    patch, target_hash = read_patch(room / "out" / "patch.json")
    assert (patch.of_file, target_hash) == ((), before)
    assert patch.recipe is not None
    assert json.loads((room / "out" / "recipe.json").read_text()) == document["recipe"]
    # The file is what --target-recipe takes, and nothing is wrong with it.
    fixed = str(room / "out" / "recipe.json")
    files = [str(room / "source.onnx")] * 2
    data = ["--data", str(room / "photos"), "--recipe", "torchvision", "--target-recipe", fixed]
    assert main(["compare", *files, *data, "-q", "-o", str(room / "compared")]) == 0
    again = str(room / "again")
    assert main(["repair", files[0], "--apply", str(room / "out" / "patch.json"), "-o", again]) == 0
    assert {path.name for path in Path(again).iterdir()} == {LIST, "recipe.json"}


def test_a_recipe_becomes_operators_of_the_model_on_request(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = {"base": "torchvision", "channels": "bgr", "divisor": 127.5, "mean": [1.0], "std": [1.0]}
    (room / "wrong.json").write_text(json.dumps(wrong))
    code, document = repaired(room, "source.onnx", str(room / "wrong.json"), "--bake-recipe")
    assert code == 0
    assert document is not None
    assert (document["recipe"], document["not_baked"]) == (None, None)
    assert document["edits"] == ["Gather, Mul, Add is put behind `image`"]
    assert document["unseen_after"]["error"] < 1e-5
    names = {path.name for path in (room / "out").iterdir()}
    assert names == {"patch.json", "patch.npz", "repaired.onnx"} | OF_EVERY_RUN
    # It's fed as before, and equal to the source.
    files = [str(room / "source.onnx"), str(room / "out" / "repaired.onnx")]
    data = ["--data", str(room / "photos"), "--recipe", "torchvision", "--target-recipe", str(room / "wrong.json")]
    assert main(["compare", *files, *data, "-q", "-o", str(room / "compared")]) == 0
    again = str(room / "again")
    assert main(["repair", files[0], "--apply", str(room / "out" / "patch.json"), "-o", again]) == 0
    assert sha256_of(Path(again) / "repaired.onnx") == sha256_of(Path(files[1]))


def test_a_recipe_that_operators_cannot_say_stays_one(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = {"base": "torchvision", "fit": "stretch", "divisor": 127.5, "mean": [1.0], "std": [1.0]}
    (room / "wrong.json").write_text(json.dumps(wrong))
    code, document = repaired(room, "source.onnx", str(room / "wrong.json"), "--bake-recipe")
    assert code == 0
    assert document is not None
    assert document["model"] is None
    assert document["recipe"] is not None
    assert "cropped or resized in another way" in document["not_baked"]
    assert "the preprocessing couldn't be built into the model" in capsys.readouterr().out


def test_a_recipe_that_is_not_the_sources_is_searched(room: Path) -> None:
    """The target divides by the deviation itself: photos that the source takes are wrong for it, too."""
    deviation = np.array([0.229, 0.224, 0.225], np.float32).reshape(1, 3, 1, 1)
    inside = network(before="z = Div (image, deviation)", begin="z", weights={"deviation": deviation})
    inside.write(room / "target.onnx")
    wrong = {"base": "torchvision", "divisor": 127.5, "mean": [1.0], "std": [1.0]}
    (room / "wrong.json").write_text(json.dumps(wrong))
    code, document = repaired(room, "target.onnx", str(room / "wrong.json"))
    assert document is not None
    assert code == 0, document["after"]["reason"]
    assert document["model"] is None
    assert (document["recipe"]["divisor"], document["recipe"]["std"], document["recipe"]["fit"]) == (255, [1], "crop")
    assert document["unseen_after"]["samples"] == PHOTOS - 8
    assert document["unseen_after"]["error"] < 1e-5


def test_a_wrong_recipe_and_a_layer_at_fault_are_both_repaired(room: Path) -> None:
    inner = WEIGHTS["inner"].copy()
    inner[2] *= -2
    network(weights={"inner": inner}).write(room / "target.onnx")
    code, document = repaired(room, "target.onnx", "keras:tf")
    assert document is not None
    assert code == 0, document["after"]["reason"]
    assert len(document["edits"]) == 2
    assert document["after"]["faults"] == []
    assert document["unseen_after"]["top1_differing"] == 0
    assert document["unseen_after"]["error"] < 1e-5
    names = {path.name for path in (room / "out").iterdir()}
    assert names == {"patch.json", "patch.npz", "recipe.json", "repaired.onnx"} | OF_EVERY_RUN


_OUT_OF_ORDER = np.array([2, 1, 0], np.int64)
_MEAN, _DEVIATION = (
    np.array(values, np.float32).reshape(1, 3, 1, 1) for values in ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
)


@pytest.mark.parametrize("more", [(), ("--bake-recipe",)])
@pytest.mark.parametrize(
    ("before", "weights"),
    [
        ("z = Gather <axis = 1> (image, order)", {"order": _OUT_OF_ORDER}),
        ("m = Sub (image, mean) z = Div (m, deviation)", {"mean": _MEAN, "deviation": _DEVIATION}),
    ],
    ids=["channels reversed", "normalised once more"],
)
def test_what_is_wrong_in_the_file_is_repaired_in_the_file(
    before: str, weights: dict[str, Any], more: tuple[str, ...], room: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Photos in the wrong order, or not normalised, would do as well: whose file is at fault wants another file."""
    network(before=before, begin="z", weights=weights).write(room / "target.onnx")
    code, document = repaired(room, "target.onnx", "torchvision", *more)
    assert document is not None
    assert code == 0, document["after"]["reason"]
    assert (document["recipe"], document["model"]["path"]) == (None, "repaired.onnx")
    assert not any("put behind `image`" in edit for edit in document["edits"])
    assert document["unseen_after"]["error"] < 1e-5
    shown = capsys.readouterr().out
    assert "repaired: 1 fault found, 0 left" in shown
    assert "recipe" not in shown.partition("next: ")[0]
    operators = [node.op_type for node in onnx.load(room / "out" / "repaired.onnx").graph.node]
    assert not {"Gather", "Sub", "Div"} & set(operators)


def test_advice_on_an_operator_in_front_names_it(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """To prepare inputs as the source's are does nothing about it: they are."""
    network(before="z = Sub (image, mean)", begin="z", weights={"mean": _MEAN}).write(room / "target.onnx")
    files = [str(room / "source.onnx"), str(room / "target.onnx"), "-o", str(room / "located"), "-q"]
    assert main(["localize", *files]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "1. preprocessing at" in shown
    (fault,) = localization_in(room / "located")["faults"]
    assert not fault["at_input"]
    assert f"next: Check `{fault['target_layers'][0]}` in target.onnx: source.onnx does nothing like it" in shown
    photos = ["--data", str(room / "photos"), "--recipe", "torchvision", "--target-recipe", "keras:tf"]
    assert main(["localize", files[0], files[0], *files[2:], *photos]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "next: Preprocess inputs for source.onnx as for source.onnx" in shown
