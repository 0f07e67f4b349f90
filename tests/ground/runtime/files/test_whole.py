"""Files appear whole or not at all; full disks are made for real (a file size limit, a tiny tmpfs)."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conrepair.ground.runtime.errors import StorageError
from conrepair.ground.runtime.files import whole as files
from conrepair.ground.runtime.files.scratch import SCRATCH
from conrepair.ground.runtime.files.whole import (
    canonical_json,
    copy_whole,
    explain_write_error,
    full_disk,
    sha256_of,
    storage_error,
    whole_output,
    write_json,
    write_text,
)
from conrepair.ground.runtime.shown.heartbeat import current_work, far


def names(folder: Path) -> list[str]:
    return sorted(item.name for item in folder.iterdir())


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mounts a tmpfs with the given options; skips where that isn't allowed."""
    mounted: list[Path] = []

    def mount(options: str) -> Path:
        command, folder = shutil.which("mount"), tmp_path / f"disk{len(mounted)}"
        folder.mkdir()
        if os.geteuid() != 0 or command is None:
            pytest.skip("mounting a small file system needs root")
        done = subprocess.run(
            [command, "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            pytest.skip(f"mount is refused here: {done.stderr.strip()}")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run([shutil.which("umount") or "umount", str(folder)], check=True)


# --- Hashes and JSON ---


def test_the_hash_of_a_file(tmp_path: Path) -> None:
    content = os.urandom(300_000)
    (tmp_path / "a").write_bytes(content)
    assert sha256_of(tmp_path / "a") == hashlib.sha256(content).hexdigest()
    (tmp_path / "b").touch()
    assert sha256_of(tmp_path / "b") == hashlib.sha256(b"").hexdigest()


def test_how_much_of_a_large_file_is_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(bytes(18 << 20))
    told: list[str] = []
    monkeypatch.setattr(files, "far", lambda words: (far(words), told.append(current_work())))
    sha256_of(tmp_path / "a")
    assert told[0].startswith("the hash of a, ")
    assert told[-1] == "the hash of a, 18 of 18 MiB"


def test_a_large_file_is_read_again_once_it_was_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_LARGE", 3)
    path, read = tmp_path / "a", []
    monkeypatch.setattr(files, "blocks", lambda stream: read.append(1) or iter([stream.read()]))
    path.write_bytes(b"abcd")
    assert sha256_of(path) == sha256_of(path)
    assert len(read) == 2  # another change of this moment would look alike
    monkeypatch.setattr(files, "_TICK", -1)
    first = sha256_of(path)
    assert sha256_of(path) == first
    assert len(read) == 3
    time.sleep(0.02)
    path.write_bytes(b"abce")
    assert sha256_of(path) == hashlib.sha256(b"abce").hexdigest()


def test_what_another_process_hashed_isnt_read_again_unless_it_was_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_LARGE", 3)
    monkeypatch.setattr(files, "_TICK", -1)
    monkeypatch.setattr(files, "HASHES", {})
    path, read = tmp_path / "a", []
    monkeypatch.setattr(files, "blocks", lambda stream: read.append(1) or iter([stream.read()]))
    path.write_bytes(b"abcd")
    first, known = sha256_of(path), json.dumps(files.HASHES)
    monkeypatch.setattr(files, "HASHES", json.loads(known))  # as in a worker
    assert (sha256_of(path), len(read)) == (first, 1)
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    time.sleep(0.02)
    path.write_bytes(b"abce")
    os.utime(path, ns=times)  # it hides that it was
    assert (sha256_of(path), len(read)) == (hashlib.sha256(b"abce").hexdigest(), 2)


def test_the_hash_of_a_folder_depends_on_names_and_contents_alone(tmp_path: Path) -> None:
    def folder(name: str, files: dict[str, str]) -> str:
        for file, text in files.items():
            path = tmp_path / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return sha256_of(tmp_path / name)

    first = folder("one", {"a": "1", "b/c": "2"})
    assert folder("two", {"b/c": "2", "a": "1"}) == first
    others = [
        folder("content", {"a": "1", "b/c": "3"}),
        folder("name", {"a": "1", "b/d": "2"}),
        folder("place", {"a": "1", "c": "2"}),
        folder("swapped", {"a": "2", "b/c": "1"}),
        folder("more", {"a": "1", "b/c": "2", "e": ""}),
        folder("fewer", {"a": "1"}),
    ]
    assert len({first, *others}) == 7


def test_canonical_json_is_one_text_for_equal_values() -> None:
    assert canonical_json({"b": [1, (2, 3)], "a": {"d": None, "c": "ü"}}) == canonical_json(
        {"a": {"c": "ü", "d": None}, "b": [1, [2, 3]]}
    )
    assert len({canonical_json(value) for value in (1, 1.0, "1", True, [1], None)}) == 6
    for number in (math.nan, math.inf):
        with pytest.raises(ValueError, match="not JSON compliant"):
            canonical_json({"x": number})


# --- Whole outputs ---


def test_a_file_appears_whole(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "er" / "out.txt"
    with whole_output(target) as temporary:
        temporary.write_text("half")
        assert not target.exists()
        assert temporary.name == target.name, "tools look at the suffix"
        assert temporary.stat().st_dev == tmp_path.stat().st_dev, "renaming must not copy"
    assert target.read_text() == "half"
    assert names(target.parent) == ["out.txt"]


def test_a_folder_appears_whole(tmp_path: Path) -> None:
    target = tmp_path / "model"
    with whole_output(target) as temporary:
        (temporary / "variables").mkdir(parents=True)
        (temporary / "variables" / "data").write_text("1")
        assert not target.exists()
    assert (target / "variables" / "data").read_text() == "1"
    assert names(tmp_path) == ["model"]


def _put(path: Path, kind: str, text: str) -> None:
    if kind == "file":
        path.write_text(text)
    else:
        path.mkdir()
        (path / f"{text}.txt").write_text(text)


def _fail_half_way(path: Path, kind: str, error: type[BaseException]) -> None:
    with whole_output(path) as temporary:
        _put(temporary, kind, "half")
        raise error


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_nothing_is_left_after_an_error(tmp_path: Path, kind: str, error: type[BaseException]) -> None:
    with pytest.raises(error):
        _fail_half_way(tmp_path / "new" / "out", kind, error)
    assert names(tmp_path / "new") == []


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_an_error_leaves_what_stood_there(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "out"
    _put(target, kind, "old")
    before = sha256_of(target)
    with pytest.raises(KeyError):
        _fail_half_way(target, kind, KeyError)
    assert sha256_of(target) == before
    assert names(tmp_path) == ["out"]


def test_a_block_that_writes_nothing_leaves_what_stood_there(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.mkdir()
    (target / "old").write_text("old")
    with pytest.raises(FileNotFoundError), whole_output(target):
        pass
    assert names(tmp_path) == ["out"]
    assert names(target) == ["old"]


def test_a_file_replaces_a_file_and_no_folder(tmp_path: Path) -> None:
    target = tmp_path / "out"
    _put(target, "file", "old")
    with whole_output(target) as temporary:
        _put(temporary, "file", "new")
    assert target.read_text() == "new"
    target.unlink()
    _put(target, "folder", "old")
    for kind in ("file", "folder"):
        with pytest.raises(OSError, match="out"), whole_output(target) as temporary:
            _put(temporary, kind, "new")
    assert names(tmp_path) == ["out"]
    assert names(target) == ["old.txt"]


def test_a_link_is_replaced_and_what_it_points_at_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    target = tmp_path / "out"
    target.symlink_to("real")
    write_text(target, "new")
    assert not target.is_symlink()
    assert (tmp_path / "real").read_text() == "old"


def test_permissions_are_those_of_any_new_file(tmp_path: Path) -> None:
    write_text(tmp_path / "ours", "x")
    (tmp_path / "plain").write_text("x")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_texts_are_utf8_and_json_refuses_nan(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"name": "Grüße ✓", "x": [1, None]})
    content = (tmp_path / "a.json").read_bytes()
    assert "Grüße ✓".encode() in content
    assert content.endswith(b"}\n")
    assert json.loads(content) == {"name": "Grüße ✓", "x": [1, None]}
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "a.json", {"x": math.nan})
    assert (tmp_path / "a.json").read_bytes() == content
    assert names(tmp_path) == ["a.json"]


def test_copies_are_not_links(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("1")
    (tmp_path / "folder" / "sub").mkdir(parents=True)
    (tmp_path / "folder" / "sub" / "a").write_text("2")
    copy_whole(tmp_path / "file", tmp_path / "copy" / "file")
    copy_whole(tmp_path / "folder", tmp_path / "copy" / "folder")
    (tmp_path / "copy" / "file").write_text("changed")
    (tmp_path / "copy" / "folder" / "sub" / "a").write_text("changed")
    assert (tmp_path / "file").read_text() == "1"
    assert (tmp_path / "folder" / "sub" / "a").read_text() == "2"
    with pytest.raises(FileNotFoundError):
        copy_whole(tmp_path / "missing", tmp_path / "copy" / "missing")
    assert names(tmp_path / "copy") == ["file", "folder"]


# --- No space, no permission ---


def test_what_is_no_storage_error_is_left_as_it_is(tmp_path: Path) -> None:
    for error in (FileNotFoundError(errno.ENOENT, "no", "x"), ValueError("axis"), OSError("odd")):
        assert explain_write_error(error, tmp_path) is None
    with pytest.raises(FileNotFoundError), storage_error(tmp_path):
        (tmp_path / "missing").read_text()
    with pytest.raises(ValueError, match="axis"), storage_error(tmp_path):
        raise ValueError("axis")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_no_space_in_words(tmp_path: Path, number: int) -> None:
    text = explain_write_error(OSError(number, os.strerror(number)), tmp_path)
    assert text is not None
    assert str(tmp_path) in text
    assert "MiB free" in text
    assert "`output`" in text
    assert "-o" in text
    gone = explain_write_error(OSError(number, os.strerror(number)), tmp_path / "gone")
    assert gone is not None
    assert "no space left" in gone


def test_the_disk_that_is_full_is_named_not_the_output_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "tmp"
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    free = {temporary: 3 << 20, tmp_path / "out": 72117 << 20}
    monkeypatch.setattr(files, "_free_bytes", free.__getitem__)
    text = explain_write_error(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), tmp_path / "out", temporary)
    assert text == (
        f"no space left to write below {temporary} (3 MiB free), where temporary files are. Free some space there, "
        "or set TMPDIR to a folder on another disk."
    )
    assert full_disk(tmp_path / "out", temporary) is None
    free[temporary] = 1000
    assert full_disk(tmp_path / "out", temporary) is not None
    other = explain_write_error(ValueError("could not write"), tmp_path / "out", temporary)
    assert other is not None
    assert "TMPDIR" in other


def test_a_room_of_our_own_among_temporary_files_isn_t_an_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert "TMPDIR" in str(explain_write_error(error, tmp_path / f"{SCRATCH}abc" / "store"))
    assert "-o" in str(explain_write_error(error, tmp_path / "mine"))


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.EPERM])
def test_no_permission_in_words(tmp_path: Path, number: int) -> None:
    text = explain_write_error(OSError(number, os.strerror(number), "/data/out.bin"), tmp_path)
    assert text is not None
    assert text.startswith(f"/data/out.bin can't be written ({os.strerror(number)})")
    assert "output folder" in text


_OVER_THE_LIMIT = """
import resource, sys
from pathlib import Path
from conrepair.ground.runtime.errors import StorageError
from conrepair.ground.runtime.files.whole import copy_whole, write_json, write_text
from conrepair.ground.runtime.files.store import Store

folder = Path(sys.argv[1])
store = Store(folder / "store")
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


def put():
    with store.scratch() as scratch:
        (scratch / "small").write_text("x")
        store.put("convert", "0" * 40, scratch, {"text": "x" * 10_000})


attempts = [
    lambda: write_text(folder / "text", "x" * 10_000),
    lambda: write_json(folder / "json", ["x"] * 10_000),
    lambda: copy_whole(folder / "big", folder / "copy"),
    lambda: copy_whole(folder / "source", folder / "copies"),
    put,
]
for attempt in attempts:
    try:
        attempt()
    except StorageError as error:
        assert "no space left" in str(error), error
    else:
        raise AssertionError("the limit was not reached")
write_text(folder / "fits", "x" * 4096)
"""


def test_a_write_that_the_kernel_cuts_short(tmp_path: Path) -> None:
    """A file size limit makes write() fail with EFBIG part-way, in another process."""
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "small").write_text("x")
    (tmp_path / "source" / "big").write_bytes(bytes(10_000))
    (tmp_path / "big").write_bytes(bytes(10_000))
    done = subprocess.run(
        [sys.executable, "-c", _OVER_THE_LIMIT, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    assert names(tmp_path) == ["big", "fits", "source", "store"]
    assert names(tmp_path / "store") == [".lock", ".users", ".work"]


def test_a_disk_that_is_full(tmp_path: Path, mount: Callable[[str], Path]) -> None:
    disk = mount("size=64k")
    write_text(disk / "old", "x" * 20_000)
    (tmp_path / "source").mkdir()
    for index in range(5):
        (tmp_path / "source" / str(index)).write_bytes(bytes(20_000))
    with pytest.raises(StorageError, match=r"no space left.*MiB free"):
        write_text(disk / "text", "x" * 100_000)
    with pytest.raises(StorageError, match="no space left"):
        write_text(disk / "old", "x" * 100_000)
    with pytest.raises(StorageError, match="no space left"):
        copy_whole(tmp_path / "source", disk / "folder")
    assert names(disk) == ["old"]
    assert (disk / "old").read_text() == "x" * 20_000
    write_text(disk / "small", "fits")


def test_a_disk_that_is_read_only(mount: Callable[[str], Path]) -> None:
    disk = mount("size=64k,ro")
    with pytest.raises(StorageError, match=r"can't be written.*Read-only file system"):
        write_text(disk / "text", "x")
    with pytest.raises(StorageError, match=r"can't be written.*Read-only file system"):
        write_text(disk / "new folder" / "text", "x")


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    """`-o report.json` instead of a folder: said in words, no traceback."""
    (tmp_path / "report.json").write_text("{}")
    with pytest.raises(StorageError, match=r"report\.json"):
        write_text(tmp_path / "report.json" / "text", "x")
    assert (tmp_path / "report.json").read_text() == "{}"
