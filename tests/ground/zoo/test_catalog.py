"""The catalogue: its names, and that what it describes is really there."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from conrepair.ground.data.pictures.named_recipes import RECIPES
from conrepair.ground.data.pictures.photos import read_photo_folder
from conrepair.ground.runtime.errors import FetchError
from conrepair.ground.runtime.files.whole import sha256_of
from conrepair.ground.zoo import catalog
from conrepair.ground.zoo.catalog import MODELS, PHOTO_COLLECTIONS, PHOTOS, zoo_model, zoo_photos
from conrepair.ground.zoo.packages import PackageArchive

# --- Names ---


@pytest.mark.parametrize(
    ("name", "suggestion"), [("mobilenetv2", "mobilenet_v2"), ("efficientnet_lite0_uint", "efficientnet_lite0_uint8")]
)
def test_an_unknown_model_with_a_suggestion(name: str, suggestion: str) -> None:
    with pytest.raises(FetchError) as caught:
        zoo_model(name)
    text = str(caught.value)
    assert f"no model '{name}'; did you mean '{suggestion}'?" in text


def test_an_unknown_model_like_no_other() -> None:
    with pytest.raises(FetchError) as caught:
        zoo_model("xyzzy")
    assert "did you mean" not in str(caught.value)
    assert all(known in str(caught.value) for known in MODELS)


def test_an_unknown_photo_collection() -> None:
    with pytest.raises(FetchError) as caught:
        zoo_photos("imagenet_photos")
    text = str(caught.value)
    assert "no photo collection 'imagenet_photos'; did you mean 'imagenet-photos'?" in text


def test_a_collection_is_fetched_part_by_part_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    fetched: list[str] = []

    def fetch(archive: PackageArchive, select: Callable[[str], str | None], **_: object) -> Path:
        fetched.append(archive.project)
        return Path(archive.project)

    monkeypatch.setattr(catalog, "fetch", fetch)
    parts = zoo_photos("photos")
    assert fetched == ["foolbox", "pyvision-toolkit"]
    assert [(entry, folder.name) for entry, folder in parts] == [
        (PHOTOS["imagenet-photos"], "foolbox"),
        (PHOTOS["natural-photos"], "pyvision-toolkit"),
    ]
    fetched.clear()
    zoo_photos("natural-photos")
    assert fetched == ["pyvision-toolkit"]


def test_selections_take_what_is_meant_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    selections: list[Callable[[str], str | None]] = []

    def fetch(archive: PackageArchive, select: Callable[[str], str | None], **_: object) -> Path:
        selections.append(select)
        return Path()

    monkeypatch.setattr(catalog, "fetch", fetch)
    zoo_photos("imagenet-photos")
    zoo_model("mobilenet_v2")
    photo, model = selections
    assert photo("foolbox/data/imagenet_00_243.jpg") == "imagenet_00_243.jpg"
    for name in [
        "foolbox/data/cifar10_00_3.png",
        "foolbox/data/imagenet_00_243.png",
        "foolbox/data/deep/imagenet_00_243.jpg",
        "../foolbox/data/imagenet_00_243.jpg",
        "imagenet_00_243.jpg",
    ]:
        assert photo(name) is None
    assert model("anywhere/mobilenet_v2-b0353104.pth") == "mobilenet_v2-b0353104.pth"
    assert model("../../mobilenet_v2-b0353104.pth") == "mobilenet_v2-b0353104.pth", "without the archive's folders"
    assert model("mobilenet_v2-b0353104.pth.py") is None


def test_the_catalogue_is_consistent() -> None:
    archives = [entry.archive for entry in [*MODELS.values(), *PHOTOS.values()]]
    for archive in archives:
        assert re.fullmatch("[0-9a-f]{64}", archive.sha256)
        assert archive.version in archive.filename
    assert len({archive.sha256 for archive in archives}) == len(archives), "one selection for each archive"
    assert all(entry.recipe in RECIPES for entry in MODELS.values())
    assert all(part in PHOTOS for parts in PHOTO_COLLECTIONS.values() for part in parts)
    assert not set(PHOTO_COLLECTIONS) & set(PHOTOS)
    assert all((entry.factory is None) == (entry.input_shape is None) for entry in MODELS.values())


# --- Contents ---


@pytest.mark.network
def test_the_photos_of_imagenet_are_20_and_labelled() -> None:
    ((entry, folder),) = zoo_photos("imagenet-photos")
    photos = read_photo_folder(folder, labels=entry.labels).photos  # type: ignore[arg-type]
    assert len(photos) == len(list(folder.iterdir())) == 20
    labels = {photo.name: photo.label for photo in photos}
    assert labels["imagenet_00_243.jpg"] == 243
    assert labels["imagenet_15_99.jpg"] == 99
    assert all(label is not None and 0 <= label < 1000 for label in labels.values())
    assert_pictures([photo.path for photo in photos])


@pytest.mark.network
def test_the_natural_photos_are_51_and_unlabelled() -> None:
    ((entry, folder),) = zoo_photos("natural-photos")
    photos = read_photo_folder(folder, labels=entry.labels).photos  # type: ignore[arg-type]
    assert len(photos) == len(list(folder.iterdir())) == 51
    assert all(photo.label is None for photo in photos)
    assert [photo.name for photo in photos[:2]] == ["NONFACE_1.jpg", "NONFACE_2.jpg"]
    assert_pictures([photo.path for photo in photos])


def assert_pictures(paths: list[Path]) -> None:
    assert len({sha256_of(path) for path in paths}) == len(paths)
    for path in paths:
        with Image.open(path) as picture:
            assert picture.format == "JPEG"
            assert min(picture.size) >= 100
            picture.draft("L", (32, 32))  # decode it, but quickly
            assert picture.convert("L").getextrema()[0] != picture.convert("L").getextrema()[1]


@pytest.mark.network
@pytest.mark.parametrize("name", ["efficientnet_lite0", "mobilenet_v2"])
def test_weights_have_the_hash_that_their_publishers_put_into_their_names(name: str) -> None:
    entry, path = zoo_model(name)
    assert path.name == entry.member
    beginning = path.stem.rpartition("-")[2]
    assert re.fullmatch("[0-9a-f]{8}", beginning)
    assert sha256_of(path).startswith(beginning)
    assert path.stat().st_size > 10_000_000
    assert entry.factory is not None
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None


@pytest.mark.network
def test_the_tflite_model_is_one() -> None:
    entry, path = zoo_model("efficientnet_lite0_uint8")
    assert entry.factory is None
    content = path.read_bytes()
    assert content[4:8] == b"TFL3"
    assert 4_000_000 < len(content) < 8_000_000, "eight bits for each weight"
