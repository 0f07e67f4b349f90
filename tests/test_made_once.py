"""A model is made once for all who ask for it, in this run and in the next; other code makes it anew."""

from __future__ import annotations

from pathlib import Path

import made_once
import pytest

from conrepair.formats.models.model import Model
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import UsageError


class Maker:
    """Writes a number, and counts how often it's asked to; another one stands for another run."""

    def __init__(self) -> None:
        self.made = list[int]()

        @made_once.made_once
        def model(folder: Path, number: int) -> Model:
            self.made.append(number)
            if number < 0:
                raise UsageError("no such model")
            (folder / "inner").mkdir()
            path = folder / "inner" / "net.onnx"
            path.write_text(str(number))
            return Model("onnx", str(path), "0" * 64, inputs=(TensorSpec("x", (1,), "int8"),))

        self.model = model


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(made_once.KEPT, str(tmp_path / "kept"))
    return tmp_path / "kept"


def test_it_is_made_once_and_copied_to_each(kept: Path, tmp_path: Path) -> None:
    first, second = Maker(), Maker()
    given = [maker.model(tmp_path / str(place), 5) for place, maker in enumerate((first, first, second))]
    assert (first.made, second.made) == ([5], [])
    assert len([*kept.iterdir()]) == 1
    assert [item.path for item in given] == [str(tmp_path / str(place) / "inner" / "net.onnx") for place in range(3)]
    assert {Path(item.path).read_text() for item in given} == {"5"}
    assert {(item.framework, item.inputs) for item in given} == {("onnx", (TensorSpec("x", (1,), "int8"),))}
    Path(given[0].path).write_text("changed")
    assert Path(second.model(tmp_path / "again", 5).path).read_text() == "5"
    assert Path(second.model(tmp_path / "other", 6).path).read_text() == "6"
    assert second.made == [6]


def test_other_code_or_releases_make_it_anew(kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Maker().model(tmp_path / "one", 5)
    monkeypatch.setattr(made_once, "_surroundings", lambda: "others")
    maker = Maker()
    maker.model(tmp_path / "two", 5)
    assert maker.made == [5]


def test_what_fails_is_not_kept(kept: Path, tmp_path: Path) -> None:
    for maker in (Maker(), Maker()):
        with pytest.raises(UsageError, match="no such model"):
            maker.model(tmp_path / "one", -1)
        assert maker.made == [-1]
    assert [*kept.iterdir()] == []


def test_where_no_folder_is_named_a_process_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(made_once.KEPT, "")
    first, second = Maker(), Maker()
    for place, maker in enumerate((first, first, second)):
        maker.model(tmp_path / str(place), 5)
    assert (first.made, second.made) == ([5], [5])
