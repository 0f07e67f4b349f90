"""The files with code in them would leave their marks, and don't."""

from __future__ import annotations

import io
import os
import random
import zipfile
from pathlib import Path

import pytest

from benchmarks.containers.canaries import NOTE, canary_of
from benchmarks.containers.disguises import disguised_archive
from benchmarks.containers.trial import trial
from benchmarks.containers.zip_parts import Ending, Entry, written
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework


def test_an_archive_without_lies_is_one() -> None:
    members = {"a/b": b"one", "a/c": b"two" * 100}
    entries = [Entry(name.encode(), content, deflated=name == "a/c") for name, content in members.items()]
    with zipfile.ZipFile(io.BytesIO(written(entries, Ending()))) as archive:
        assert archive.testzip() is None
        assert {name: archive.read(name) for name in archive.namelist()} == members


def test_the_same_draw_is_the_same_file() -> None:
    whole, hostile = {"a": b"1", "b": b"2"}, {"a": b"3"}
    one, two = (disguised_archive(whole, hostile, random.Random("7")) for _ in range(2))
    assert one == two
    assert len({disguised_archive(whole, hostile, random.Random(str(seed))) for seed in range(50)}) > 30


def _opened(name: str, path: Path, canary: dict[str, bytes]) -> Model:
    """The plain file, of somebody who's trusted."""
    if name == "savedmodel":
        for member, content in canary.items():
            (path / member).parent.mkdir(parents=True, exist_ok=True)
            (path / member).write_bytes(content)
    else:
        path.write_bytes(written([Entry(member.encode(), content) for member, content in canary.items()], Ending()))
    return Model("tensorflow" if name == "savedmodel" else "torch", str(path), "", trust=True)


@pytest.mark.parametrize(("name", "number"), [("pt2", 0), ("pt2", 1), ("torchscript", 0), ("savedmodel", 0)])
def test_the_code_is_alive(name: str, number: int, tmp_path: Path) -> None:
    """Of a trusted file it leaves its mark."""
    mark = tmp_path / "mark"
    (tmp_path / "scratch").mkdir()
    canary = canary_of(name, mark, tmp_path / "scratch")
    mark.unlink(missing_ok=True)
    suspect = _opened(name, tmp_path / f"case{canary.suffix}", canary.whole | canary.hostile[number])
    try:
        framework(suspect.framework).load(suspect)
    except Exception as error:  # noqa: BLE001 (code has run by then)
        del error
    assert mark.exists()
    os.environ.pop(NOTE, None)


@pytest.mark.parametrize("name", ["pt2", "torchscript", "keras", "h5", "savedmodel", "npz"])
def test_none_of_a_sample_runs(name: str, tmp_path: Path) -> None:
    payload = {"format": name, "seed": 1, "first": 0, "count": 12, "mark": str(tmp_path / "mark")}
    found = trial(tmp_path / "cases", **payload)
    assert found["wrong"] == []
    assert sum(found["outcomes"].values()) == 12
