"""The store: only whole, unchanged results come out of it."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conrepair.ground.runtime.errors import StorageError, UsageError
from conrepair.ground.runtime.files.store import Entry, Store, job_key
from conrepair.ground.runtime.files.trimming import trim

KEY = "0" * 40


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "generated" / "store")


def put(store: Store, key: str = KEY, *, value: Any = 1, **files: str) -> Entry:
    with store.scratch() as scratch:
        for name, text in (files or {"model": "weights"}).items():
            file = scratch / name.replace("__", "/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return store.put("convert", key, scratch, {"value": value})


def names(store: Store) -> list[str]:
    items = [*store.root.iterdir(), *store.work.iterdir()]
    return sorted(item.name for item in items if item.name not in {".lock", ".users", ".work"})


# --- Keys ---


def test_a_key_is_hexadecimal_and_the_same_for_equal_jobs() -> None:
    key = job_key("convert", {"b": [1, 2], "a": {"y": None, "x": "ü"}}, "f")
    assert len(key) == 40
    assert set(key) <= set("0123456789abcdef")
    assert key == job_key("convert", {"a": {"x": "ü", "y": None}, "b": (1, 2)}, "f")


def test_a_key_ignores_nothing() -> None:
    payloads: list[dict[str, Any]] = [
        {},
        {"opset": None},
        {"opset": 17},
        {"opset": 18},
        {"opset": 17.0},
        {"opset": "17"},
        {"opset": True},
        {"opset": 1},
        {"opset": False},
        {"opset": 0},
        {"opset": ""},
        {"opset": []},
        {"opset": {}},
        {"opset": [17, 18]},
        {"opset": [18, 17]},
        {"opset": [[17, 18]]},
        {"Opset": 17},
        {"opset": 17, "fold": False},
        {"options": {"opset": 17}},
        {"path": "/a", "sha256": "1"},
        {"path": "/a", "sha256": "2"},
        {"path": "/b", "sha256": "1"},
        {"x": 0.1},
        {"x": 0.1 + 2**-56},
        {"x": -0.0},
        {"x": 0.0},
        {"x": "e\u0301"},
        {"x": "\u00e9"},
    ]
    keys = {job_key(kind, payload, mark) for payload in payloads for kind in ("a", "b") for mark in ("f", "g")}
    assert len(keys) == 4 * len(payloads)
    assert job_key("a", {}, "bc") != job_key("ab", {}, "c")


def test_a_payload_that_is_no_json_is_refused() -> None:
    assert job_key("convert", {"x": math.nan}, "f") == job_key("convert", {"x": math.nan}, "f")
    with pytest.raises(TypeError):
        job_key("convert", {"x": Path("a")}, "f")


# --- Putting and getting ---


def test_a_result_comes_back_with_its_files(store: Store) -> None:
    entry = put(store, model="weights", sub__data="1")
    assert entry == store.get("convert", KEY) == Store(store.root).get("convert", KEY)
    assert entry.result == {"value": 1}
    assert (entry.folder / "model").read_text() == "weights"
    assert (entry.folder / "sub" / "data").read_text() == "1"
    assert entry.folder == store.folder("convert", KEY)
    assert names(store) == [f"convert-{KEY}"]


def test_a_result_without_files(store: Store) -> None:
    with store.scratch() as scratch:
        store.put("describe", KEY, scratch, {"nothing": None})
    entry = store.get("describe", KEY)
    assert entry is not None
    assert entry.result == {"nothing": None}


def test_kinds_and_keys_are_kept_apart(store: Store) -> None:
    put(store)
    assert store.get("convert", "1" * 40) is None
    assert store.get("execute", KEY) is None
    assert store.get("convert", KEY) is not None


def test_putting_again_keeps_what_others_may_be_reading(store: Store) -> None:
    first = put(store, model="1", value=1)
    second = put(store, model="2", value=2)
    assert second == first == store.get("convert", KEY)
    assert (first.folder / "model").read_text() == "1"
    assert names(store) == [f"convert-{KEY}"]


def test_a_fresh_run_replaces_everything(tmp_path: Path) -> None:
    with Store(tmp_path, fresh=True) as store:
        put(store, old="1", model="1")
        entry = put(store, model="2")
        assert sorted(item.name for item in entry.folder.iterdir()) == ["model", "record.json"]
        assert store.get("convert", KEY) == entry


def test_the_root_may_be_moved(store: Store, tmp_path: Path) -> None:
    put(store)
    moved = Path(shutil.move(store.root, tmp_path / "elsewhere"))
    entry = Store(moved).get("convert", KEY)
    assert entry is not None
    assert entry.folder.parent == moved


# --- Damage ---


def _no_record(folder: Path) -> None:
    (folder / "record.json").unlink()


def _cut_record(folder: Path) -> None:
    record = folder / "record.json"
    record.write_bytes(record.read_bytes()[:-5])


def _write(name: str, content: bytes) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / name).write_bytes(content)

    return write


def _remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def _file_to_folder(folder: Path) -> None:
    (folder / "model").unlink()
    (folder / "model").mkdir()


DAMAGE = {
    "no record": _no_record,
    "half a record": _cut_record,
    "an empty record": _write("record.json", b""),
    "a record of bytes": _write("record.json", b"\xff\xfe\x00"),
    "a record that is a list": _write("record.json", b"[]"),
    "a record that is null": _write("record.json", b"null"),
    "a record without a result": _write("record.json", b'{"files": {}}'),
    "a record without files": _write("record.json", b'{"result": {}}'),
    "a record with a list of files": _write("record.json", b'{"result": {}, "files": []}'),
    "a changed file": _write("model", b"Weights"),
    "a cut file": _write("model", b"weigh"),
    "a changed file in a folder": _write("sub/data", b"2"),
    "a changed file that is called like the record": _write("sub/record.json", b"2"),
    "a missing file": _remove("model"),
    "a missing file in a folder": _remove("sub/data"),
    "a folder in place of a file": _file_to_folder,
    "a file too many": _write("sub/more", b"1"),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_result_is_none_and_is_removed(store: Store, damage: Callable[[Path], None]) -> None:
    entry = put(store, model="weights", sub__data="1", **{"sub__record.json": "1"})
    other = put(store, key="1" * 40)
    damage(entry.folder)
    assert store.get("convert", KEY) is None
    assert not entry.folder.exists()
    assert store.get("convert", "1" * 40) == other
    assert store.get("convert", KEY) is None
    assert put(store) == store.get("convert", KEY)


def _texts(root: Path) -> set[str]:
    return {path.read_text() for path in root.rglob("*") if path.is_file()}


REMOVALS: dict[str, Callable[[Store], object]] = {
    "asked for": lambda store: store.get("convert", KEY),
    "discarded": lambda store: store.discard("convert", KEY),
    "released": lambda store: store.release([store.folder("convert", KEY)]),
    "trimmed": lambda store: trim(store, 0),
}


@pytest.mark.parametrize("remove", REMOVALS.values(), ids=REMOVALS.keys())
def test_what_somebody_has_put_into_a_result_is_kept(
    store: Store, remove: Callable[[Store], object], capsys: pytest.CaptureFixture[str]
) -> None:
    entry = put(store, model="weights", sub__data="1")
    for name in ("notes.txt", "sub/notes.txt", "mine/deep/f"):
        (entry.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (entry.folder / name).write_text(f"mine: {name}")
    remove(store)
    assert not (entry.folder / "model").exists()
    kept = store.root / "kept" / "0" / entry.folder.name
    assert _texts(kept) == {"mine: notes.txt", "mine: sub/notes.txt", "mine: mine/deep/f"}
    told = capsys.readouterr().err
    assert told.startswith(f"conrepair: kept in {kept.parent}, as conrepair didn't write it: {entry.folder.name[:9]}")
    put(store, model="weights")
    (entry.folder / "notes.txt").write_text("again")
    remove(store)
    assert (store.root / "kept" / "1" / entry.folder.name / "notes.txt").read_text() == "again"


def test_links_and_what_has_no_record_are_kept(store: Store, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "f").write_text("years")
    folder = store.folder("convert", KEY)
    folder.symlink_to(tmp_path / "precious")
    assert store.get("convert", KEY) is None
    assert put(store) == store.get("convert", KEY)
    (folder / "record.json").unlink()
    (folder / "thesis.tex").write_text("years")
    assert store.get("convert", KEY) is None
    assert (store.root / "kept" / "1" / folder.name / "thesis.tex").read_text() == "years"
    assert (tmp_path / "precious" / "f").read_text() == "years"


def test_a_file_in_place_of_a_result(store: Store) -> None:
    store.folder("convert", KEY).write_text("")
    assert store.get("convert", KEY) is None


def test_a_job_may_write_a_record_of_its_own(store: Store) -> None:
    """It is overwritten at the top, and kept below."""
    entry = put(store, sub__data="1", **{"record.json": "its own", "sub__record.json": "its own"})
    assert store.get("convert", KEY) == entry
    assert (entry.folder / "sub" / "record.json").read_text() == "its own"


# --- Putting that fails ---


def test_a_result_that_is_no_json_leaves_nothing(store: Store) -> None:
    with pytest.raises(TypeError):
        put(store, value=Path("a"))
    assert names(store) == []
    assert store.get("convert", KEY) is None


def test_a_failure_while_putting_leaves_what_was_there_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path, fresh=True)
    before = put(store, model="old")

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Store, "seal", staticmethod(fail))
        with pytest.raises(KeyboardInterrupt):
            put(store, model="new")
    assert names(store) == [f"convert-{KEY}"]
    assert store.get("convert", KEY) == before
    assert (before.folder / "model").read_text() == "old"


def test_the_entry_is_never_seen_without_its_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever anything is renamed, what stands at the entry's place is whole."""
    store = Store(tmp_path, fresh=True)
    rename = Path.rename
    seen: list[bool] = []

    def watch(self: Path, target: Path) -> Path:
        folder = store.folder("convert", KEY)
        seen.append(not folder.exists() or (folder / "record.json").exists())
        moved = rename(self, target)
        seen.append(not folder.exists() or (folder / "record.json").exists())
        return moved

    monkeypatch.setattr(Path, "rename", watch)
    put(store, model="1")
    put(store, model="2")
    assert seen
    assert all(seen)


