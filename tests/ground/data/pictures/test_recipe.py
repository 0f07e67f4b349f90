"""Recipes against the libraries they stand for; the libraries are the oracles."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from conrepair.ground.data.pictures.decode import decode_picture
from conrepair.ground.data.pictures.named_recipes import RECIPES, named_recipe
from conrepair.ground.data.pictures.recipe import Recipe, SpatialRecipe, apply_numeric, apply_spatial
from conrepair.ground.data.pictures.resample import resize_bilinear, resize_nearest
from conrepair.ground.runtime.errors import DataError

# Height and width: odd, portrait, landscape, square, smaller than the crop, the crop itself, and
# sizes at which nothing is resized.
SIZES = [
    (301, 453), (453, 301), (480, 640), (1024, 333), (97, 131), (50, 50), (224, 224), (256, 256),
    (256, 391), (7, 5), (1, 1), (223, 225), (1, 40),
]  # fmt: skip


def picture(height: int, width: int, seed: int = 0) -> np.ndarray:
    """Gradients with noise: smooth and rough parts alike."""
    rows = np.linspace(0, 200, height)[:, np.newaxis]
    columns = np.linspace(0, 180, width)[np.newaxis, :]
    ramp = np.stack([rows + 0 * columns, columns + 0 * rows, (rows + columns) / 2], axis=-1)
    noise = np.random.default_rng(seed).integers(0, 70, ramp.shape)
    return np.clip(ramp + noise, 0, 255).astype(np.uint8)


def apply(recipe: Recipe, pixels: np.ndarray, layout: str) -> np.ndarray:
    picture_ = apply_spatial(recipe.spatial, pixels)
    return apply_numeric(recipe, picture_[np.newaxis], layout)


@pytest.fixture(scope="module")
def torchvision() -> ModuleType:
    from conrepair.ground.runtime.torchvision import import_torchvision

    return import_torchvision()


@pytest.fixture(scope="module")
def tf() -> ModuleType:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    return pytest.importorskip("tensorflow")


# --- torchvision ---


@pytest.mark.parametrize("size", SIZES)
def test_torchvision_is_bit_identical(torchvision: ModuleType, size: tuple[int, int]) -> None:
    from torchvision.transforms._presets import ImageClassification

    pixels = picture(*size)
    expected = ImageClassification(crop_size=224)(Image.fromarray(pixels)).numpy()
    result = apply(RECIPES["torchvision"].for_size(224, 224), pixels, "NCHW")
    assert result.dtype == np.float32
    assert result.flags.c_contiguous
    assert np.array_equal(result[0], expected)


@pytest.mark.parametrize("suffix", [".jpg", ".png"])
def test_torchvision_from_files(torchvision: ModuleType, tmp_path: Path, suffix: str) -> None:
    from torchvision.datasets.folder import pil_loader
    from torchvision.transforms._presets import ImageClassification

    path = tmp_path / f"a{suffix}"
    Image.fromarray(picture(375, 500)).save(path)
    expected = ImageClassification(crop_size=224)(pil_loader(str(path))).numpy()
    result = apply(RECIPES["torchvision"].for_size(224, 224), np.array(decode_picture(path)), "NCHW")
    assert np.array_equal(result[0], expected)


@pytest.mark.parametrize("size", [(301, 453), (97, 131), (640, 480)])
@pytest.mark.parametrize(("resize", "crop"), [(342, 299), (232, 224), (100, 160), (63, 64)])
@pytest.mark.parametrize("method", ["bilinear", "bicubic", "nearest", "lanczos", "box", "hamming"])
def test_torchvision_with_other_sizes(
    torchvision: ModuleType, size: tuple[int, int], resize: int, crop: int, method: str
) -> None:
    from torchvision.transforms import InterpolationMode
    from torchvision.transforms._presets import ImageClassification

    pixels = picture(*size)
    transform = ImageClassification(crop_size=crop, resize_size=resize, interpolation=InterpolationMode(method))
    recipe = dataclasses.replace(RECIPES["torchvision"], size=(crop, crop), resize_to=resize, interpolation=method)
    result = apply(recipe, pixels, "NCHW")
    assert np.array_equal(result[0], transform(Image.fromarray(pixels)).numpy())


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    photo=st.tuples(st.integers(1, 80), st.integers(1, 80)),
    crop=st.tuples(st.integers(1, 60), st.integers(1, 60)),
    resize=st.integers(1, 60),
)
def test_crop_geometry_equals_torchvision(
    torchvision: ModuleType, photo: tuple[int, int], crop: tuple[int, int], resize: int
) -> None:
    from torchvision.transforms import functional

    pixels = picture(*photo)
    image = functional.resize(Image.fromarray(pixels), [resize])
    expected = np.asarray(functional.center_crop(image, list(crop)))
    recipe = Recipe("a", size=crop, fit="crop", resize_to=resize)
    assert np.array_equal(apply_spatial(recipe.spatial, pixels), expected)


def test_nhwc_holds_the_same_numbers() -> None:
    pixels = picture(60, 80)
    for recipe in RECIPES.values():
        sized = recipe.for_size(33, 47)
        first, last = apply(sized, pixels, "NCHW"), apply(sized, pixels, "NHWC")
        assert first.shape == (1, 3, 33, 47)
        assert last.shape == (1, 33, 47, 3)
        assert last.flags.c_contiguous
        assert np.array_equal(first.transpose(0, 2, 3, 1), last)


# --- Keras ---


@pytest.mark.parametrize("mode", ["tf", "torch", "caffe"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("suffix", [".jpg", ".png"])
def test_keras_is_bit_identical(
    tf: ModuleType, tmp_path: Path, mode: str, size: tuple[int, int], suffix: str
) -> None:
    import keras

    path = tmp_path / f"a{suffix}"
    Image.fromarray(picture(*size)).save(path)
    image = keras.utils.load_img(path, target_size=(224, 192))
    array = keras.utils.img_to_array(image)[np.newaxis]
    expected = keras.applications.imagenet_utils.preprocess_input(array, mode=mode)
    result = apply(RECIPES[f"keras:{mode}"].for_size(224, 192), np.array(decode_picture(path)), "NHWC")
    assert np.array_equal(result, expected)


# --- TensorFlow ---


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("target", [(224, 224), (300, 64), (1, 1)])
@pytest.mark.parametrize("method", ["bilinear", "nearest"])
def test_tensorflow_resize(tf: ModuleType, size: tuple[int, int], target: tuple[int, int], method: str) -> None:
    pixels = picture(*size)
    expected = tf.image.resize(pixels, target, method).numpy().astype(np.float32)
    spatial = Recipe("a", size=target, interpolation=method, resampler="tensorflow").spatial
    result = apply_spatial(spatial, pixels)
    assert result.dtype == np.float32
    assert result.shape == (*target, 3)
    assert np.abs(result - expected).max() <= (1e-4 if method == "bilinear" else 0.0)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    source=st.tuples(st.integers(1, 300), st.integers(1, 300)),
    target=st.tuples(st.integers(1, 300), st.integers(1, 300)),
)
def test_tensorflow_resize_at_any_size(tf: ModuleType, source: tuple[int, int], target: tuple[int, int]) -> None:
    pixels = picture(*source)
    bilinear = tf.image.resize(pixels, target, "bilinear").numpy()
    assert np.abs(resize_bilinear(pixels, *target) - bilinear).max() <= 1e-4
    nearest = tf.image.resize(pixels, target, "nearest").numpy()
    assert np.array_equal(resize_nearest(pixels, *target), nearest.astype(np.float32))


def test_tflite_recipe(tf: ModuleType) -> None:
    pixels = picture(301, 453)
    resized = tf.image.resize(pixels, (224, 224))
    expected = ((resized - 127.5) / 127.5).numpy()
    result = apply(RECIPES["tflite"].for_size(224, 224), pixels, "NHWC")
    assert np.abs(result[0] - expected).max() <= 1e-4 / 127.5


# --- The other named recipes ---


def test_raw_is_the_stretched_photo() -> None:
    pixels = picture(301, 453)
    expected = np.asarray(Image.fromarray(pixels).resize((40, 30), Image.Resampling.BILINEAR))
    result = apply(RECIPES["raw"].for_size(30, 40), pixels, "NHWC")
    assert np.array_equal(result[0], expected.astype(np.float32))


def test_efficientnet_lite(torchvision: ModuleType) -> None:
    from torchvision.transforms import InterpolationMode, functional

    pixels = picture(301, 453)
    image = functional.resize(Image.fromarray(pixels), [320], InterpolationMode.BICUBIC)
    cropped = np.asarray(functional.center_crop(image, [280, 280]), dtype=np.float32)
    expected = (cropped - np.float32(127)) / np.float32(128)
    result = apply(RECIPES["efficientnet-lite"].for_size(280, 280), pixels, "NHWC")
    assert np.array_equal(result[0], expected)


def test_names_agree_and_unknown_ones_are_explained() -> None:
    assert all(name == recipe.name for name, recipe in RECIPES.items())
    assert all(recipe.layout is None and recipe.size is None for recipe in RECIPES.values())
    assert named_recipe("tflite") is RECIPES["tflite"]
    with pytest.raises(DataError, match=r"'torchvison'; did you mean 'torchvision'\?"):
        named_recipe("torchvison")
    with pytest.raises(DataError, match=r"named 'zzz'; use one of torchvision, keras:tf"):
        named_recipe("zzz")


# --- Recipes as data ---


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": ""}, "name must be"),
        ({"fit": "squeeze"}, "fit must be one of stretch, crop, pad, none, but is 'squeeze'"),
        ({"interpolation": "cubic"}, "interpolation must be one of nearest, bilinear, bicubic"),
        ({"resampler": "opencv"}, "resampler must be one of pillow, tensorflow"),
        ({"resampler": "tensorflow", "interpolation": "box"}, "interpolation must be nearest or"),
        ({"channels": "rgba"}, "channels must be one of rgb, bgr, grey"),
        ({"layout": "CHW"}, "layout must be one of NCHW, NHWC"),
        ({"size": (0, 5)}, "size must be two positive integers"),
        ({"size": (5,)}, "size must be"),
        ({"size": 224}, "size must be"),
        ({"size": (5.0, 5.0)}, "size must be"),
        ({"resize_to": 0}, "resize_to must be a positive integer"),
        ({"resize_to": True}, "resize_to must be a positive integer"),
        ({"crop_ratio": 0.0}, "crop_ratio must be"),
        ({"crop_ratio": 1.5}, "crop_ratio must be"),
        ({"crop_ratio": float("nan")}, "crop_ratio must be"),
        ({"divisor": 0}, "divisor must be"),
        ({"divisor": 1e-60}, "divisor must be"),
        ({"divisor": "255"}, "divisor must be"),
        ({"mean": (1.0, 2.0)}, r"mean must be 1 or 3 finite number\(s\) with the channels rgb"),
        ({"mean": ()}, "mean must be"),
        ({"mean": 0.5}, "mean must be"),
        ({"mean": (float("inf"),)}, "mean must be"),
        ({"mean": (1.0, 2.0, 3.0), "channels": "grey"}, "mean must be 1 finite"),
        ({"std": (1.0, 0.0, 1.0)}, "std must be numbers other than 0"),
        ({"std": (1.0, 1.0)}, "std must be 1 or 3"),
        ({"std": ("1",)}, "std must be"),
        ({"std": (1e39,)}, "std must be"),
    ],
)
def test_wrong_fields(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Recipe(**{"name": "a", **fields})


def test_recipe_survives_json() -> None:
    recipe = dataclasses.replace(RECIPES["torchvision"], size=(224, 224))
    back = Recipe(**json.loads(json.dumps(dataclasses.asdict(recipe))))
    assert back == recipe
    assert hash(back) == hash(recipe)


def test_spatial_part_is_shared_and_plain() -> None:
    size = (224, 224)
    lite = dataclasses.replace(RECIPES["efficientnet-lite"], interpolation="bilinear", size=size)
    spatial = RECIPES["torchvision"].for_size(*size).spatial
    assert spatial == lite.spatial == SpatialRecipe(size, "crop", 256, "bilinear", "pillow")
    assert hash(spatial) == hash(lite.spatial)
    assert json.loads(json.dumps(dataclasses.asdict(spatial)))["resize_to"] == 256
    # What plays no role doesn't tell two spatial parts apart.
    assert Recipe("a", size=size, crop_ratio=0.5).spatial == Recipe("b", size=size).spatial


@pytest.mark.parametrize(("size", "resize_to"), [((299, 299), 342), ((224, 320), 256), ((1, 1), 1)])
def test_resize_to_follows_the_crop_ratio(size: tuple[int, int], resize_to: int) -> None:
    assert Recipe("a", size=size, fit="crop").spatial.resize_to == resize_to


def test_for_size_keeps_its_own() -> None:
    assert Recipe("a").for_size(5, 6).size == (5, 6)
    assert Recipe("a", size=(3, 4)).for_size(5, 6).size == (3, 4)
    with pytest.raises(ValueError, match="size must be"):
        Recipe("a").for_size(0, 6)
    with pytest.raises(ValueError, match=r"Call for_size\(height, width\) first"):
        _ = Recipe("a").spatial


# --- apply_spatial ---


def test_fit_none_takes_the_photo_as_it_is() -> None:
    pixels = picture(20, 30)
    recipe = Recipe("a", fit="none")
    assert np.array_equal(apply_spatial(recipe.spatial, pixels), pixels)
    assert np.array_equal(apply_spatial(recipe.for_size(20, 30).spatial, pixels), pixels)
    floats = apply_spatial(dataclasses.replace(recipe.spatial, resampler="tensorflow"), pixels)
    assert floats.dtype == np.float32
    assert np.array_equal(floats, pixels)
    with pytest.raises(DataError, match="30 pixels wide and 20 high, but the model takes 8 x 9"):
        apply_spatial(recipe.for_size(9, 8).spatial, pixels)


def test_tensorflow_crop() -> None:
    recipe = Recipe("a", size=(8, 8), fit="crop", resize_to=10, resampler="tensorflow")
    pixels = picture(20, 30)
    expected = resize_bilinear(pixels, 10, 15)[1:9, 4:12]
    result = apply_spatial(recipe.spatial, pixels)
    assert result.flags.c_contiguous
    assert np.array_equal(result, expected)


def test_a_strip_does_not_fill_the_memory() -> None:
    recipe = Recipe("a", size=(224, 224), fit="crop")
    with pytest.raises(DataError, match=r"5000 pixels wide and 1 high.*Remove the photo"):
        apply_spatial(recipe.spatial, np.zeros((1, 5000, 3), np.uint8))


@pytest.mark.parametrize(
    "pixels",
    [
        np.zeros((4, 4), np.uint8),
        np.zeros((4, 4, 4), np.uint8),
        np.zeros((4, 4, 3), np.float32),
        np.zeros((0, 4, 3), np.uint8),
    ],
)
def test_wrong_pixels(pixels: np.ndarray) -> None:
    with pytest.raises(ValueError, match="pixels must be uint8"):
        apply_spatial(Recipe("a", size=(2, 2)).spatial, pixels)


# --- apply_numeric ---


def test_grey_equals_pillow() -> None:
    every = np.arange(256, dtype=np.uint8)
    pixels = np.stack(np.meshgrid(every, every[::5], every[::7], indexing="ij"), axis=-1)
    pixels = pixels.reshape(256, -1, 3)
    expected = np.asarray(Image.fromarray(pixels).convert("L"), dtype=np.float32)
    for layout, axis in (("NCHW", 1), ("NHWC", 3)):
        result = apply_numeric(Recipe("a", channels="grey"), pixels[np.newaxis], layout)
        assert result.shape[axis] == 1
        assert np.array_equal(result.squeeze(axis)[0], expected)


def test_grey_of_floats_is_not_rounded() -> None:
    batch = np.array([[[[10.0, 20.0, 30.5]]]], dtype=np.float32)
    result = apply_numeric(Recipe("a", channels="grey", divisor=2.0), batch, "NCHW")
    assert result.item() == pytest.approx((2.99 + 11.74 + 3.477) / 2, abs=1e-5)


def test_bgr_and_order_of_the_mean() -> None:
    batch = np.array([[[[10, 20, 30]]]], dtype=np.uint8)
    recipe = Recipe("a", channels="bgr", mean=(1.0, 2.0, 3.0), std=(1.0, 2.0, 4.0))
    assert apply_numeric(recipe, batch, "NHWC").ravel().tolist() == [29.0, 9.0, 1.75]


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_numeric_leaves_its_input_alone(layout: str, dtype: type) -> None:
    batch = np.stack([picture(6, 5, seed) for seed in range(3)]).astype(dtype)
    before = batch.copy()
    for recipe in (RECIPES["raw"], RECIPES["torchvision"]):
        result = apply_numeric(recipe, batch, layout)
        assert not np.shares_memory(result, batch)
        assert np.array_equal(batch, before)
        for index in range(3):
            alone = apply_numeric(recipe, batch[index : index + 1], layout)
            assert np.array_equal(alone[0], result[index])


def test_empty_batch() -> None:
    result = apply_numeric(RECIPES["torchvision"], np.zeros((0, 4, 5, 3), np.uint8), "NCHW")
    assert result.shape == (0, 3, 4, 5)


def test_wrong_batch_or_layout() -> None:
    recipe = Recipe("a")
    for batch in (np.zeros((4, 4, 3), np.uint8), np.zeros((1, 4, 4, 3)), np.zeros((1, 3, 4, 4))):
        with pytest.raises(ValueError, match="batch must be uint8 or float32"):
            apply_numeric(recipe, batch, "NCHW")
    with pytest.raises(ValueError, match="layout must be NCHW or NHWC"):
        apply_numeric(recipe, np.zeros((1, 4, 4, 3), np.uint8), "CHW")


# --- Padding ---


@pytest.mark.parametrize("size", [(100, 170), (170, 100), (64, 64), (31, 977), (641, 480), (333, 500)])
@pytest.mark.parametrize("wanted", [(64, 64), (48, 96), (97, 33)])
def test_padding_equals_pillows(size: tuple[int, int], wanted: tuple[int, int]) -> None:
    from PIL import ImageOps

    pixels = np.random.default_rng(0).integers(0, 256, (*size, 3), np.uint8)
    recipe = Recipe("padded", wanted, "pad", interpolation="bicubic")
    expected = ImageOps.pad(Image.fromarray(pixels), wanted[::-1], Image.Resampling.BICUBIC)
    np.testing.assert_array_equal(apply_spatial(recipe.spatial, pixels), np.asarray(expected))


@pytest.mark.parametrize("size", [(100, 170), (170, 100), (64, 64), (31, 977), (641, 480), (333, 500)])
@pytest.mark.parametrize("wanted", [(64, 64), (48, 96), (97, 33)])
def test_padding_equals_tensorflows(tf: ModuleType, size: tuple[int, int], wanted: tuple[int, int]) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (*size, 3), np.uint8)
    recipe = Recipe("padded", wanted, "pad", resampler="tensorflow")
    expected = tf.image.resize_with_pad(pixels, *wanted).numpy()
    np.testing.assert_array_equal(apply_spatial(recipe.spatial, pixels), expected)
