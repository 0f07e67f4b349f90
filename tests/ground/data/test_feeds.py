"""Datasets as batches of feeds: photos, tensors, synthetic."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from conrepair.ground.data.feeds import Batch, DataReference, batches, image_input, open_feeds
from conrepair.ground.data.pictures import decode
from conrepair.ground.data.pictures.named_recipes import named_recipe
from conrepair.ground.data.pictures.prepare import PhotoPreparation
from conrepair.ground.data.pictures.recipe import apply_numeric, apply_spatial
from conrepair.ground.data.synthetic import SyntheticRange
from conrepair.ground.data.tensor_spec import Quantization, TensorSpec
from conrepair.ground.data.tensors import read_tensors
from conrepair.ground.runtime.errors import DataError

IMAGE = TensorSpec("image", ("batch", 3, 16, 12), "float32")


@pytest.fixture
def photos(tmp_path: Path) -> list[Path]:
    generator = np.random.default_rng(3)
    files = []
    for index in range(7):
        pixels = generator.integers(0, 256, (20 + index, 30, 3), dtype=np.uint8)
        files.append(tmp_path / f"{index}.png")
        Image.fromarray(pixels).save(files[-1])
    return files


def all_batches(reference: DataReference, spec: TensorSpec, size: int, recipe_name: str = "raw") -> list[Batch]:
    recipe = named_recipe(recipe_name).for_size(16, 12)
    return list(batches(open_feeds(reference, [spec], recipe), [spec], size))


def test_photos_go_through_the_recipe_in_order(photos: list[Path], tmp_path: Path) -> None:
    recipe = named_recipe("torchvision").for_size(16, 12)
    folder = tmp_path / "rows"
    sealed: list[Path] = []
    preparation = PhotoPreparation(photos, {recipe.spatial: folder}, sealed.append, threads=2)
    result = all_batches(DataReference("photos", 7, str(folder)), IMAGE, 3, "torchvision")
    preparation.wait()
    assert sealed == [folder]
    assert [batch.valid for batch in result] == [3, 3, 1]
    expected = np.stack([apply_spatial(recipe.spatial, np.asarray(Image.open(path))) for path in photos])
    got = np.concatenate([batch.feeds["image"] for batch in result])
    np.testing.assert_array_equal(got, apply_numeric(recipe, expected, "NCHW"))


def test_a_photo_is_decoded_once_for_all_geometries(
    photos: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: dict[Path, int] = {}
    lock = threading.Lock()
    real = decode.decode_picture

    def counting(path: Path) -> np.ndarray:
        with lock:
            counts[path] = counts.get(path, 0) + 1
        return real(path)

    monkeypatch.setattr(decode, "decode_picture", counting)
    geometries = {
        named_recipe(name).for_size(*size).spatial: tmp_path / f"{name[:3]}{size[0]}"
        for name in ("torchvision", "tflite")
        for size in ((16, 12), (8, 8))
    }
    assert len(geometries) == 4
    PhotoPreparation(photos, geometries, lambda _: None).wait()
    assert counts == dict.fromkeys(photos, 1)


def test_reading_overlaps_with_decoding(photos: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    real = decode.decode_picture

    def gated(path: Path) -> np.ndarray:
        if path == photos[-1]:
            gate.wait(30)
        return real(path)

    monkeypatch.setattr(decode, "decode_picture", gated)
    recipe = named_recipe("raw").for_size(16, 12)
    preparation = PhotoPreparation(photos, {recipe.spatial: tmp_path / "rows"}, lambda _: None, threads=1)
    source = open_feeds(DataReference("photos", 7, str(tmp_path / "rows")), [IMAGE], recipe)
    first = next(iter(batches(source, [IMAGE], 2)))  # while the last photo isn't decoded yet
    assert first.valid == 2
    assert not gate.is_set()
    gate.set()
    preparation.wait()


def test_an_unreadable_photo_is_named_and_leaves_nothing(photos: list[Path], tmp_path: Path) -> None:
    photos[4].write_text("this is no picture")
    recipe = named_recipe("raw").for_size(16, 12)
    folder = tmp_path / "rows"
    preparation = PhotoPreparation(photos, {recipe.spatial: folder}, lambda _: None)
    with pytest.raises(DataError, match=r"4\.png"):
        preparation.wait()
    assert not folder.exists()


def test_a_waiting_reader_is_told_of_the_failure(
    photos: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = threading.Event()

    def failing(path: Path) -> np.ndarray:
        opened.wait(30)
        raise DataError(f"{path} is bad")

    monkeypatch.setattr(decode, "decode_picture", failing)
    recipe = named_recipe("raw").for_size(16, 12)
    preparation = PhotoPreparation(photos, {recipe.spatial: tmp_path / "rows"}, lambda _: None)
    source = open_feeds(DataReference("photos", 7, str(tmp_path / "rows")), [IMAGE], recipe)
    opened.set()
    started = time.monotonic()
    with pytest.raises(DataError, match="could not be prepared"):
        source.read(0, 2)
    assert time.monotonic() - started < 10
    with pytest.raises(DataError, match="is bad"):
        preparation.wait()


def test_a_fixed_batch_is_filled_up(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(10, dtype=np.float32).reshape(5, 2))
    spec = TensorSpec("x", (4, 2), "float32")
    result = list(batches(open_feeds(DataReference("tensors", 5, str(tmp_path / "x.npy")), [spec], None), [spec], 16))
    assert [(batch.start, batch.valid, len(batch.feeds["x"])) for batch in result] == [(0, 4, 4), (4, 1, 4)]
    np.testing.assert_array_equal(result[1].feeds["x"], [[8, 9]] * 4)


def test_named_tensors_feed_the_inputs_of_their_name(tmp_path: Path) -> None:
    arrays = {"b": np.ones((3, 4), np.float32), "a": np.zeros((3, 4), np.float32)}
    np.savez(tmp_path / "x.npz", **arrays)
    inputs = [TensorSpec("a", ("batch", 4), "float32"), TensorSpec("b", ("batch", 4), "float32")]
    feeds = open_feeds(DataReference("tensors", 3, str(tmp_path / "x.npz")), inputs, None).read(0, 3)
    np.testing.assert_array_equal(feeds["a"], arrays["a"])
    np.testing.assert_array_equal(feeds["b"], arrays["b"])


def test_tensors_are_transposed_for_a_model_of_the_other_layout(tmp_path: Path) -> None:
    array = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5)
    np.save(tmp_path / "x.npy", array)
    spec = TensorSpec("input", ("batch", 4, 5, 3), "float32")
    feeds = open_feeds(DataReference("tensors", 2, str(tmp_path / "x.npy")), [spec], None).read(0, 2)
    np.testing.assert_array_equal(feeds["input"], array.transpose(0, 2, 3, 1))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"garbage", "can't be read"),
        (b"", "can't be read"),
        ({"a": np.zeros((2, 3)), "b": np.zeros((3, 3))}, "all as many"),
        ({"a": np.zeros(())}, "first axis"),
        ({"a": np.zeros((0, 3))}, "no sample"),
        ({}, "no array"),
        ({"a": np.array([object()], dtype=object)}, "pickle"),
    ],
)
def test_bad_tensor_files_are_explained(tmp_path: Path, content: bytes | dict[str, np.ndarray], message: str) -> None:
    path = tmp_path / "x.npz"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        np.savez(path, **content)
    with pytest.raises(DataError, match=message):
        read_tensors(path)


def test_a_truncated_tensor_file_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez_compressed(path, a=np.random.default_rng(0).normal(size=(100, 10)))
    whole = path.read_bytes()
    for length in (10, len(whole) // 2, len(whole) - 5):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError, match=r"x\.npz"):
            read_tensors(path)


def test_synthetic_data_do_not_depend_on_batches_or_layout() -> None:
    reference = DataReference("synthetic", 6, samples=(IMAGE,), limits=SyntheticRange(seed=5, low=2, high=3))
    nhwc = TensorSpec("other", ("batch", 16, 12, 3), "float32")
    one = np.concatenate([batch.feeds["image"] for batch in all_batches(reference, IMAGE, 4)])
    two = np.concatenate([batch.feeds["other"] for batch in all_batches(reference, nhwc, 5)])
    np.testing.assert_array_equal(one, two.transpose(0, 3, 1, 2))
    assert one.min() >= 2
    assert one.max() <= 3
    assert len(np.unique(one)) > 1000


def test_synthetic_data_do_not_depend_on_names() -> None:
    """Keras numbers its input layers on from whatever the process built before."""
    arrays = [
        open_feeds(DataReference("synthetic", 2, samples=(replace(IMAGE, name=name),)), [IMAGE], None).read(0, 2)
        for name in ("input_layer", "input_layer_7")
    ]
    np.testing.assert_array_equal(arrays[0]["image"], arrays[1]["image"])


def test_synthetic_integers_stay_within_the_table_they_index() -> None:
    spec = TensorSpec("ids", ("batch", 50), "int64", high=7)
    feeds = open_feeds(DataReference("synthetic", 20, samples=(spec,)), [spec], None).read(0, 20)
    assert set(np.unique(feeds["ids"])) == set(range(7))


def test_synthetic_data_for_a_quantized_input_are_the_same_real_numbers() -> None:
    stored = TensorSpec("x", (1, 16, 12, 3), "uint8", Quantization(1 / 128, 127))
    reference = DataReference("synthetic", 2, samples=(IMAGE,))
    real = open_feeds(reference, [IMAGE], None).read(0, 2)["image"]
    for_quantized = open_feeds(reference, [stored], None).read(0, 2)["x"]
    np.testing.assert_array_equal(for_quantized, real.transpose(0, 2, 3, 1))


SPEECH = [
    TensorSpec("input", ("batch", 8), "float32"),
    TensorSpec("state", (2, "batch", 4), "float32"),
    TensorSpec("rate", (), "int64"),
]


def test_inputs_without_a_common_batch_get_whole_feeds() -> None:
    """As a speech detector takes them: audio, a recurrent state whose batch is its second axis, a scalar."""
    source = open_feeds(DataReference("synthetic", 3, samples=tuple(SPEECH)), SPEECH, None)
    result = list(batches(source, SPEECH, 16))
    assert [(batch.start, batch.valid, batch.size) for batch in result] == [(0, 1, 1), (1, 1, 1), (2, 1, 1)]
    assert {name: array.shape for name, array in result[2].feeds.items()} == {
        "input": (1, 8),
        "state": (2, 1, 4),
        "rate": (),
    }


def test_whole_feeds_from_a_file(tmp_path: Path) -> None:
    arrays = {
        "input": np.arange(16, dtype=np.float32).reshape(2, 1, 8),
        "state": np.zeros((2, 2, 1, 4), np.float32),
        "rate": np.array([8000, 16000]),
    }
    np.savez(tmp_path / "x.npz", **arrays)
    source = open_feeds(DataReference("tensors", 2, str(tmp_path / "x.npz")), SPEECH, None)
    first, second = batches(source, SPEECH, 16)
    assert (int(first.feeds["rate"]), int(second.feeds["rate"])) == (8000, 16000)
    np.testing.assert_array_equal(second.feeds["input"], arrays["input"][1])


def test_an_unknown_dimension_needs_a_declaration() -> None:
    spec = TensorSpec("x", ("batch", 3, "height", "width"), "float32")
    with pytest.raises(DataError, match="no definite shape"):
        open_feeds(DataReference("synthetic", 2, samples=(spec,)), [spec], None)


def test_photos_need_one_image_input() -> None:
    with pytest.raises(DataError, match=r"one takes ids: int64\[batch, 9\]"):
        image_input([TensorSpec("ids", ("batch", 9), "int64")])
    with pytest.raises(DataError, match="photos fit a model with one input"):
        image_input([IMAGE, IMAGE])


STORED = TensorSpec("image", ("batch", 16, 12, 3), "uint8", Quantization(0.5, 10))


def fed(reference: DataReference, spec: TensorSpec, recipe: str = "raw") -> np.ndarray:
    return np.concatenate([batch.feeds[spec.name] for batch in all_batches(reference, spec, 2, recipe)])


def test_a_format_without_quantization_takes_what_the_source_stores(tmp_path: Path, photos: list[Path]) -> None:
    """Keras and PyTorch have no place for scale and zero point; what's drawn, read or decoded are real numbers."""
    plain = TensorSpec("other", ("batch", 3, 16, 12), "uint8")
    drawn = DataReference("synthetic", 3, samples=(STORED,), limits=SyntheticRange(low=-5, high=90))
    values = np.random.default_rng(0).uniform(-5, 90, (3, 16, 12, 3)).astype(np.float32)
    np.save(tmp_path / "data.npy", values)
    read = DataReference("tensors", 3, str(tmp_path / "data.npy"), samples=(STORED,))
    recipe = named_recipe("raw").for_size(16, 12)
    PhotoPreparation(photos, {recipe.spatial: tmp_path / "rows"}, lambda _: None, threads=1).wait()
    decoded = DataReference("photos", 7, str(tmp_path / "rows"), samples=(STORED,))
    for reference in (drawn, read, decoded):
        reals = fed(reference, STORED)
        assert reals.dtype == np.float32
        got = fed(reference, plain)
        assert got.dtype == np.uint8
        expected = np.clip(np.rint(reals / 0.5) + 10, 0, 255).transpose(0, 3, 1, 2)
        np.testing.assert_array_equal(got, expected)


