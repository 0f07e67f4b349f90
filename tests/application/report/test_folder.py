"""The folder that a run leaves, and what is never replaced."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import localizations
import pytest

from conrepair.application.report.folder import check_folder, write_folder
from conrepair.application.report.localization.advice import About
from conrepair.application.report.saved import read_result
from conrepair.diagnosis.localization.result import Localization
from conrepair.ground.runtime.errors import StorageError, UsageError
from conrepair.ground.runtime.files.listing import LIST

TEXTS = {LIST, "result.json", "report.html", "layers.csv", "junit.xml", "results.sarif", "summary.md"}


def write(found: Localization, folder: Path, about: About | None = None) -> None:
    run = localizations.run_of(found, about or localizations.about(), folder)
    write_folder(run, lambda _: run)


def test_all_files_of_a_real_localization(tmp_path: Path) -> None:
    found, about = localizations.wrong_pads(tmp_path)
    folder = tmp_path / "deep" / "out"
    write(found, folder, about)
    assert {path.name for path in folder.iterdir()} == TEXTS


def test_an_earlier_one_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    write(localizations.made(3, {1: 0.5}), folder)
    check_folder(folder, "localize")
    write(localizations.made(5), folder)
    assert read_result(folder).rows[0].localized.steps[0].localization.verdict.value == "noise"
    assert {path.name for path in folder.iterdir()} == TEXTS
    (folder / "notes.txt").write_text("of somebody")
    with pytest.raises(UsageError, match=r"notes\.txt was written by no"):
        check_folder(folder, "localize")
    (folder / "notes.txt").unlink()

    mine = tmp_path / "mine"
    mine.mkdir()
    check_folder(mine, "localize")  # it's empty
    (mine / "thesis.tex").write_text("years")
    for place in (mine, mine / "thesis.tex"):
        with pytest.raises(UsageError, match="no localization of this version wrote it"):
            check_folder(place, "localize")
    (mine / "result.json").write_text("{")
    with pytest.raises(UsageError, match="no localization of this version wrote it"):
        check_folder(mine, "localize")
    with pytest.raises(UsageError, match="no repair of this version wrote it"):
        check_folder(folder, "repair")
    with pytest.raises(UsageError, match="which this localization would replace"):
        check_folder(folder, "localize", [folder / "a.onnx"])


def test_on_an_error_the_earlier_files_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "out"
    write(localizations.made(3, {1: 0.5}), folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    write_text = Path.write_text

    def full(path: Path, *args: Any, **more: Any) -> int:
        if path.name == "layers.csv":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write_text(path, *args, **more)

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(StorageError, match="no space left"):
        write(localizations.made(9), folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
