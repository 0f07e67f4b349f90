"""The search of recipes: a small network is fed wrongly, and answers tell how it should have been."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from conrepair.diagnosis.localization.recipes.feeds import Budget, PhotoFeeds, PhotoPixels
from conrepair.diagnosis.localization.recipes.search import search_recipes
from conrepair.ground.data.pictures.named_recipes import RECIPES
from conrepair.ground.data.pictures.recipe import Recipe
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import DataError
from conrepair.ground.runtime.words import percent

SIZE = 64
SPEC = TensorSpec("pixels", ("batch", 3, SIZE, SIZE), "float32")
TORCHVISION = replace(RECIPES["torchvision"], size=(SIZE, SIZE))


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 5, stride=2),
        torch.nn.ReLU(),
        torch.nn.Conv2d(16, 32, 3, stride=2),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(4),
        torch.nn.Flatten(),
        torch.nn.Linear(512, 10),
    ).eval()


class Target:
    """A network that counts its runs."""

    def __init__(self, module: torch.nn.Module, change: Any = lambda x: x, fixed: int | None = None) -> None:
        self.module, self.change, self.fixed, self.runs = module, change, fixed, 0

    def __call__(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        self.runs += 1
        pixels = feeds["pixels"]
        assert self.fixed is None or len(pixels) == self.fixed
        with torch.no_grad():
            return {"scores": self.module(torch.from_numpy(self.change(pixels).astype("f4").copy())).numpy()}


def photo(seed: int, height: int, width: int) -> np.ndarray:
    """Blobs of colour with fine texture, so that every part of a recipe shows."""
    generator = np.random.default_rng(seed)
    coarse = Image.fromarray(generator.integers(0, 256, (7, 9, 3), np.uint8)).resize((width, height))
    return np.clip(np.asarray(coarse) + generator.normal(0, 40, (height, width, 3)), 0, 255).astype(np.uint8)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Threads cost more than they bring in networks this small."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def photos() -> list[np.ndarray]:
    return [photo(seed, *size) for seed, size in enumerate([(150, 220), (200, 130), (120, 120), (96, 180)])]


def torchvisions_own(pixels: np.ndarray) -> np.ndarray:
    """As torchvision's transforms do it, written down by hand with Pillow."""
    picture = Image.fromarray(pixels)
    short = round(SIZE / 0.875)
    scale = short / min(picture.size)
    width, height = (short if side == min(picture.size) else int(side * scale) for side in picture.size)
    picture = picture.resize((width, height), Image.Resampling.BILINEAR)
    left, top = round((width - SIZE) / 2), round((height - SIZE) / 2)
    values = np.asarray(picture.crop((left, top, left + SIZE, top + SIZE)), np.float32) / 255
    values = (values - np.float32([0.485, 0.456, 0.406])) / np.float32([0.229, 0.224, 0.225])
    return values.transpose(2, 0, 1)


@pytest.fixture(scope="module")
def expected(photos: list[np.ndarray]) -> dict[str, np.ndarray]:
    return Target(network())({"pixels": np.stack([torchvisions_own(pixels) for pixels in photos])})


WRONG = {
    "bgr": replace(TORCHVISION, channels="bgr"),
    "0 to 255": replace(TORCHVISION, divisor=1.0, mean=(0.0,), std=(1.0,)),
    "-1 to 1": replace(TORCHVISION, divisor=127.5, mean=(1.0,), std=(1.0,)),
    "divided twice": replace(TORCHVISION, divisor=65025.0),
    "stretched": replace(TORCHVISION, fit="stretch"),
    "another crop": replace(TORCHVISION, resize_to=SIZE),
    "bicubic": replace(TORCHVISION, interpolation="bicubic"),
    "keras:tf": RECIPES["keras:tf"],
    "keras:caffe": RECIPES["keras:caffe"],
    "tflite": RECIPES["tflite"],
}


@pytest.mark.parametrize("name", WRONG)
def test_right_recipe_is_found(name: str, photos: list[np.ndarray], expected: dict[str, np.ndarray]) -> None:
    target = Target(network())
    search = search_recipes(target, expected, photos, SPEC, start=WRONG[name])
    assert search.found, search.evidence
    assert search.complete
    best = search.best
    assert best.recipe.spatial == TORCHVISION.spatial
    assert best.recipe.channels == "rgb"
    assert best.error < 1e-5
    assert (best.agreement, best.photos) == (1.0, len(photos))
    assert search.runs == target.runs < 400