def test_no_room_for_the_root(tmp_path: Path) -> None:
    (tmp_path / "generated").write_text("a file")
    with pytest.raises(StorageError, match="generated"):
        Store(tmp_path / "generated" / "store")


# --- Scratch folders ---


def test_a_scratch_folder_is_empty_and_gone_afterwards(store: Store) -> None:
    with store.scratch() as one, store.scratch() as two:
        assert one != two
        assert one.is_dir()
        assert list(one.iterdir()) == []
        assert one.stat().st_dev == store.root.stat().st_dev, "putting must be a rename"
        (one / "a").write_text("1")
        one.with_name(one.name + ".log").write_text("what a worker writes beside it")
    assert names(store) == []
    with pytest.raises(ValueError, match="no"), store.scratch():
        raise ValueError("no")
    assert names(store) == []


def test_what_dead_runs_left_is_swept_and_what_live_ones_use_is_not(store: Store) -> None:
    stale = [".scratch-1-abc", ".scratch-", ".scratch-x-1"]
    for name in stale:
        (store.work / name / "sub").mkdir(parents=True)
        (store.work / name / "sub" / "half.bin").write_bytes(b"1")
    with store.scratch() as live:
        (live / "half.bin").write_bytes(b"1")
        Store(store.root)
        assert names(store) == [live.parent.name]
        assert (live / "half.bin").exists()


