"""Which preprocessing a model gets."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from conrepair.application.config.model import ModelConfig, RecipeConfig
from conrepair.application.pipeline.recipes import default_recipe, recipe_from_config
from conrepair.ground.data.pictures.named_recipes import RECIPES, named_recipe
from conrepair.ground.runtime.errors import ConfigError, DataError, ExitCode
from conrepair.ground.zoo.catalog import MODELS


def recipe(**fields: Any) -> RecipeConfig:
    return RecipeConfig.model_validate(fields)


def default(**origin: str) -> tuple[str, bool]:
    chosen, own = default_recipe(ModelConfig.model_validate({"name": "net"} | origin))
    return chosen.name, own


@pytest.mark.parametrize("name", RECIPES)
def test_a_name_alone_is_that_recipe(name: str) -> None:
    assert recipe_from_config(recipe(base=name)) == named_recipe(name)


def test_no_name_is_raw() -> None:
    assert recipe_from_config(recipe()) == named_recipe("raw")


def test_fields_are_replaced_and_the_name_says_so() -> None:
    made = recipe_from_config(recipe(base="torchvision", size=[32, 48], resize_to=40, channels="bgr", layout="NHWC"))
    base = named_recipe("torchvision")
    assert made.name == "torchvision (changed)"
    assert (made.size, made.resize_to, made.channels, made.layout) == ((32, 48), 40, "bgr", "NHWC")
    assert (made.fit, made.mean, made.std, made.divisor) == (base.fit, base.mean, base.std, base.divisor)


def test_every_field_of_the_configuration_is_one_of_recipes() -> None:
    values: dict[str, Any] = {
        "size": [8, 9],
        "fit": "crop",
        "resize_to": 10,
        "crop_ratio": 0.5,
        "interpolation": "nearest",
        "resampler": "tensorflow",
        "channels": "bgr",
        "divisor": 2.0,
        "mean": [1.0, 2.0, 3.0],
        "std": [4.0],
        "layout": "NCHW",
    }
    assert set(values) == set(RecipeConfig.model_fields) - {"base"}
    made = recipe_from_config(recipe(**values))
    for name, value in values.items():
        assert getattr(made, name) == (tuple(value) if isinstance(value, list) else value)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"divisor": 0.0}, "divisor must be"),
        ({"std": [1.0, 0.0, 1.0]}, "std must be"),
        ({"mean": [1.0, 2.0]}, "mean must be"),
        ({"mean": []}, "mean must be"),
        ({"crop_ratio": 1.5}, "crop_ratio must be"),
        ({"resampler": "tensorflow", "interpolation": "bicubic"}, "interpolation must be"),
        ({"base": "torchvision", "channels": "grey"}, "mean must be"),
    ],
)
def test_values_that_arent_allowed(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        recipe_from_config(recipe(**fields))
    assert str(caught.value).startswith("recipe: ")


@pytest.mark.parametrize("fields", [{"size": [0, 224]}, {"resize_to": -1}, {"resize_to": 10**9}])
def test_sizes_that_no_photo_has(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(fields))):
        recipe(**fields)


def test_an_unknown_name_with_a_suggestion() -> None:
    with pytest.raises(DataError, match=r"'torchvison'.*did you mean 'torchvision'") as caught:
        recipe_from_config(recipe(base="torchvison"))
    assert caught.value.exit_code == ExitCode.USAGE


@pytest.mark.parametrize("name", MODELS)
def test_models_of_the_zoo_have_their_own(name: str) -> None:
    assert default(zoo=name) == (MODELS[name].recipe, True)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        ("MobileNet", "keras:tf"),
        ("MobileNetV2", "keras:tf"),
        ("InceptionV3", "keras:tf"),
        ("InceptionResNetV2", "keras:tf"),
        ("Xception", "keras:tf"),
        ("NASNetMobile", "keras:tf"),
        ("ResNet50V2", "keras:tf"),
        ("ResNet152V2", "keras:tf"),
        ("ResNet50", "keras:caffe"),
        ("ResNet152", "keras:caffe"),
        ("VGG16", "keras:caffe"),
        ("DenseNet121", "keras:torch"),
        ("MobileNetV3Small", "raw"),
        ("MobileNetV3Large", "raw"),
        ("EfficientNetB0", "raw"),
        ("EfficientNetV2B0", "raw"),
        ("ConvNeXtTiny", "raw"),
    ],
)
@pytest.mark.parametrize("module", ["keras.applications", "keras.applications.some_module"])
def test_keras_applications_have_their_family_s(module: str, function: str, name: str) -> None:
    assert default(factory=f"{module}:{function}") == (name, True)


def test_torchvision_has_its_own() -> None:
    assert default(factory="torchvision.models:mobilenet_v2") == ("torchvision", True)


@pytest.mark.parametrize(
    "origin",
    [
        {"path": "net.onnx"},
        {"path": "torchvision.onnx"},
        {"factory": "my.models:MobileNetV2"},
        {"factory": "keras.applications:Unheard"},
        {"zoo": "unheard"},
    ],
)
def test_of_all_others_nobody_knows(origin: dict[str, str]) -> None:
    assert default(**origin) == ("raw", False)
