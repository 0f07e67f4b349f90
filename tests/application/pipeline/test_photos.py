"""Prepared photos of several runs that share a store."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from conrepair.application.config.model import DatasetConfig
from conrepair.application.pipeline.datasets import Dataset
from conrepair.application.pipeline.from_config import resolve_dataset
from conrepair.application.pipeline.photos import PhotoRoom
from conrepair.ground.data.feeds import DataReference
from conrepair.ground.data.pictures.named_recipes import named_recipe
from conrepair.ground.data.pictures.prepare import PreparedPhotos
from conrepair.ground.runtime.errors import DataError
from conrepair.ground.runtime.files.store import Store

SPATIAL = named_recipe("raw").for_size(8, 6).spatial


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    folder = tmp_path / "photos"
    folder.mkdir()
    generator = np.random.default_rng(0)
    for index in range(9):
        Image.fromarray(generator.integers(0, 256, (20, 20, 3), dtype=np.uint8)).save(folder / f"{index}.png")
    return resolve_dataset(DatasetConfig(folder="photos"), tmp_path)


def rows(reference: DataReference) -> np.ndarray:
    return np.array(PreparedPhotos(Path(reference.path), reference.count).read(0, reference.count))


def test_two_runs_at_once_do_not_disturb_each_other(dataset: Dataset, tmp_path: Path) -> None:
    first, second = (PhotoRoom(Store(tmp_path / "store"), reuse=True) for _ in range(2))
    one, two = first.reference(dataset, SPATIAL), second.reference(dataset, SPATIAL)
    assert one.path != two.path
    assert one.sha256 == two.sha256
    np.testing.assert_array_equal(rows(one), rows(two))
    assert rows(one).any(axis=(1, 2, 3)).all()
    first.close()
    second.close()
    third = PhotoRoom(Store(tmp_path / "store"), reuse=True)
    stored = third.reference(dataset, SPATIAL)
    assert "photos-" in stored.path, "the next run finds them decoded"
    assert rows(stored).shape == (9, 8, 6, 3)
    third.close()


def test_errors_are_those_of_their_dataset(dataset: Dataset, tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    bad.mkdir()
    (bad / "text.jpg").write_text("no picture")
    other = resolve_dataset(DatasetConfig(folder="bad"), tmp_path)
    room = PhotoRoom(Store(tmp_path / "store"), reuse=True)
    room.prepare(dataset, {SPATIAL})
    room.prepare(other, {SPATIAL})
    errors = room.wait()
    room.close()
    assert set(errors) == {other.sha256}
    assert isinstance(errors[other.sha256], DataError)
    assert "text.jpg" in str(errors[other.sha256])
    assert not list((tmp_path / "store").glob(".scratch*"))
