"""Archives that readers could see different things in are refused; what's copied is what was read."""

from __future__ import annotations

import io
import random
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conrepair.ground.runtime.files.archive import Archive, ArchiveError, check_unpacked, is_archive, opened_archive

MEMBERS = {"net/a.json": b'{"a": 1}', "net/data/0": bytes(range(256)) * 40, "net/empty": b""}


def packed(members: dict[str, bytes] = MEMBERS, *, kind: int = zipfile.ZIP_STORED, streamed: bool = False) -> bytes:
    class Unseekable(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def tell(self) -> int:
            raise OSError("a pipe")

    stream = Unseekable() if streamed else io.BytesIO()
    with zipfile.ZipFile(stream, "w", kind) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def content_of(data: bytes) -> dict[str, bytes]:
    archive = Archive(io.BytesIO(data))
    return {name: archive.read(name) for name in archive.sizes}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("kind", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_whole_archives_are_read_and_copied(kind: int, streamed: bool, tmp_path: Path) -> None:
    data = packed(kind=kind, streamed=streamed)
    assert content_of(data) == MEMBERS
    (tmp_path / "one.zip").write_bytes(data)
    with opened_archive(tmp_path / "one.zip") as archive:
        archive.copy(tmp_path / "two.zip", {"net/data/0": None, "net/a.json": b"{}"})
    with zipfile.ZipFile(tmp_path / "two.zip") as copy:
        assert {name: copy.read(name) for name in copy.namelist()} == {
            "net/data/0": MEMBERS["net/data/0"],
            "net/a.json": b"{}",
        }
        assert all(info.compress_type == zipfile.ZIP_STORED for info in copy.infolist())


def test_what_numpy_writes_is_whole(tmp_path: Path) -> None:
    for number, write in enumerate((np.savez, np.savez_compressed)):
        write(tmp_path / f"{number}.npz", x=np.zeros((3, 4)), **{"größe/y": np.ones(2)})
        with opened_archive(tmp_path / f"{number}.npz") as archive:
            assert list(archive.sizes) == ["x.npy", "größe/y.npy"]


def test_large_numbers_have_64_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 2)
    assert content_of(packed()) == MEMBERS


def at(data: bytes, mark: bytes, offset: int, new: bytes, *, occurrence: int = 0) -> bytes:
    place = -1
    for _ in range(occurrence + 1):
        place = data.index(mark, place + 1)
    return data[: place + offset] + new + data[place + offset + len(new) :]


LOCAL, LISTED, END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
DOUBLED = packed({"net/a.json": b"1", "net/b.json": b"2"}).replace(b"net/b.json", b"net/a.json")

AMBIGUOUS: dict[str, Callable[[], bytes]] = {
    "a checksum that's off": lambda: at(packed(), LISTED, 16, b"\xff"),
    "content that's off": lambda: packed().replace(b'{"a": 1}', b'{"a": 2}'),
    "another name where it is": lambda: at(packed(), LOCAL, 30, b"not/"),
    "another name in the list": lambda: at(packed(), LISTED, 46, b"not/"),
    "a name twice": lambda: DOUBLED,
    "a name twice but for capitals": lambda: packed({"net/a.json": b"1", "net/A.json": b"2"}),
    "a name that leads out": lambda: packed({"../a": b"1"}),
    "a name that's a root": lambda: packed({"/a": b"1"}),
    "a name by the other slash": lambda: packed({"net\\a": b"1"}),
    "a name with a dot in the way": lambda: packed({"net/./a": b"1"}),
    "a name with an end within": lambda: at(at(packed(), LOCAL, 35, b"\0"), LISTED, 51, b"\0"),
    "something before": lambda: b"something" + packed(),
    "another archive before": lambda: packed({"net/a.json": b"2"}) + packed(),
    "something behind": lambda: packed() + b"something",
    "a comment": lambda: packed()[:-2] + struct.pack("<H", 4) + b"PK\x05\x06",
    "something between": lambda: packed().replace(LISTED, b"?" * 7 + LISTED, 1),
    "a member that isn't listed": lambda: unlisted(),
    "a size that's off in the list": lambda: at(packed(), LISTED, 24, b"\x03"),
    "a place that's off": lambda: at(packed(), LISTED, 42, b"\x05", occurrence=1),
    "encryption": lambda: at(packed(), LISTED, 8, b"\x01"),
    "a way of packing that few know": lambda: packed(kind=zipfile.ZIP_BZIP2),
    "another number of members": lambda: at(packed(), END, 10, b"\x02"),
    "an end that's cut off": lambda: packed()[:-3],
    "nothing": lambda: b"",
}  # fmt: skip


def unlisted() -> bytes:
    """The first member of three is in the file and not in the list."""
    data = packed()
    first, second = data.index(LISTED), data.index(LISTED, data.index(LISTED) + 1)
    end = data.index(END)
    shorter = data[:first] + data[second:end]
    tail = struct.pack("<4sHHHHIIH", END, 0, 0, 2, 2, end - second, first, 0)
    return shorter + tail


@pytest.mark.parametrize("how", AMBIGUOUS)
def test_what_readers_could_see_in_two_ways_is_refused(how: str) -> None:
    with pytest.raises(ArchiveError):
        content_of(AMBIGUOUS[how]())


@given(st.integers(0, 2**32), st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]), st.booleans())
def test_a_changed_byte_changes_nothing_or_is_refused(seed: int, kind: int, streamed: bool) -> None:
    """What's given on is what was put in, whichever byte of an archive is another."""
    draw = random.Random(seed)
    data = bytearray(packed(kind=kind, streamed=streamed))
    data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    try:
        found = content_of(bytes(data))
    except ArchiveError:
        return
    assert found == MEMBERS