def test_evidence_names_the_change(photos: list[np.ndarray], expected: dict[str, np.ndarray]) -> None:
    search = search_recipes(Target(network()), expected, photos, SPEC, start=WRONG["bgr"])
    assert search.changes == ("RGB instead of BGR",)
    assert search.start.error > 1e-2
    assert search.evidence.startswith(f"RGB instead of BGR: relative error {percent(search.start.error)} -> ")
    assert "on 4 photos" in search.evidence


def test_right_recipe_is_confirmed_by_one_try(photos: list[np.ndarray], expected: dict[str, np.ndarray]) -> None:
    search = search_recipes(Target(network()), expected, photos, SPEC, start=TORCHVISION)
    assert search.found
    assert search.changes == ()
    assert "the given recipe is the best of 1" in search.evidence
    assert len(search.candidates) == 1


UNUSUAL = {
    "lanczos bgr -1 to 1": Recipe("a", (SIZE, SIZE), "crop", 66, 0.875, "lanczos", "pillow", "bgr", 127.5, (1.0,)),
    "not averaging": Recipe("b", (SIZE, SIZE), "stretch", None, 0.875, "bilinear", "tensorflow", "rgb", 255.0),
    "padded": Recipe("c", (SIZE, SIZE), "pad", interpolation="bicubic", divisor=255.0),
    "caffe, whole side": replace(RECIPES["keras:caffe"], size=(SIZE, SIZE), fit="crop", crop_ratio=1.0),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_right_recipe_may_be_unusual(name: str, photos: list[np.ndarray]) -> None:
    feeds = PhotoFeeds(Target(network()), PhotoPixels(photos), SPEC, None)
    answers = feeds.outputs(feeds.array(UNUSUAL[name], "as it is", range(len(photos))))
    search = search_recipes(Target(network()), answers, photos, SPEC, start=TORCHVISION)
    assert search.found, search.evidence
    assert search.best.recipe.spatial == UNUSUAL[name].spatial


MEAN, STD = (np.float32(values).reshape(3, 1, 1) for values in ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]))
FAULTS = {
    "swaps red and blue": lambda x: x[:, ::-1],
    "divides by 255 again": lambda x: x / np.float32(255),
    "doubles and subtracts one": lambda x: 2 * x - 1,
    "normalises again": lambda x: (x - MEAN) / STD,
    "subtracts some mean": lambda x: x - np.float32(0.4321),
    "normalises by numbers of its own": lambda x: (x - MEAN[::-1] * np.float32(1.1)) / (STD * np.float32(3)),
    "exchanges height and width": lambda x: x.swapaxes(2, 3),
    "reshapes for a transpose": lambda x: x.transpose(0, 2, 3, 1).reshape(x.shape),
    "turns the picture upside down": lambda x: x[:, :, ::-1],
}


@pytest.mark.parametrize("name", FAULTS)
def test_fault_within_the_target_is_undone(
    name: str, photos: list[np.ndarray], expected: dict[str, np.ndarray]
) -> None:
    target = Target(network(), FAULTS[name])
    search = search_recipes(target, expected, photos, SPEC, start=TORCHVISION)
    assert search.found, search.evidence
    assert search.best.error <= 1e-4
    assert search.changes


def test_target_fed_by_a_reshape(photos: list[np.ndarray], expected: dict[str, np.ndarray]) -> None:
    # The exporter expects that reshape: the target undoes it.
    target = Target(network(), lambda x: x.reshape(len(x), SIZE, SIZE, 3).transpose(0, 3, 1, 2))
    search = search_recipes(target, expected, photos, SPEC, start=TORCHVISION)
    assert search.found, search.evidence
    assert search.best.arrangement == "reshaped instead of transposed"


def flipped(module: torch.nn.Module) -> None:
    module[2].weight.copy_(module[2].weight.flip(0))


def disturbed(module: torch.nn.Module) -> None:
    module[2].weight.add_(0.1 * module[2].weight.std() * torch.randn(module[2].weight.shape))


def without_bias(module: torch.nn.Module) -> None:
    module[2].bias.zero_()


def scaled(module: torch.nn.Module) -> None:
    module[6].weight.mul_(1.2)


@pytest.mark.parametrize("fault", [flipped, disturbed, without_bias, scaled])
def test_wrong_layers_are_not_explained_by_a_recipe(
    fault: Callable[[torch.nn.Module], None], photos: list[np.ndarray], expected: dict[str, np.ndarray]
) -> None:
    module = network()
    with torch.no_grad():
        fault(module)
    search = search_recipes(Target(module), expected, photos, SPEC, start=TORCHVISION)
    assert not search.found, search.evidence
    assert search.best.error > 1e-3


