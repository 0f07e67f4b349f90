"""Networks built by a factory, with given or drawn weights, saved as what their framework loads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import small_models as small
import torch

from conrepair.formats.models.builders import build_from_factory
from conrepair.formats.models.model import Factory, Model
from conrepair.formats.models.registry import framework
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import ModelLoadError
from conrepair.ground.runtime.files.whole import sha256_of

UNNAMED = replace(small.IMAGE, name="")
BUILDER = "torchvision.models:mobilenet_v2"


def build(target: str, folder: Path, *inputs: TensorSpec, **options: Any) -> Model:
    folder.mkdir(exist_ok=True)
    arguments: dict[str, Any] = {"kwargs": {}, "weights": None, "initialize": "as-built", "seed": 0} | options
    return build_from_factory(target=target, inputs=inputs, folder=folder, **arguments)


# --- PyTorch ---


def test_a_torch_network(tmp_path: Path) -> None:
    model = build("small_models:torch_convnet", tmp_path / "out", UNNAMED, kwargs={"seed": 3})
    assert model == Model(
        "torch", str(tmp_path / "out" / "weights.pt"), sha256_of(tmp_path / "out" / "weights.pt"),
        Factory("small_models:torch_convnet", {"seed": 3}), (UNNAMED,),
    )  # fmt: skip
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["weights.pt"]
    result = framework("torch").load(model).run({"input": small.images()})["output"]
    with torch.inference_mode():
        expected = small.torch_convnet(seed=3)(torch.from_numpy(small.images()))
    assert small.relative_l2(expected, result) < 1e-6


def test_torch_weights_from_a_file(tmp_path: Path) -> None:
    torch.save(small.torch_convnet(seed=4).state_dict(), tmp_path / "given.pth")
    model = build("small_models:torch_convnet", tmp_path / "out", UNNAMED, weights=str(tmp_path / "given.pth"))
    result = framework("torch").load(model).run({"input": small.images()})["output"]
    with torch.inference_mode():
        expected = small.torch_convnet(seed=4)(torch.from_numpy(small.images()))
    assert small.relative_l2(expected, result) < 1e-6


def test_the_seed_decides_about_drawn_weights(tmp_path: Path) -> None:
    """Of a factory that draws from torch's own generator."""
    options: dict[str, Any] = {"kwargs": {"in_features": 4, "out_features": 3}}
    vector = TensorSpec("", ("batch", 4), "float32")
    models = [
        build("torch.nn:Linear", tmp_path / str(place), vector, seed=seed, **options)
        for place, seed in enumerate((1, 1, 2))
    ]
    first, again, other = (torch.load(model.path)["weight"] for model in models)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_a_torch_network_with_statistics_of_its_own(tmp_path: Path) -> None:
    """As built, random weights damp the signal so much that the input hardly matters."""
    options: dict[str, Any] = {"kwargs": {"width_mult": 0.1, "num_classes": small.CLASSES}}
    image = TensorSpec("", ("batch", 3, 40, 32), "float32")
    inputs = np.random.default_rng(0).normal(size=(4, 3, 40, 32)).astype(np.float32)
    spread = {}
    for initialize in ("as-built", "variance-preserving"):
        model = build(BUILDER, tmp_path / initialize, image, initialize=initialize, **options)
        state = torch.load(model.path)
        moved = any(bool(value.abs().max() > 0) for name, value in state.items() if name.endswith("running_mean"))
        assert moved == (initialize == "variance-preserving")
        (output,) = framework("torch").load(model).run({"x": inputs}).values()
        assert np.isfinite(output).all()
        spread[initialize] = float(output.std(axis=0).mean())
    assert spread["variance-preserving"] > 10 * spread["as-built"]


def test_preserved_variance_is_the_same_every_time(tmp_path: Path) -> None:
    one, two = (
        build("small_models:torch_convnet", tmp_path / name, UNNAMED, initialize="variance-preserving", seed=7)
        for name in ("one", "two")
    )
    for first, second in zip(torch.load(one.path).values(), torch.load(two.path).values(), strict=True):
        assert torch.equal(first, second)


def conditioned(model: Model, images: Any) -> float:
    """How much answers differ from those in float64, relative."""
    (exact,) = framework(model.framework).load(model, second_opinion=True).run(images).values()
    (result,) = framework(model.framework).load(model).run(images).values()
    return float(np.linalg.norm(result - exact) / np.linalg.norm(exact))


