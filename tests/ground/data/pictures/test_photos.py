from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from conrepair.ground.data.pictures.photos import Photo, PhotoSet, read_photo_folder
from conrepair.ground.runtime.errors import DataError


def fill(folder: Path, *names: str) -> Path:
    """Puts empty files into a folder: listing photos doesn't open them."""
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return folder


def names(photos: PhotoSet) -> list[str]:
    return [photo.name for photo in photos.photos]


def labels(photos: PhotoSet) -> list[int | None]:
    return [photo.label for photo in photos.photos]


# --- Listing ---


def test_natural_order_and_fields(tmp_path: Path) -> None:
    folder = fill(tmp_path / "set", "img10.jpg", "img2.jpg", "img1.jpg", "b/1.png", "a10/1.png")
    fill(folder, "a2/1.png")
    photos = read_photo_folder(folder, labels="none")
    assert photos.name == "set"
    assert photos.classes is None
    assert names(photos) == [
        "a2/1.png", "a10/1.png", "b/1.png", "img1.jpg", "img2.jpg", "img10.jpg",
    ]  # fmt: skip
    assert photos.photos[0] == Photo(folder / "a2" / "1.png", "a2/1.png", None)
    assert hash(photos) == hash(read_photo_folder(folder, labels="none"))


def test_order_of_names_that_differ_in_case_or_zeros(tmp_path: Path) -> None:
    fill(tmp_path, "a01.jpg", "a1.jpg", "A1.jpg", "A001.jpg")
    assert names(read_photo_folder(tmp_path)) == ["A001.jpg", "A1.jpg", "a01.jpg", "a1.jpg"]


def test_names_of_digits_and_text_are_comparable(tmp_path: Path) -> None:
    fill(tmp_path, "1.jpg", "a.jpg", "1a.jpg", "a1/1.jpg", "\N{SUPERSCRIPT TWO}.jpg")
    assert len(names(read_photo_folder(tmp_path))) == 5


def _make(path: Path, kind: str) -> None:
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to({"nowhere": "gone.jpg", "itself": path.name, "device": "/dev/zero", "folder": "."}[kind])


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("pipe", "b.jpg in the photo folder is a pipe"),
        ("nowhere", "a link that leads nowhere"),
        ("itself", "a link that leads nowhere"),
        ("device", "a device"),
    ],
)
def test_what_only_has_the_name_of_a_photo_is_refused(tmp_path: Path, kind: str, words: str) -> None:
    _make(fill(tmp_path, "a.jpg") / "b.jpg", kind)
    with pytest.raises(DataError, match=words):
        read_photo_folder(tmp_path)
    assert names(read_photo_folder(tmp_path, limit=1)) == ["a.jpg"]


def test_links_to_photos_are_photos_and_links_to_folders_are_not_followed(tmp_path: Path) -> None:
    (fill(tmp_path, "a.jpg") / "b.jpg").symlink_to("a.jpg")
    _make(tmp_path / "c.jpg", "folder")
    assert names(read_photo_folder(tmp_path)) == ["a.jpg", "b.jpg"]


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_labels_that_would_be_waited_for_or_have_no_end(tmp_path: Path, kind: str) -> None:
    _make(fill(tmp_path, "a.jpg") / "labels.txt", kind)
    with pytest.raises(DataError, match=r"labels\.txt (is no file|can't be read: Is a directory)"):
        read_photo_folder(tmp_path, labels=tmp_path / "labels.txt")


def test_names_that_are_not_utf_8_are_shown_as_escapes(tmp_path: Path) -> None:
    raw = os.fsdecode(b"caf\xe9")
    fill(tmp_path, f"{raw}/1.jpg", "b/1.jpg")
    photos = read_photo_folder(tmp_path)
    assert names(photos) == ["b/1.jpg", r"caf\xe9/1.jpg"]
    assert photos.classes == ("b", r"caf\xe9")
    assert all(photo.path.is_file() for photo in photos.photos)


def test_suffixes_hidden_files_and_other_files(tmp_path: Path) -> None:
    fill(tmp_path, "a.JPG", "b.Png", "c.webp", "d.txt", ".e.jpg", ".hidden/f.jpg", "g", "h.eps")
    assert names(read_photo_folder(tmp_path)) == ["a.JPG", "b.Png", "c.webp"]


