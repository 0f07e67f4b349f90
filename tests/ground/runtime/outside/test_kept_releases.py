"""Environments of other releases take no more than a limit: those go first that weren't used for longest."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from conrepair.application.cli import main
from conrepair.application.engine.place import make_environments
from conrepair.ground.runtime.errors import UsageError
from conrepair.ground.runtime.outside.environments import environments_folder, use_environment
from conrepair.ground.runtime.outside.releases import RELEASES_LIMIT, kept_releases, release, trim_releases
from conrepair.ground.runtime.shown.progress import ProgressDisplay

NAMES = ("onnxruntime==1.18.0", "onnxruntime==1.19.0", "onnxruntime==1.20.0")


@pytest.fixture(autouse=True)
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three of 1 GB, of which the first was used last."""
    monkeypatch.setenv("CONREPAIR_CACHE", str(tmp_path / "cache"))
    for age, name in enumerate(NAMES):
        wanted = release(*name.split("=="))
        folder = environments_folder() / f"{name}-{wanted.key}"
        (folder / "bin").mkdir(parents=True)
        (folder / "bin" / "python").touch()
        (folder / "record.json").write_text(json.dumps({"gigabytes": 1.0, "seconds": 1.0}))
        os.utime(folder / "record.json", (1e9 - age, 1e9 - age))
    return tmp_path / "cache"


def names() -> list[str]:
    return [wanted.name for wanted, _ in kept_releases()]


def test_they_lie_in_the_cache_that_is_named(made: Path) -> None:
    assert environments_folder() == made / "environments"
    assert names() == list(NAMES)


def test_those_go_first_that_were_not_used_for_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    assert trim_releases() == ["onnxruntime==1.20.0"], "2 GB stay without a word"
    monkeypatch.setenv(RELEASES_LIMIT, "1.5")
    assert trim_releases() == ["onnxruntime==1.19.0"]
    assert names() == ["onnxruntime==1.18.0"]


def test_what_is_needed_or_used_stays() -> None:
    with use_environment(release("onnxruntime", "1.19.0")) as used:
        assert used is not None
        assert trim_releases(["onnxruntime==1.20.0"], limit=0) == ["onnxruntime==1.18.0"]
    assert names() == ["onnxruntime==1.19.0", "onnxruntime==1.20.0"]


def test_what_is_asked_for_again_was_used_last() -> None:
    with ProgressDisplay(quiet=True) as display:
        make_environments(["onnx", "onnxruntime==1.20.0"], display)
    assert names() == ["onnxruntime==1.20.0", "onnxruntime==1.18.0"], "3 GB were too much"


def test_a_limit_that_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RELEASES_LIMIT, "much")
    with pytest.raises(UsageError, match=RELEASES_LIMIT):
        trim_releases()


def test_the_cache_shows_and_clears_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache"]) == 0
    assert "3.0 GB in environments of other releases" in capsys.readouterr().out
    assert main(["cache", "-f", "json"]) == 0
    assert list(json.loads(capsys.readouterr().out)["environments"]) == list(NAMES)
    assert main(["cache", "clear"]) == 0
    assert names() == []