def test_rounding_is_not_amplified_by_deep_torch_networks(tmp_path: Path) -> None:
    """Not on white noise either, which isn't what statistics are drawn from."""
    spec = TensorSpec("", ("batch", 3, 32, 32), "float32")
    model = build("torchvision.models:efficientnet_b0", tmp_path / "out", spec, initialize="variance-preserving")
    images = np.random.default_rng(0).uniform(-1, 1, (4, 3, 32, 32)).astype(np.float32)
    assert conditioned(model, {"x": images}) < 1e-5
    assert spread(model, {"x": images}) > 0.05


def spread(model: Model, images: Any) -> float:
    """How much answers differ from input to input, against how large they are."""
    (result,) = framework(model.framework).load(model).run(images).values()
    return float(result.std(axis=0).mean() / np.abs(result).mean())


@pytest.mark.parametrize(
    ("name", "kwargs", "least"),
    [("vit_b_32", {"image_size": 32}, 0.05), ("convnext_tiny", {}, 0.05), ("squeezenet1_1", {}, 0.05)],
)
def test_networks_that_hardly_answer_as_built_do_with_preserved_variance(
    tmp_path: Path, name: str, kwargs: dict[str, Any], least: float
) -> None:
    """A zero head, layer scales of 1e-6, no normalization."""
    spec = TensorSpec("", ("batch", 3, 32, 32), "float32")
    target = f"torchvision.models:{name}"
    model = build(target, tmp_path / "out", spec, kwargs=kwargs, initialize="variance-preserving")
    images = np.random.default_rng(0).normal(size=(4, 3, 32, 32)).astype(np.float32)
    assert spread(model, {"x": images}) > least
    state = torch.load(model.path)
    assert all(bool((value == 1).all()) for key, value in state.items() if key.endswith("layer_scale"))


@pytest.mark.parametrize("target", ["small_models:torch_pair", "small_models:torch_text"])
def test_preserved_variance_of_other_inputs(tmp_path: Path, target: str) -> None:
    """Vectors and whole numbers get inputs that fit, though there's nothing to preserve."""
    inputs = small.PAIR if target.endswith("pair") else (replace(small.TEXT, high=small.WORDS),)
    model = build(target, tmp_path / "out", *inputs, initialize="variance-preserving")
    assert framework("torch").describe(model).inputs[0].shape[1:] == inputs[0].shape[1:]


@pytest.mark.parametrize("inputs", [(), (TensorSpec("", ("batch", 5, 12, 10), "float32"),)])
def test_inputs_that_do_not_fit_are_told(tmp_path: Path, inputs: tuple[TensorSpec, ...]) -> None:
    with pytest.raises(ModelLoadError, match=r"small_models:torch_convnet.*inputs"):
        build("small_models:torch_convnet", tmp_path / "out", *inputs, initialize="variance-preserving")


def test_torch_weights_that_do_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "text.pth"
    torch.save(small.torch_text().state_dict(), path)
    with pytest.raises(ModelLoadError, match=r"text\.pth don't fit the network of small_models:torch_convnet"):
        build("small_models:torch_convnet", tmp_path / "out", UNNAMED, weights=str(path))
    for damaged in small.damaged_copies(path, tmp_path):
        with pytest.raises(ModelLoadError, match=damaged.name):
            build("small_models:torch_convnet", tmp_path / "out", UNNAMED, weights=str(damaged))


# --- Keras ---


@pytest.mark.parametrize("nested", [False, True])
def test_a_keras_network(tmp_path: Path, nested: bool) -> None:
    """Of a user's module: the framework is told from what the factory gives."""
    model = build("small_models:keras_convnet", tmp_path / "out", kwargs={"nested": nested})
    path = tmp_path / "out" / "model.keras"
    assert model == Model("keras", str(path), sha256_of(path))
    result = framework("keras").load(model).run({"image": small.images(channels_last=True)})["logits"]
    expected = small.keras_convnet(nested=nested)(small.images(channels_last=True))
    assert small.relative_l2(expected, result) < 1e-6


def test_keras_weights_from_a_file(tmp_path: Path) -> None:
    network = small.keras_convnet()
    network.set_weights([value + 0.25 for value in network.get_weights()])
    network.save_weights(tmp_path / "given.weights.h5")
    model = build("small_models:keras_convnet", tmp_path / "out", weights=str(tmp_path / "given.weights.h5"))
    result = framework("keras").load(model).run({"image": small.images(channels_last=True)})["logits"]
    assert small.relative_l2(network(small.images(channels_last=True)), result) < 1e-6


