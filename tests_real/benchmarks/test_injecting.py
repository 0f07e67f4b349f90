"""Faults that frameworks put in themselves: each changes answers, and its layers are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.common.changes import changes
from benchmarks.common.injecting.inject import OWN_FAULTS, OwnInjection, inject_by_framework
from benchmarks.common.making import FOLDED, OWN, convert, make
from benchmarks.common.target import Data, UnfitError
from conrepair.formats.models.model import Model
from conrepair.ground.runtime.typed import typed

_BASES = {"by-torch": OWN, "by-exporter": OWN, "by-protobuf": FOLDED, "by-keras": "keras", "by-tflite": "tflite"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Data]:
    """The perceptron's sides and data."""
    folder = tmp_path_factory.mktemp("perceptron")
    found = make(folder, model="perceptron", samples=4)
    sides = dict(found["sides"])
    for name, parent, converter in (("keras", FOLDED, "onnx-keras"), ("tflite", "keras", "keras-tflite")):
        place = folder / f"as {name}"
        place.mkdir()
        sides[name] = convert(place, side=sides[parent], converter=converter, options={})["side"]
    return sides, Data(found["data"])


def injected(made: tuple[dict[str, Any], Data], name: str, folder: Path, seed: int = 1) -> OwnInjection:
    sides, data = made
    side = sides[_BASES[OWN_FAULTS[name][0].name]]
    generator = np.random.default_rng(seed)
    return inject_by_framework(typed(Model, side["model"]), name, data.feeds(side, 2), generator, folder)


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("by-torch-slope", "3"),
        ("by-torch-activation-replaced", ""),
        ("by-exporter-elu-for-selu", "/1/Selu"),
        ("by-protobuf-slope-ignored", "/3/LeakyRelu"),
        ("by-keras-negative_slope", "3_LeakyRelu"),
        ("by-keras-two-filters-exchanged", ""),
        ("by-tflite-slope", "main_graph_1/LeakyRelu"),
        ("by-tflite-operator-replaced", ""),
    ],
)
def test_one_layer_differs(made: tuple[dict[str, Any], Data], name: str, layer: str, tmp_path: Path) -> None:
    found, again = (injected(made, name, tmp_path / place) for place in ("one", "two"))
    assert found.effect > 1e-4
    assert layer in found.target or not layer
    counted = changes(found.meant, found.model)
    assert counted.operators + counted.parameters in {1, 2}
    assert counted.layers <= found.target
    assert (found.words, found.target) == (again.words, again.target), "the seed decides"


def test_an_exporter_is_right_again_afterwards(made: tuple[dict[str, Any], Data], tmp_path: Path) -> None:
    wrong = injected(made, "by-exporter-hard-swish-as-relu", tmp_path / "one")
    other = injected(made, "by-exporter-leaky-relu-slope", tmp_path / "two")
    assert Path(wrong.meant.path).read_bytes() == Path(other.meant.path).read_bytes()
    assert other.target == {"/3/LeakyRelu"}


def test_no_place_is_another_thing_than_no_effect(made: tuple[dict[str, Any], Data], tmp_path: Path) -> None:
    for name in ("by-torch-gates-exchanged", "by-exporter-tanh-as-softsign", "by-keras-dilation"):
        with pytest.raises(UnfitError) as none:
            injected(made, name, tmp_path / name)
        assert none.value.status == "no place"


def test_names_say_whose_means_they_are() -> None:
    assert set(_BASES) == {means.name for means, _ in OWN_FAULTS.values()}
    assert all(name.startswith(f"{means.name}-") for name, (means, _) in OWN_FAULTS.items())