def test_linked_files_count_and_linked_folders_do_not(tmp_path: Path) -> None:
    fill(tmp_path, "other/a.jpg")
    folder = fill(tmp_path / "set", "b.jpg")
    (folder / "a.jpg").symlink_to(tmp_path / "other" / "a.jpg")
    (folder / "loop").symlink_to(folder)
    assert names(read_photo_folder(folder)) == ["a.jpg", "b.jpg"]


def test_limit_takes_the_first_and_keeps_the_classes(tmp_path: Path) -> None:
    fill(tmp_path, "cat/1.jpg", "dog/1.jpg", "eel/1.jpg")
    photos = read_photo_folder(tmp_path, limit=2)
    assert names(photos) == ["cat/1.jpg", "dog/1.jpg"]
    assert photos.classes == ("cat", "dog", "eel")
    assert len(read_photo_folder(tmp_path, limit=9).photos) == 3


def test_the_current_folder_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(fill(tmp_path / "here", "a.jpg"))
    assert read_photo_folder(Path()).name == "here"


def test_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="doesn't exist"):
        read_photo_folder(tmp_path / "none")


def test_file_instead_of_folder(tmp_path: Path) -> None:
    fill(tmp_path, "a.jpg")
    with pytest.raises(DataError, match="is a file, not a folder"):
        read_photo_folder(tmp_path / "a.jpg")


def test_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no photos in .*found instead: nothing"):
        read_photo_folder(tmp_path)


def test_folder_without_photos_lists_what_is_there(tmp_path: Path) -> None:
    fill(tmp_path, "a.txt", "b.txt", "c.pdf", "LICENSE", "e.1", "f.2", "g.3")
    with pytest.raises(
        DataError,
        match=re.escape("found instead: 2 .txt, 1 without suffix, 1 .1, 1 .2, 1 .3, 1 other. "),
    ):
        read_photo_folder(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_sub_folder(tmp_path: Path) -> None:
    fill(tmp_path, "a.jpg", "sub/b.jpg")
    (tmp_path / "sub").chmod(0)
    try:
        with pytest.raises(DataError, match="can't be listed"):
            read_photo_folder(tmp_path)
    finally:
        (tmp_path / "sub").chmod(0o700)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": "folders"}, "Unknown source of labels 'folders'"),
        ({"limit": 0}, "at least 1"),
    ],
)
def test_wrong_arguments(tmp_path: Path, options: dict[str, object], message: str) -> None:
    fill(tmp_path, "a.jpg")
    with pytest.raises(DataError, match=message):
        read_photo_folder(tmp_path, **options)


# --- Sub-folders ---


def test_integer_folders_are_the_labels(tmp_path: Path) -> None:
    fill(tmp_path, "10/a.jpg", "2/a.jpg", "2/deep/b.jpg")
    photos = read_photo_folder(tmp_path)
    assert names(photos) == ["2/a.jpg", "2/deep/b.jpg", "10/a.jpg"]
    assert labels(photos) == [2, 2, 10]
    assert photos.classes is None


def test_named_folders_enumerate_the_classes(tmp_path: Path) -> None:
    fill(tmp_path, "n02/a.jpg", "n01/a.jpg", "n10/a.jpg", "empty/readme.txt")
    photos = read_photo_folder(tmp_path, labels="subfolders")
    assert labels(photos) == [0, 1, 2]
    assert photos.classes == ("n01", "n02", "n10")


def test_auto_wants_two_folders_and_no_photo_beside_them(tmp_path: Path) -> None:
    fill(tmp_path, "cat/a.jpg")
    assert labels(read_photo_folder(tmp_path)) == [None]
    assert labels(read_photo_folder(tmp_path, labels="subfolders")) == [0]
    fill(tmp_path, "dog/a.jpg")
    assert labels(read_photo_folder(tmp_path)) == [0, 1]
    fill(tmp_path, "c.jpg")
    assert labels(read_photo_folder(tmp_path)) == [None] * 3
    with pytest.raises(DataError, match=r"but c\.jpg in .* is in none"):
        read_photo_folder(tmp_path, labels="subfolders")


