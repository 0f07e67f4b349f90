"""Lists of classes: how they're written, where they're found, and what they number."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from conrepair.ground.data.pictures.class_names import lists_nearby, read_class_names
from conrepair.ground.data.pictures.photos import PhotoSet, read_photo_folder
from conrepair.ground.runtime.errors import DataError

ORDER = "circle\nsquare\ntriangle\n"


def named(folder: Path, *, counted: int = 2) -> Path:
    """Photos with their class in front of a running number."""
    folder.mkdir()
    for word in ("triangle", "circle", "square"):
        for number in range(counted):
            (folder / f"{word}_{number:03}.png").touch()
    return folder


def by_name(photos: PhotoSet) -> dict[str, int | None]:
    return {photo.name.split("_", 1)[0]: photo.label for photo in photos.photos}


@pytest.mark.parametrize(
    "text", [ORDER, "\ufeffcircle\r\n\r\n square \r\ntriangle", "0 circle\n1: square\n2,\ttriangle"]
)
def test_a_list_is_a_name_a_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "own.txt").write_text(text, encoding="utf-8")
    assert read_class_names(tmp_path / "own.txt").names == ("circle", "square", "triangle")


def test_numbers_that_dont_count_the_lines_belong_to_the_names(tmp_path: Path) -> None:
    (tmp_path / "own.txt").write_text("1 circle\n3 squares\n")
    assert read_class_names(tmp_path / "own.txt").names == ("1 circle", "3 squares")


def test_a_background_class_in_front_of_a_thousand_isnt_counted(tmp_path: Path) -> None:
    (tmp_path / "own.txt").write_text("\n".join(["background", *(f"class {number}" for number in range(1000))]))
    found = read_class_names(tmp_path / "own.txt")
    assert found.numbers()["class 7"] == 7


@pytest.mark.parametrize(
    ("content", "words"), [(b"\n \n", "is empty"), (b"\xff\xfe", "no text"), (None, "can't be read")]
)
def test_lists_that_arent(tmp_path: Path, content: bytes | None, words: str) -> None:
    if content is not None:
        (tmp_path / "own.txt").write_bytes(content)
    with pytest.raises(DataError, match=words):
        read_class_names(tmp_path / "own.txt")


@pytest.mark.parametrize("place", ["photos", ".", "models"])
def test_a_list_beside_photos_or_model_is_found(tmp_path: Path, place: str) -> None:
    folder, model = named(tmp_path / "photos"), tmp_path / "models" / "model.keras"
    model.parent.mkdir()
    (tmp_path / place / "labels.txt").write_text(ORDER)
    found = read_photo_folder(folder, models=[model])
    assert by_name(found) == {"circle": 0, "square": 1, "triangle": 2}
    assert found.numbering.startswith("0 = circle, 1 = square, 2 = triangle, as ")
    assert "labels.txt" in found.numbering


def test_a_list_in_the_metadata_of_tflite_is_found(tmp_path: Path) -> None:
    folder, model = named(tmp_path / "photos"), tmp_path / "model.tflite"
    model.write_bytes(b"\0\0\0\0TFL3")
    with zipfile.ZipFile(model, "a") as archive:
        archive.writestr("labels.txt", ORDER)
    assert by_name(read_photo_folder(folder, models=[model])) == {"circle": 0, "square": 1, "triangle": 2}
    model.write_bytes(model.read_bytes()[:-30])
    assert list(lists_nearby(folder, [model])) == []


def test_a_list_that_lacks_a_label_is_for_something_else_or_refused(tmp_path: Path) -> None:
    folder = named(tmp_path / "photos")
    (tmp_path / "labels.txt").write_text("circle\nsquare\n")
    found = read_photo_folder(folder)
    assert by_name(found) == {"circle": None, "square": None, "triangle": None}
    assert found.hint == "names begin with circle, square, triangle: --labels filenames takes these for classes"
    assert found.numbering == ""
    with pytest.raises(DataError, match=r"labels\.txt doesn't have triangle, .* it has 0 = circle, 1 = square\."):
        read_photo_folder(folder, labels="filenames", classes=read_class_names(tmp_path / "labels.txt"))


def test_without_a_list_names_are_in_alphabetical_order_and_that_is_said(tmp_path: Path) -> None:
    found = read_photo_folder(named(tmp_path / "photos"), labels="filenames")
    assert by_name(found) == {"circle": 0, "square": 1, "triangle": 2}
    assert found.numbering.startswith("0 = circle, 1 = square, 2 = triangle, in alphabetical order; --classes FILE")


def test_a_list_numbers_folders_and_rows_of_a_table(tmp_path: Path) -> None:
    for number, word in enumerate(("7", "10")):
        (tmp_path / "photos" / word).mkdir(parents=True)
        (tmp_path / "photos" / word / f"{number}.png").touch()
    (tmp_path / "own.txt").write_text("10\n7\n")
    assert [photo.label for photo in read_photo_folder(tmp_path / "photos").photos] == [7, 10]
    listed = read_class_names(tmp_path / "own.txt")
    assert [photo.label for photo in read_photo_folder(tmp_path / "photos", classes=listed).photos] == [1, 0]
    (tmp_path / "photos" / "labels.csv").write_text("7/0.png,Ring\n10/1.png,cross\n")
    (tmp_path / "photos" / "classes.txt").write_text("cross\nring\n")
    assert [photo.label for photo in read_photo_folder(tmp_path / "photos").photos] == [1, 0]
