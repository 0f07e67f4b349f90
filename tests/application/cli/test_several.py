"""Several targets of one source in one command."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest
from localized import WEIGHTS, Variant

from conrepair.application.cli import main
from conrepair.application.cli.several import each_target
from conrepair.application.pipeline.subject import slug

LAYER = next(iter(WEIGHTS))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Variant(size=(12, 12)).write(tmp_path / "right.onnx")
    for name, factor in (("same", 1.0), ("wrong", 1.5), ("worse", 3.0)):
        Variant(size=(12, 12), weights={LAYER: WEIGHTS[LAYER] * factor}).write(tmp_path / f"{name}.onnx")
    return tmp_path


def test_each_target_is_localized_and_the_worst_decides(capsys: pytest.CaptureFixture[str]) -> None:
    targets = ["same.onnx", "wrong.onnx"]
    assert main(["localize", "right.onnx", *targets, "-q", "--samples", "4", "-o", "found"]) == 1
    shown = capsys.readouterr().out
    assert shown.index("same.onnx\nequivalent") < shown.index("wrong.onnx\nfaulty")
    verdicts = [json.loads(Path("found", name, "result.json").read_text())["rows"][-1]["verdict"] for name in targets]
    assert verdicts[1] == "faulty"
    assert main(["localize", "right.onnx", "same.onnx", "same.onnx", "-q", "--samples", "4", "-o", "twice"]) == 0
    assert sorted(path.name for path in Path("twice").iterdir()) == ["same.onnx", "same.onnx-2"]


def test_one_that_can_not_be_looked_at_does_not_keep_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    Path("broken.onnx").write_bytes(b"no model")
    assert main(["localize", "right.onnx", "broken.onnx", "same.onnx", "-q", "--samples", "4"]) == 3
    said = capsys.readouterr()
    assert "conrepair: broken.onnx: " in said.err
    assert "same.onnx\nequivalent" in said.out


def test_each_target_is_repaired_in_a_folder_of_its_name() -> None:
    assert main(["repair", "right.onnx", "wrong.onnx", "worse.onnx", "-q", "--samples", "16", "--advice", "0"]) == 0
    assert Path("wrong-repaired/repaired.onnx").is_file()
    assert Path("worse-repaired/repaired.onnx").is_file()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["localize", "right.onnx", "same.onnx", "wrong.onnx", "--intermediate", "same.onnx"], "name only one"),
        (["repair", "right.onnx", "same.onnx", "wrong.onnx", "--apply", "same.onnx"], "--apply edits one model"),
        (["repair", "right.onnx", "same.onnx", "same.onnx"], "two repaired models would be written to"),
        (["repair", "right.onnx"], "repair takes two models, ORIGINAL and CONVERTED"),
    ],
)
def test_what_can_not_be_meant_is_refused(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert said in capsys.readouterr().err


def test_no_two_targets_share_a_folder() -> None:
    """Whatever a third one of the same name, or one of another case, would be called."""
    folders: list[str] = []
    targets = ["a/net.onnx", "b/net.onnx-2", "b/net.onnx", "c/Net.onnx", "d/net.onnx"]
    options = argparse.Namespace(targets=targets, output="out", format="json")

    def look(one: argparse.Namespace) -> int:
        folders.append(one.output)
        return 0

    assert each_target(options, look) == 0
    assert len({folder.casefold() for folder in folders}) == len(targets)
    assert folders[0] == str(Path("out") / "net.onnx")


def test_files_without_letters_are_called_something() -> None:
    assert [slug(Path(name)) for name in ("...", "___", "net.onnx")] == ["model", "model", "net.onnx"]
