"""What the configuration calls a dataset, resolved: names, labels, and a hash of what counts."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from conrepair.application.config.model import DatasetConfig
from conrepair.application.pipeline import datasets
from conrepair.application.pipeline.datasets import Dataset
from conrepair.application.pipeline.from_config import resolve_dataset
from conrepair.ground.runtime.errors import DataError, FetchError
from conrepair.ground.zoo import catalog
from conrepair.ground.zoo.catalog import PHOTOS


def resolve(base: Path, **config: Any) -> Dataset:
    return resolve_dataset(DatasetConfig.model_validate(config), base)


def photo(path: Path, shade: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", (4, 4), shade).save(path)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for index, name in enumerate(["cats/2.png", "cats/10.png", "dogs/1.png"]):
        photo(tmp_path / "photos" / name, index)
    return tmp_path


# --- Folders ---


def test_a_folder_next_to_the_configuration(folder: Path) -> None:
    found = resolve(folder, folder="photos")
    assert found.kind == "photos"
    assert found.names == ("cats/2.png", "cats/10.png", "dogs/1.png")
    assert found.labels == (0, 0, 1)
    assert found.count == 3
    assert found.photos == tuple(folder / "photos" / name for name in found.names)
    assert found.about == "photos in photos (3, 3 labelled)"
    assert resolve(Path("/nowhere"), folder=str(folder / "photos")).names == found.names, "or anywhere"


def test_the_limit(folder: Path) -> None:
    found = resolve(folder, folder="photos", limit=2)
    assert found.names == ("cats/2.png", "cats/10.png")
    assert found.labels == (0, 0)
    assert found.about == "photos in photos (2 of 3, spread over the folder, 2 labelled)"
    for index in range(2, 5):
        photo(folder / "photos" / "dogs" / f"{index}.png", 10 + index)
    assert resolve(folder, folder="photos", limit=3).names == ("cats/2.png", "dogs/1.png", "dogs/3.png")
    assert found.sha256 != resolve(folder, folder="photos").sha256
    assert resolve(folder, folder="photos", limit=9).count == 6


def test_labels_by_policy_and_by_table(folder: Path) -> None:
    assert resolve(folder, folder="photos", labels="none").labels == (None, None, None)
    assert resolve(folder, folder="photos", labels="subfolders").labels == (0, 0, 1)
    (folder / "tables").mkdir()
    (folder / "tables" / "mine.csv").write_text("file,label\ncats/2.png,7\ncats/10.png,8\ndogs/1.png,9\n")
    found = resolve(folder, folder="photos", labels="tables/mine.csv")
    assert found.labels == (7, 8, 9), "the table's path starts at the configuration's folder, too"
    (folder / "tables" / "order.txt").write_text("dogs\ncats\n")
    for classes in ("tables/order.txt", ["dogs", "cats"]):
        found = resolve(folder, folder="photos", classes=classes)
        assert (found.labels, found.classes) == ((1, 1, 0), ("dogs", "cats"))
    with pytest.raises(DataError, match=r"none\.csv"):
        resolve(folder, folder="photos", labels="none.csv")


def test_the_hash_is_of_the_contents_in_their_order(folder: Path) -> None:
    before = resolve(folder, folder="photos", labels="none")
    shutil.copytree(folder / "photos", folder / "copy")
    assert resolve(folder, folder="copy", labels="none").sha256 == before.sha256
    photo(folder / "copy" / "dogs" / "1.png", 200)
    assert resolve(folder, folder="copy", labels="none").sha256 != before.sha256
    shutil.rmtree(folder / "copy")
    shutil.copytree(folder / "photos", folder / "copy")
    (folder / "copy" / "cats" / "2.png").rename(folder / "copy" / "cats" / "11.png")
    assert resolve(folder, folder="copy", labels="none").sha256 != before.sha256, "another order"


def test_folders_that_dont_serve(folder: Path) -> None:
    (folder / "empty").mkdir()
    with pytest.raises(DataError, match="no photos"):
        resolve(folder, folder="empty")
    with pytest.raises(DataError, match="doesn't exist"):
        resolve(folder, folder="fotos")


# --- Tensors ---


def test_tensors(tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", x=np.zeros((5, 3), np.float32), y=np.ones((5, 2), np.int64))
    found = resolve(tmp_path, tensors="data.npz")
    assert (found.kind, found.count, found.path) == ("tensors", 5, str(tmp_path / "data.npz"))
    assert found.names == tuple(f"sample_{index:05d}" for index in range(5))
    assert found.labels == (None,) * 5
    assert found.about == "tensors of data.npz (5)"
    assert resolve(tmp_path, tensors="data.npz", limit=2).about == "tensors of data.npz (the first 2 of 5)"
    assert resolve(tmp_path, tensors="data.npz", limit=9).count == 5
    np.save(tmp_path / "data.npy", np.zeros((5, 3), np.float32))
    other = resolve(tmp_path, tensors="data.npy")
    assert other.count == 5
    assert other.sha256 != found.sha256


def test_tensors_that_dont_serve(tmp_path: Path) -> None:
    np.savez(tmp_path / "uneven.npz", x=np.zeros((5, 3)), y=np.zeros((4, 3)))
    np.save(tmp_path / "empty.npy", np.zeros((0, 3)))
    np.save(tmp_path / "pickled.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    (tmp_path / "damaged.npz").write_bytes((tmp_path / "uneven.npz").read_bytes()[:-40])
    for name, words in [
        ("missing.npz", "no such data file"),
        ("uneven.npz", "all as many"),
        ("empty.npy", "no sample"),
        ("pickled.npy", "without pickles"),
        ("damaged.npz", "damaged"),
    ]:
        with pytest.raises(DataError, match=words):
            resolve(tmp_path, tensors=name)


# --- Synthetic ---


def test_synthetic(tmp_path: Path) -> None:
    found = resolve(tmp_path, synthetic={"samples": 3, "seed": 7, "low": 0.0, "high": 2.0, "integer_high": 11})
    assert (found.kind, found.count) == ("synthetic", 3)
    limits = found.limits
    assert (limits.seed, limits.low, limits.high, limits.integer_high) == (7, 0.0, 2.0, 11)
    assert found.about == "3 random samples, uniform in [0, 2], seed 7"
    assert resolve(tmp_path, synthetic={}).count == 32
    assert resolve(tmp_path, synthetic={}, limit=4).count == 4
    assert resolve(tmp_path, synthetic={"samples": 3}, limit=4).count == 3


def test_what_synthetic_data_are_drawn_from_decides_the_hash(tmp_path: Path) -> None:
    settings: list[dict[str, Any]] = [{}, {"seed": 1}, {"low": -2.0}, {"high": 2.0}, {"integer_high": 2}]
    assert len({resolve(tmp_path, synthetic=item).sha256 for item in settings}) == len(settings)
    assert resolve(tmp_path, synthetic={}).sha256 == resolve(tmp_path, synthetic={"samples": 5}).sha256


# --- The zoo ---


def test_the_zoo_s_photos_in_the_order_of_their_collections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photo(tmp_path / "one" / "imagenet_00_243.png", 1)
    photo(tmp_path / "one" / "imagenet_01_9.png", 2)
    photo(tmp_path / "two" / "NONFACE_1.png", 3)
    parts = [(PHOTOS["imagenet-photos"], tmp_path / "one"), (PHOTOS["natural-photos"], tmp_path / "two")]
    monkeypatch.setattr(catalog, "zoo_photos", lambda name, *, progress: parts)
    found = resolve(tmp_path, zoo="photos")
    assert found.names == ("imagenet_00_243.png", "imagenet_01_9.png", "NONFACE_1.png")
    assert found.labels == (243, 9, None)
    assert found.about == "zoo: photos (3, 2 labelled)"
    assert resolve(tmp_path, zoo="photos", limit=1).labels == (243,)


def test_a_collection_that_the_zoo_doesnt_have(tmp_path: Path) -> None:
    with pytest.raises(FetchError, match=r"no photo collection 'photoss'; did you mean 'photos'\?"):
        resolve(tmp_path, zoo="photoss")


@pytest.mark.network
def test_the_real_ones(tmp_path: Path) -> None:
    found = resolve(tmp_path, zoo="photos")
    assert found.count == 71
    assert sum(label is not None for label in found.labels) == 20
    assert all(path.is_file() for path in found.photos)
    assert len(set(found.names)) == 71
    assert found.about == "zoo: photos (71, 20 labelled)"


def test_of_large_models_fewer_inputs_are_drawn(tmp_path: Path) -> None:
    small, *large = (tmp_path / f"{size}.tflite" for size in (1, 600, 2_000, 14_000))  # MB
    for path in (small, *large):
        with path.open("wb") as file:
            file.truncate(int(path.stem) * 1_000_000)
    times = [datasets.times_larger([small, path]) for path in (small, *large)]
    assert times == [1.0, 1.2, 4.0, 28.0]
    assert [datasets.fitting_count(32, item) for item in times] == [32, 24, 8, 4]
    assert datasets.fitting_count(2, 28.0) == datasets.fitting_count(2, 1.0) == 2
    assert datasets.fewer_in_words(8, 4.0).startswith("8 random samples, since the largest model has 2.0 GB:")