# --- File names ---


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("imagenet_00_243.jpg", 243),
        ("a-7.jpg", 7),
        ("243_cat.jpg", 243),
        ("a_1_b-022_c3.jpg", 22),
        ("12_34.jpg", 34),
    ],
)
def test_label_in_file_name(tmp_path: Path, name: str, label: int) -> None:
    fill(tmp_path, name)
    assert labels(read_photo_folder(tmp_path, labels="filenames")) == [label]


@pytest.mark.parametrize("name", ["cat.jpg", "00243.jpg", "cat3.jpg", "a_3b.jpg", "7_/cat.jpg"])
def test_file_name_without_label(tmp_path: Path, name: str) -> None:
    fill(tmp_path, name)
    with pytest.raises(DataError, match=rf"but {re.escape(name)} in .* doesn't have an integer"):
        read_photo_folder(tmp_path, labels="filenames")


# --- CSV ---


def write_csv(folder: Path, text: str, name: str = "labels.csv") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize(
    "text",
    [
        "file,label\na.jpg,3\nsub/b.jpg,5\n",
        "a.jpg,3\nsub/b.jpg,5",
        "\ufeffFilename, label\r\n\r\n ./a.jpg , 3\r\nsub\\b.jpg,5\r\n,\r\n",
        '"sub/b.jpg","5"\n"a.jpg","3"\n',
    ],
)
def test_labels_csv_is_found(tmp_path: Path, text: str) -> None:
    fill(tmp_path, "a.jpg", "sub/b.jpg")
    write_csv(tmp_path, text)
    photos = read_photo_folder(tmp_path)
    assert labels(photos) == [3, 5]
    assert photos.classes is None


def test_csv_of_names_anywhere(tmp_path: Path) -> None:
    folder = fill(tmp_path / "set", "a.jpg", "b.jpg", "c.jpg")
    file = write_csv(tmp_path, "a.jpg,dog\nb.jpg,cat\nc.jpg,dog", "my.csv")
    photos = read_photo_folder(folder, labels=file)
    assert labels(photos) == [1, 0, 1]
    assert photos.classes == ("cat", "dog")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a.jpg,1\nb.jpg,2\na.jpg,1", r"line 3: a\.jpg already has a label, on line 1"),
        ("a.jpg,1\nc.jpg,2", r"line 2: 'c\.jpg' is not among the photos"),
        ("a.jpg,1", r"no row for b\.jpg\. Add"),
        ("", r"no row for a\.jpg \(and 1 more\)"),
        ("a.jpg,1\nb.jpg", "line 2: a row has two columns"),
        ("a.jpg,1\nb.jpg,", "line 2: a row has two columns"),
        ("a.jpg,1\nb.jpg,2,3", "line 2: a row has two columns"),
        ("a.jpg,1\n../b.jpg,2", "line 2: .* outside of the photo folder"),
        ("a.jpg,1\n..\\b.jpg,2", "line 2: .* outside of the photo folder"),
        ("a.jpg,1\n/etc/passwd,2", "line 2: .* outside of the photo folder"),
        ("a.jpg,1\nb.jpg,dog", "line 2: the label 'dog' doesn't go|line 1: the label '1'"),
        ("a.jpg,-1\nb.jpg,2", r"label of a\.jpg is -1"),
        ("a.jpg,1\nb.jpg,\ud800", "not CSV in UTF-8"),
    ],
)
def test_wrong_csv(tmp_path: Path, text: str, message: str) -> None:
    fill(tmp_path, "a.jpg", "b.jpg")
    (tmp_path / "labels.csv").write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(DataError, match=message) as caught:
        read_photo_folder(tmp_path)
    if "-1" not in text:
        assert "labels.csv" in str(caught.value)


def test_missing_csv(tmp_path: Path) -> None:
    fill(tmp_path, "a.jpg")
    with pytest.raises(DataError, match=r"none\.csv can't be read: No such file"):
        read_photo_folder(tmp_path, labels=tmp_path / "none.csv")


def test_csv_with_a_huge_number_is_a_name(tmp_path: Path) -> None:
    fill(tmp_path, "a.jpg")
    write_csv(tmp_path, "a.jpg," + "9" * 5000)
    assert labels(read_photo_folder(tmp_path)) == [0]