@pytest.mark.parametrize("package", ["keras", "tensorflow.keras"])
def test_a_network_of_keras_applications(tmp_path: Path, package: str) -> None:
    model = build(
        f"{package}.applications:MobileNet", tmp_path / "out", initialize="variance-preserving", seed=5,
        kwargs={"weights": None, "alpha": 0.1, "input_shape": [40, 32, 3], "classes": small.CLASSES},
    )  # fmt: skip
    network = keras.saving.load_model(model.path)
    norms = [layer for layer in network.layers if isinstance(layer, keras.layers.BatchNormalization)]
    assert norms
    assert all(np.abs(layer.moving_mean).max() > 0 for layer in norms)
    assert {layer.momentum for layer in norms} == {0.99}  # as it was


def test_keras_networks_that_scale_pixels_are_calibrated_with_pixels(tmp_path: Path) -> None:
    model = build(
        "keras.applications:MobileNetV3Small",
        tmp_path / "out",
        kwargs={"weights": None, "input_shape": [32, 32, 3], "classifier_activation": None},
        initialize="variance-preserving",
    )
    network = keras.saving.load_model(model.path)
    pixels = np.random.default_rng(0).uniform(0, 255, (4, 32, 32, 3)).astype(np.float32)
    first = next(layer for layer in network.layers if isinstance(layer, keras.layers.BatchNormalization))
    inner = keras.Model(network.inputs, first.output)
    assert 0.3 < float(np.asarray(inner(pixels)).std()) < 3
    assert np.asarray(network(pixels)).std(axis=0).mean() > 1e-2


@pytest.mark.slow
def test_rounding_is_not_amplified_by_deep_keras_networks(tmp_path: Path) -> None:
    kwargs = {"weights": None, "input_shape": [32, 32, 3], "classifier_activation": None}
    target = "keras.applications:EfficientNetB0"
    model = build(target, tmp_path / "out", kwargs=kwargs, initialize="variance-preserving")
    pixels = {"input_layer": np.random.default_rng(0).uniform(0, 255, (4, 32, 32, 3)).astype(np.float32)}
    assert conditioned(model, pixels) < 1e-5
    assert spread(model, pixels) > 0.05


def test_keras_kernels_without_normalization_keep_the_variance(tmp_path: Path) -> None:
    kwargs = {"weights": None, "input_shape": [32, 32, 3], "include_top": False, "pooling": "avg"}
    built, kept = (
        build("keras.applications:VGG16", tmp_path / name, kwargs=kwargs, initialize=name)
        for name in ("as-built", "variance-preserving")
    )
    images = np.random.default_rng(0).normal(size=(2, 32, 32, 3)).astype(np.float32)
    faint, clear = (float(np.asarray(keras.saving.load_model(m.path)(images)).std()) for m in (built, kept))
    assert clear > 0.1
    assert faint < clear / 10


def test_the_seed_decides_about_drawn_keras_weights(tmp_path: Path) -> None:
    """Of a factory that draws from Keras's own generator."""
    first, again, other = (
        keras.saving.load_model(
            build("small_models:keras_drawn", tmp_path / str(place), seed=seed).path
        ).get_weights()[0]
        for place, seed in enumerate((1, 1, 2))
    )
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0


def test_keras_weights_that_do_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "text.weights.h5"
    small.keras_text().save_weights(path)
    with pytest.raises(
        ModelLoadError, match=r"text\.weights\.h5 don't fit the network of small_models:keras_convnet"
    ):
        build("small_models:keras_convnet", tmp_path / "out", weights=str(path))


# --- Neither ---


@pytest.mark.parametrize("target", ["collections:OrderedDict", "keras.layers:ReLU"])
def test_a_factory_of_something_else(tmp_path: Path, target: str) -> None:
    with pytest.raises(ModelLoadError, match=rf"factory {target} returned (OrderedDict|ReLU)"):
        build(target, tmp_path / "out")


def test_a_factory_that_fails(tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match=r"factory small_models:torch_convnet\(depth=3\) failed: TypeError"):
        build("small_models:torch_convnet", tmp_path / "out", UNNAMED, kwargs={"depth": 3})