def test_an_archive_is_one_by_its_beginning_or_its_end(tmp_path: Path) -> None:
    for name, data in {"whole": packed(), "before": b"\x89HDF" + packed(), "cut": packed()[:50]}.items():
        (tmp_path / name).write_bytes(data)
        assert is_archive(tmp_path / name)
    (tmp_path / "none").write_bytes(b"\x80\x02}q\x00.")
    assert not is_archive(tmp_path / "none")


def test_sizes_are_asked_before_anything_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    data = packed({"a": bytes(40 << 20)}, kind=zipfile.ZIP_DEFLATED)
    assert Archive(io.BytesIO(data)).sizes == {"a": 40 << 20}
    with pytest.raises(ArchiveError, match="a text of 40 MiB, and 16 are the most"):
        Archive(io.BytesIO(data)).read_text("a")
    monkeypatch.setattr("conrepair.ground.runtime.files.archive._LEAST_UNPACKED", 1 << 20)
    monkeypatch.setattr(zipfile.ZipFile, "read", lambda *_: pytest.fail("it was unpacked"))
    with pytest.raises(ArchiveError, match=r"unpacks to 0\.0 GiB \(limit 0\.0, for a file of 0\.0 MiB\)"):
        Archive(io.BytesIO(data))


def test_a_large_file_may_unpack_to_more() -> None:
    for size, most in ((1, 256 << 20), (1 << 30, 8 << 30)):
        check_unpacked(most, size, "it takes")
        with pytest.raises(ArchiveError, match="it takes"):
            check_unpacked(most + 1, size, "it takes")


def test_a_list_without_end_is_not_read() -> None:
    data = at(packed(), END, 8, struct.pack("<HH", 65535, 65535))
    locator = struct.pack("<4sQHHIIQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, 10**9, 10**9, 1, 1)
    with pytest.raises(ArchiveError, match="lists 1000000000 members"):
        Archive(io.BytesIO(data[:-22] + locator + struct.pack("<4sIQI", b"PK\x06\x07", 0, 0, 1) + data[-22:]))
