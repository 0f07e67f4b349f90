"""The search of recipes on a pretrained network and photos: which figures a person would get."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from conrepair.diagnosis.localization.recipes.feeds import RunTarget
from conrepair.diagnosis.localization.recipes.search import search_recipes
from conrepair.ground.data.pictures.named_recipes import RECIPES
from conrepair.ground.data.pictures.recipe import Recipe
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.zoo.catalog import zoo_model, zoo_photos

pytestmark = [pytest.mark.slow, pytest.mark.network]

SPEC = TensorSpec("pixels", ("batch", 3, 224, 224), "float32")
RIGHT = replace(RECIPES["torchvision"], size=(224, 224))
WRONG: dict[str, Recipe] = {
    "bgr": replace(RIGHT, channels="bgr"),
    "0 to 255": replace(RIGHT, divisor=1.0, mean=(0.0,), std=(1.0,)),
    "divided twice": replace(RIGHT, divisor=65025.0),
    "resized to 232": replace(RIGHT, resize_to=232),
    "several": replace(RIGHT, fit="stretch", interpolation="bicubic", channels="bgr", mean=(0.0,), std=(1.0,)),
    **{name: RECIPES[name] for name in ("keras:tf", "keras:caffe", "tflite", "efficientnet-lite")},
}


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Threads that wait for each other make small batches many times slower on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def mobilenet() -> RunTarget:
    from conrepair.ground.runtime.torchvision import import_torchvision

    network = import_torchvision().models.mobilenet_v2()
    network.load_state_dict(torch.load(zoo_model("mobilenet_v2")[1], weights_only=True))
    network.eval()

    def run(feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        with torch.no_grad():
            return {"scores": network(torch.from_numpy(np.ascontiguousarray(feeds["pixels"]))).numpy()}

    return run


@pytest.fixture(scope="module")
def photos() -> list[Path]:
    return [path for entry, folder in zoo_photos("photos") for path in sorted(folder.glob(f"{entry.prefix}*"))[:4]]


@pytest.fixture(scope="module")
def expected(mobilenet: RunTarget, photos: list[Path]) -> Mapping[str, np.ndarray]:
    """Through torchvision's own transforms."""
    from torchvision.models import MobileNet_V2_Weights
    from torchvision.transforms._presets import ImageClassification

    from conrepair.ground.data.pictures.decode import decode_picture

    assert MobileNet_V2_Weights.IMAGENET1K_V1.transforms.func is ImageClassification
    transform = MobileNet_V2_Weights.IMAGENET1K_V1.transforms()
    return mobilenet({"pixels": np.stack([transform(decode_picture(path)).numpy() for path in photos])})


@pytest.mark.parametrize("name", WRONG)
def test_right_recipe_is_found(
    name: str, mobilenet: RunTarget, photos: list[Path], expected: Mapping[str, np.ndarray]
) -> None:
    search = search_recipes(mobilenet, expected, photos, SPEC, start=WRONG[name])
    assert search.found, search.evidence
    assert search.best.recipe.spatial == RIGHT.spatial
    assert search.best.error < 1e-5
    assert search.start.error > 0.1
    assert search.runs < 300
