from __future__ import annotations

import hashlib
import uuid
from pathlib import Path

import pytest

from conrepair.ground.runtime.errors import DataError, UsageError
from conrepair_crowd.blobs import Blobs, Shelf, put_tree

pytest.importorskip("fsspec")


@pytest.fixture(params=["folder", "memory"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    place = tmp_path / "exchange" if request.param == "folder" else f"memory://{uuid.uuid4().hex}"
    return Blobs(str(place))


def file_of(folder: Path, content: bytes) -> tuple[Path, str]:
    file = folder / "file"
    file.write_bytes(content)
    return file, hashlib.sha256(content).hexdigest()


def test_a_content_is_put_once_and_fetched(blobs: Blobs, tmp_path: Path) -> None:
    file, sha256 = file_of(tmp_path, b"weights")
    assert [blobs.put(file, sha256) for _ in range(2)] == [7, 0]
    assert blobs.fetch(sha256, tmp_path / "there") == 7
    assert (tmp_path / "there").read_bytes() == b"weights"


def test_what_was_torn_off_is_put_again(blobs: Blobs, tmp_path: Path) -> None:
    file, sha256 = file_of(tmp_path, b"wei")
    blobs.put(file, sha256)
    file.write_bytes(b"weights")
    sha256, before = hashlib.sha256(b"weights").hexdigest(), sha256
    assert blobs.put(file, sha256) == 7
    file.write_bytes(b"another")
    assert blobs.put(file, before) == 7, "its size isn't what's there"


def test_another_content_is_refused(blobs: Blobs, tmp_path: Path) -> None:
    file, _ = file_of(tmp_path, b"weights")
    blobs.put(file, "0" * 64)
    with pytest.raises(DataError, match="another content"):
        blobs.fetch("0" * 64, tmp_path / "there")
    with pytest.raises(DataError, match="has no content"):
        blobs.fetch("1" * 64, tmp_path / "there")
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["file"]


def test_a_place_that_nothing_opens() -> None:
    with pytest.raises(UsageError, match="can't be opened"):
        Blobs("nowhere://bucket")


def test_trees_are_the_same_elsewhere(blobs: Blobs, tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    (folder / "variables").mkdir(parents=True)
    (folder / "variables" / "one").write_bytes(b"1")
    (folder / "two").write_bytes(b"1")
    (folder / "link").symlink_to("/etc/hostname")
    shelf = Shelf(tmp_path / "shelf", blobs)
    tree, moved = put_tree(folder, blobs)
    assert moved == 1, "the same content goes there once"
    place = shelf.place(tree)
    assert place.name == "saved"
    assert (place / "variables" / "one").read_bytes() == (place / "two").read_bytes() == b"1"
    assert not (place / "link").is_symlink()
    assert shelf.place(tree) == place
    assert shelf.fetched == 1
    (tmp_path / "empty").mkdir()
    assert list(shelf.place(put_tree(tmp_path / "empty", blobs)[0]).iterdir()) == []