# --- Released entries ---


def test_a_released_entry_keeps_its_result_and_nothing_else(store: Store) -> None:
    entry = put(store, model="weights", sub__data="1")
    store.release([entry.folder])
    assert [item.name for item in entry.folder.iterdir()] == ["record.json"]
    assert store.get("convert", KEY) is None, "who needs the files must make them anew"
    assert store.get("convert", KEY, released=True) == entry
    again = put(store, model="weights", sub__data="2")
    assert store.get("convert", KEY) == again
    assert (again.folder / "sub" / "data").read_text() == "2"


def test_a_release_that_was_killed_is_finished(store: Store) -> None:
    entry = put(store, model="weights")
    store.release([entry.folder])
    (entry.folder / "model").write_text("left over")
    assert store.get("convert", KEY) is None
    assert store.get("convert", KEY, released=True) == entry
    store.release([entry.folder])
    assert [item.name for item in entry.folder.iterdir()] == ["record.json"]


def test_nothing_is_released_while_another_run_may_read_it(store: Store) -> None:
    entry = put(store, model="weights")
    with Store(store.root):
        store.release([entry.folder])
        assert store.get("convert", KEY) == entry
    store.release([entry.folder])
    assert store.get("convert", KEY) is None


# --- Several runs at once ---


def test_a_fresh_run_has_the_store_for_itself(tmp_path: Path) -> None:
    with Store(tmp_path), Store(tmp_path), pytest.raises(UsageError, match="another run"):
        Store(tmp_path, fresh=True)
    with Store(tmp_path, fresh=True), pytest.raises(UsageError, match="another run"):
        Store(tmp_path)
    with Store(tmp_path):
        pass


def test_runs_that_find_a_damaged_entry_do_not_remove_its_successor(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sees the damage; before it acts, the other has made the entry anew."""
    entry = put(store, model="weights")
    (entry.folder / "model").write_text("damaged")
    turn = Store._turn

    def late(self: Store) -> Any:
        monkeypatch.setattr(Store, "_turn", turn)
        shutil.rmtree(entry.folder)
        put(self, model="anew")
        return turn(self)

    monkeypatch.setattr(Store, "_turn", late)
    found = store.get("convert", KEY)
    assert found is not None
    assert (found.folder / "model").read_text() == "anew"


def test_a_run_that_was_killed_leaves_no_result(store: Store) -> None:
    """Killed for real, between the files and the record."""
    program = """
import os, signal, sys
from pathlib import Path
from conrepair.ground.runtime.files.store import Store

store = Store(Path(sys.argv[1]))
with store.scratch() as scratch:
    (scratch / "model").write_text("weights")
    scratch.with_name(scratch.name + ".log").write_text("what a worker writes beside it")
    Store.seal = staticmethod(lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    store.put("convert", "0" * 40, scratch, {"value": 1})
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(store.root)],
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == -9
    assert names(store) != [], "the killed run couldn't tidy up"
    again = Store(store.root)
    assert names(again) == []
    assert again.get("convert", KEY) is None