def test_allowed_rounding_does_not_end_the_search(photos: list[np.ndarray], expected: dict[str, np.ndarray]) -> None:
    """Of a quantized target's recipes the best is wanted, not the first that is good enough."""
    start = replace(TORCHVISION, channels="bgr", interpolation="bicubic")
    search = search_recipes(Target(network()), expected, photos, SPEC, start=start, rounding=0.3)
    assert search.found
    assert search.best.error < 1e-5


def test_batch_may_be_fixed(photos: list[np.ndarray], expected: dict[str, np.ndarray]) -> None:
    spec = TensorSpec("pixels", (3, 3, SIZE, SIZE), "float32")
    search = search_recipes(Target(network(), fixed=3), expected, photos, spec, start=WRONG["bgr"])
    assert search.found


def test_channels_last(photos: list[np.ndarray], expected: dict[str, np.ndarray]) -> None:
    spec = TensorSpec("pixels", ("n", SIZE, SIZE, 3), "float32")
    target = Target(network(), lambda x: x.transpose(0, 3, 1, 2))
    search = search_recipes(target, expected, photos, spec, start=RECIPES["keras:caffe"])
    assert search.found
    assert search.best.recipe.spatial == TORCHVISION.spatial


def test_softmax_on_one_side_is_no_hindrance(photos: list[np.ndarray], expected: dict[str, np.ndarray]) -> None:
    target = Target(torch.nn.Sequential(network(), torch.nn.Softmax(1)))
    assert search_recipes(target, expected, photos, SPEC, start=WRONG["0 to 255"]).found


def test_photos_that_tell_nothing_are_seen_through(expected: dict[str, np.ndarray]) -> None:
    """The first eight photos are square: whether one is stretched or cropped shows only on the last."""
    square = [photo(seed, 100, 100) for seed in range(8)]
    oblong = photo(9, 90, 170)
    recipe = replace(TORCHVISION, crop_ratio=1.0)
    both = [*square, oblong]
    pixels = np.stack([stretched_or_cropped(item) for item in both])
    answers = Target(network())({"pixels": pixels})
    search = search_recipes(
        Target(network()), answers, both, SPEC, start=replace(recipe, fit="stretch", channels="bgr")
    )
    assert search.found, search.evidence
    assert search.best.recipe.spatial == recipe.spatial


def stretched_or_cropped(pixels: np.ndarray) -> np.ndarray:
    picture = Image.fromarray(pixels)
    width = int(SIZE * picture.width / picture.height)
    picture = picture.resize((width, SIZE), Image.Resampling.BILINEAR)
    left = round((width - SIZE) / 2)
    values = np.asarray(picture.crop((left, 0, left + SIZE, SIZE)), np.float32) / 255
    return (values.transpose(2, 0, 1) - MEAN) / STD


def test_budget_is_kept(photos: list[np.ndarray], expected: dict[str, np.ndarray]) -> None:
    search = search_recipes(
        Target(network()), expected, photos, SPEC, start=RECIPES["keras:caffe"], budget=Budget(runs=10)
    )
    assert not search.complete
    assert search.runs <= 10 + 6  # the confirmation of five, and of the start


def test_files_are_taken_too(tmp_path: Path, photos: list[np.ndarray], expected: dict[str, np.ndarray]) -> None:
    files = []
    for index, pixels in enumerate(photos):
        files.append(tmp_path / f"{index}.png")
        Image.fromarray(pixels).save(files[-1])
    assert search_recipes(Target(network()), expected, files, SPEC, start=WRONG["bgr"]).found


def test_what_cannot_be_searched_is_said(photos: list[np.ndarray], expected: dict[str, np.ndarray]) -> None:
    target = Target(network())
    with pytest.raises(DataError, match="3 photos"):
        search_recipes(target, expected, photos[:3], SPEC, start=TORCHVISION)
    with pytest.raises(DataError, match="takes no photos"):
        search_recipes(target, expected, photos, TensorSpec("pixels", ("batch", 12), "float32"), start=TORCHVISION)
    open_sizes = TensorSpec("pixels", ("batch", 3, "h", "w"), "float32")
    with pytest.raises(DataError, match="size of input"):
        search_recipes(target, expected, photos, open_sizes, start=replace(TORCHVISION, size=None))
    with pytest.raises(DataError, match="can't be compared"):
        search_recipes(target, {"other": np.zeros((4, 7, 7))}, photos, SPEC, start=TORCHVISION)
