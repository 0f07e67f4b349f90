"""What is read of the files that a saved result names: its own, and photos where a person says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import strangers
from PIL import Image

from conrepair.application.cli import main
from conrepair.application.report.saved import read_result


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A folder of somebody's, beside files of one's own."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious.onnx").write_text("secret")
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


def repaired(run: Path, **paths: str) -> dict[str, Any]:
    """A repair, all of whose files are its own but those named."""
    document = strangers.full_document("repair")
    document["rows"] = document["rows"][1:]
    told = document["rows"][0]["repaired"]
    told["problem"] = None
    told["result"]["interrupted"] = False
    told["result"]["model"]["path"] = paths.get("model", "repaired.onnx")
    told["result"]["patch"] = paths.get("patch", "patch.json")
    told["advice"][0]["model"]["path"] = paths.get("advice", "anew.onnx")
    for name in ("repaired.onnx", "patch.json", "patch.npz", "recipe.json", "anew.onnx"):
        if not (run / name).is_symlink():
            (run / name).write_text(f"its own {name}")
    (run / "result.json").write_text(json.dumps(document))
    return document


def test_a_repairs_own_files_go_along(run: Path) -> None:
    repaired(run)
    assert main(["report", str(run), "-q", "-o", str(run.parent / "new")]) in {0, 1}
    for name in ("repaired.onnx", "patch.json", "patch.npz", "recipe.json"):
        assert (run.parent / "new" / name).read_text() == f"its own {name}"


@pytest.mark.parametrize("which", ["model", "patch", "advice"])
@pytest.mark.parametrize(
    "path", ["{mine}", "../mine/precious.onnx", "link.onnx", "folder", "/dev/zero", "..", ".", "a\0b"]
)
def test_nothing_of_anybody_elses_is_copied(
    which: str, path: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = run.parent / "mine"
    (run / "link.onnx").symlink_to(mine / "precious.onnx")
    (run / "folder").mkdir()
    (run / "folder" / "link").symlink_to(mine)
    repaired(run, **{which: path.format(mine=mine / "precious.onnx")})
    assert main(["report", str(run), "-q", "-o", str(run.parent / "new")]) in {0, 1}
    assert "Traceback" not in capsys.readouterr().err
    written = {
        file.name: file.read_text(errors="replace") for file in (run.parent / "new").rglob("*") if file.is_file()
    }
    assert "result.json" in written
    assert "secret" not in written.values()
    assert not {"repaired.onnx", "patch.json", "precious.onnx", "anew.onnx"} & written.keys()


def test_what_lies_beside_a_patch_is_no_link_either(run: Path) -> None:
    (run / "patch.npz").symlink_to(run.parent / "mine" / "precious.onnx")
    repaired(run)
    assert main(["report", str(run), "-q", "-o", str(run.parent / "new")]) in {0, 1}
    assert not (run.parent / "new" / "patch.npz").exists()


def localized(run: Path, config: dict[str, Any]) -> None:
    document = strangers.full_document("localize")
    document["config"] = config
    document["rows"][1]["inputs"][0]["name"] = "cat.png"
    document["recipes"] = {"net": {"name": "raw"}}
    (run / "result.json").write_text(json.dumps(document))


def test_photos_are_shown_of_folders_that_a_person_names(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = run.parent / "mine"
    for folder in (mine, mine / "photos"):
        folder.mkdir(exist_ok=True)
        Image.new("RGB", (8, 8)).save(folder / "cat.png")
    localized(run, {"data": str(mine)})
    main(["report", str(run), "-q"])
    assert "data:image/jpeg" not in (run / "report.html").read_text(encoding="utf-8")
    assert "photos aren't shown" in capsys.readouterr().out
    main(["report", str(run), "-q", "--data", str(mine / "photos")])
    assert "data:image/jpeg" in (run / "report.html").read_text(encoding="utf-8")
    document = json.loads((run / "result.json").read_text())
    for name in ("../cat.png", str(mine / "cat.png"), "a\0b", "n" * 300):
        document["rows"][1]["inputs"][0]["name"] = name
        (run / "result.json").write_text(json.dumps(document))
        main(["report", str(run), "-q", "--data", str(mine / "photos")])
        assert "data:image/jpeg" not in (run / "report.html").read_text(encoding="utf-8"), name


def test_a_configuration_of_any_form_names_no_photos(run: Path) -> None:
    localized(run, {"data": 5, "models": 7, "dataset": [1]})
    assert main(["report", str(run), "-q"]) in {0, 1, 4}
    assert read_result(run).config["models"] == 7