def test_integers_of_another_type_are_not_what_the_source_stores() -> None:
    drawn = DataReference("synthetic", 3, samples=(STORED,))
    with pytest.raises(DataError, match="no array of the data fits input other: int8"):
        open_feeds(drawn, [TensorSpec("other", ("batch", 16, 12, 3), "int8")], None)


def test_a_lone_array_has_as_many_samples_as_the_input_says(tmp_path: Path) -> None:
    array = np.arange(5 * 4 * 3, dtype=np.float32).reshape(5, 4, 3)
    np.save(tmp_path / "x.npy", array)
    spec = TensorSpec("x", (5, "batch", 3), "float32")
    source = open_feeds(DataReference("tensors", 5, str(tmp_path / "x.npy")), [spec], None)
    assert source.count == 4
    (batch,) = batches(source, [spec], 16)
    np.testing.assert_array_equal(batch.feeds["x"], array)


@pytest.mark.parametrize(("zero_point", "told"), [(0, ""), (30, "-30 to 225")])
def test_values_that_an_input_does_not_hold_are_told(tmp_path: Path, zero_point: int, told: str) -> None:
    np.savez(tmp_path / "data.npz", x=np.linspace(0, 255, 512, dtype=np.float32).reshape(4, 128))
    path = tmp_path / "data.npz"
    spec = TensorSpec("x", ("batch", 128), "uint8", Quantization(1.0, zero_point))
    samples = (TensorSpec("x", ("batch", 128), "float32"),)
    data = DataReference("tensors", 4, str(path), "", samples=samples)
    words = " ".join(open_feeds(data, (spec,), None).matching.guesses)
    assert bool(words) == bool(told)
    assert not told or f"x is uint8 and holds {told}, its data 0 to 255: 12 % of them are clipped" in words
