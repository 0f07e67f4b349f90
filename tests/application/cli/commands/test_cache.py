"""Results of commands of one or two files are kept in the user's cache, below a limit."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from localized import WEIGHTS, Variant

from conrepair.application.cli import main
from conrepair.ground.runtime.errors import StorageError
from conrepair.ground.runtime.files.store import Entry, Store
from conrepair.ground.runtime.files.trimming import entries, trim
from conrepair.ground.runtime.files.user_cache import FOLDER, LIMIT, user_cache
from conrepair.ground.runtime.processes.confinement import CONFINED, within_reach

Localize = Callable[..., str]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv(FOLDER, str(folder))
    monkeypatch.delenv(LIMIT, raising=False)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return folder


@pytest.fixture
def pair(tmp_path: Path) -> list[str]:
    layer = next(iter(WEIGHTS))
    right = Variant(size=(12, 12)).write(tmp_path / "right.onnx").path
    wrong = Variant(size=(12, 12), weights={layer: WEIGHTS[layer] * 1.5}).write(tmp_path / "wrong.onnx").path
    return [right, wrong]


@pytest.fixture
def localize(pair: list[str], capsys: pytest.CaptureFixture[str]) -> Localize:
    def run(*more: str) -> str:
        """What was said on standard error."""
        assert main(["localize", *pair, "--timings", "-q", "--samples", "4", *more]) == 1
        return capsys.readouterr().err

    return run


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    capsys.readouterr()
    assert main(["cache", *words, "-f", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_second_localization_is_taken_from_it(cache: Path, localize: Localize) -> None:
    assert "from the cache" not in localize()
    again = localize().splitlines()
    assert "look, from the cache" in again
    assert not any(line.startswith(("look  ", "before the first job")) for line in again)
    fresh = localize("--fresh")
    assert "from the cache" not in fresh
    assert "look, from the cache" in localize().splitlines()
    assert list(Path.cwd().iterdir()) == []
    assert list((cache / ".work").iterdir()) == []


def test_what_is_made_anew_replaces_what_was_there(cache: Path, localize: Localize) -> None:
    localize()
    before = {item.folder.name: (item.folder / "record.json").stat().st_ino for item in entries(cache)}
    with Store(cache):  # another command: nothing is replaced under its hands
        localize("--fresh")
    assert before == {item.folder.name: (item.folder / "record.json").stat().st_ino for item in entries(cache)}
    localize("--fresh")
    after = {item.folder.name: (item.folder / "record.json").stat().st_ino for item in entries(cache)}
    assert after.keys() == before.keys()
    assert not set(after.values()) & set(before.values())


def test_a_comparison_leaves_only_its_report_where_it_is_written(
    cache: Path, pair: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["compare", *pair, "-q", "--samples", "4"]
    assert main(words) == 1
    assert list(Path.cwd().iterdir()) == []
    assert main([*words, "-o", "out", "--timings"]) == 1
    assert "from the cache" in capsys.readouterr().err
    assert [path.name for path in Path("out").iterdir()] == ["compare-right.onnx-wrong.onnx"]
    assert not list(Path("out").rglob("record.json"))
    document = json.loads(Path("out/compare-right.onnx-wrong.onnx/result.json").read_text())
    assert not any(row["ran"]["artifact"]["path"].startswith(str(cache)) for row in document["rows"])


def test_a_repair_is_taken_from_it_and_leaves_no_journal(
    cache: Path, pair: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["repair", *pair, "-q", "--advice", "0", "-o", "out", "--timings"]
    assert main(words) == 0
    assert "repair, from the cache" not in capsys.readouterr().err
    first = Path("out/repaired.onnx").read_bytes()
    assert main(words) == 0
    assert "repair, from the cache" in capsys.readouterr().err.splitlines()
    assert Path("out/repaired.onnx").read_bytes() == first
    assert [path.name for path in Path.cwd().iterdir()] == ["out"]
    assert list((cache / ".work").iterdir()) == []


def test_files_whose_code_runs_are_not_kept(cache: Path, localize: Localize) -> None:
    localize("--trust")
    assert entries(cache) == []


def test_it_is_shown_limited_and_cleared(
    cache: Path, localize: Localize, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    localize()
    found = shown(capsys)
    assert found["folder"] == str(cache)
    assert found["limit_bytes"] == 5_000_000_000
    assert set(found["kinds"]) == {"look"}
    assert found["bytes"] == sum(kind["bytes"] for kind in found["kinds"].values()) > 0
    assert main(["cache"]) == 0
    said = capsys.readouterr().out
    assert "of 5 GB" in said
    assert "compare and localize" in said
    assert shown(capsys, "--limit", "2")["limit_bytes"] == 2_000_000_000
    assert user_cache().gigabytes == 2, "it's kept"
    with Store(cache):
        assert main(["cache", "clear"]) == 2
    assert "another command uses" in capsys.readouterr().err
    assert shown(capsys, "clear")["kinds"] == {}
    assert shown(capsys, "--limit", "0")["limit_bytes"] == 0
    localize()
    assert entries(cache) == []
    monkeypatch.setenv(LIMIT, "a lot")
    assert main(["cache"]) == 2
    assert f"{LIMIT} is a lot: give" in capsys.readouterr().err
    monkeypatch.setenv(FOLDER, "")
    assert main(["cache"]) == 2
    assert f"variable {FOLDER} is empty" in capsys.readouterr().err


def test_the_limit_holds_behind_each_command(
    cache: Path, localize: Localize, monkeypatch: pytest.MonkeyPatch
) -> None:
    localize()
    whole = sum(item.size for item in entries(cache))
    monkeypatch.setenv(LIMIT, str(1.5 * whole / 1e9))
    localize("--seed", "1")
    left = sum(item.size for item in entries(cache))
    assert 0 < left <= 1.5 * whole


def test_a_folder_that_cannot_be_written_costs_a_sentence(
    cache: Path, localize: Localize, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.write_text("a file")
    said = localize()
    assert "aren't kept" in said
    assert FOLDER in said


def _full(store: Store, _: Path) -> None:
    raise StorageError(f"no space left to write below {store.root} (0 MiB free). Free some space there.")


def _removed(store: Store, scratch: Path) -> None:
    shutil.rmtree(store.root)


def _replaced(store: Store, scratch: Path) -> None:
    shutil.rmtree(store.root)
    with Store(store.root):
        pass


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("spoil", [_full, _removed, _replaced])
def test_a_cache_that_is_lost_while_a_command_runs_costs_a_line(
    cache: Path,
    pair: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    spoil: Callable[[Store, Path], None],
    place: int,
) -> None:
    kept, calls = Store.put, []

    def put_spoilt(self: Store, kind: str, key: str, scratch: Path, result: dict[str, object]) -> Entry:
        calls.append(self.root)
        if len(calls) == place + 1:
            spoil(self, scratch)
        return kept(self, kind, key, scratch, result)

    monkeypatch.setattr(Store, "put", put_spoilt)
    assert main(["repair", *pair, "-q", "--samples", "4", "--advice", "0", "-o", "out"]) == 0
    warnings = [line for line in capsys.readouterr().err.splitlines() if line.startswith("conrepair: ")]
    assert len(warnings) == 1
    assert warnings[0].startswith("conrepair: results of this command aren't kept: ")
    assert calls[-1] != cache


@pytest.mark.parametrize("name", [".users", ".lock", ".work", ".limit"])
@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, lambda path: Path(path).symlink_to("/dev/full")])
def test_odd_files_in_it_keep_nobody_waiting(
    cache: Path, localize: Localize, name: str, make: Callable[[Path], None]
) -> None:
    cache.mkdir()
    make(cache / name)
    assert "Traceback" not in localize()


@pytest.mark.workers
@pytest.mark.skipif(not within_reach(CONFINED).files, reason="this kernel confines nothing")
def test_workers_are_confined_there(cache: Path, localize: Localize) -> None:
    assert "aren't kept" not in localize()
    assert {item.kind for item in entries(cache)} == {"look"}


# --- The store below it ---


def put(store: Store, number: int, size: int = 1000) -> Path:
    with store.scratch() as scratch:
        (scratch / "data").write_bytes(b"x" * size)
        folder = store.put("convert", f"{number:040x}", scratch, {"value": number}).folder
    os.utime(folder, (number, number))
    return folder


def test_what_nobody_asked_for_for_longest_goes_first(tmp_path: Path) -> None:
    with Store(tmp_path / "store", own=tmp_path / "own") as store:
        folders = [put(store, number) for number in range(1, 5)]
        assert store.get("convert", f"{1:040x}") is not None
        size = sum(item.size for item in entries(store.root))
        assert trim(store, size // 2 + 10)
        assert [folder.exists() for folder in folders] == [True, False, False, True]
        others = {"holiday-pictures", f"backup-{1:040x}"}
        for name in others:
            (store.root / name).mkdir()
            (store.root / name / "precious").write_text("mine")
        assert trim(store, 0)
    assert {path.name for path in store.root.iterdir()} == {".lock", ".users", ".work"} | others
    assert all((store.root / name / "precious").read_text() == "mine" for name in others)


def test_a_limit_is_kept_in_no_file_of_somebody_s(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache.mkdir()
    (cache / ".limit").write_text("the sky")
    assert main(["cache", "--limit", "2"]) == 2
    assert ".limit isn't conrepair's" in capsys.readouterr().err
    assert (cache / ".limit").read_text() == "the sky"


def test_nothing_is_removed_under_another_run(tmp_path: Path) -> None:
    with Store(tmp_path / "store") as store, Store(tmp_path / "store") as other:
        folder = put(other, 1)
        assert not trim(store, 0)
        assert folder.is_dir()


def test_runs_that_share_it_reach_no_folder_of_each_other(tmp_path: Path) -> None:
    root = tmp_path / "store"
    with Store(root, own=tmp_path / "a") as one, Store(root, own=tmp_path / "b") as other:
        put(one, 1)
        assert other.get("convert", f"{1:040x}") is not None
        assert not any(a.is_relative_to(b) or b.is_relative_to(a) for a in one.reach for b in other.reach)
        assert not any(root.is_relative_to(folder) for folder in one.reach)
        assert one.journal("repair", "0").is_relative_to(tmp_path / "a")
        with one.scratch() as scratch:
            assert scratch.is_relative_to(one.work)
    assert list((root / ".work").iterdir()) == []
