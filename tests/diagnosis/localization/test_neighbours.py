"""Two layers in a row that are wrong are two faults; numbers that are all a little off are one, beside any other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from localizing import localize_networks
from onnx_networks import drawn, written
from rewritten_networks import opened

import conrepair
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.result import Localization
from conrepair.ground.graph.layer_graph import Array

Change = Callable[[dict[str, str], dict[str, Array]], None]
FEEDS = {"x": drawn(4, 3, 12, 12, seed=20)}
LINES = {
    "c1": "Conv <pads = [1, 1, 1, 1]> (x, w1, b1)",
    "r1": "Relu (c1)",
    "p1": "MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (r1)",
    "c2": "Conv <pads = [1, 1, 1, 1]> (p1, w2, b2)",
    "r2": "LeakyRelu <alpha = 0.1> (c2)",
    "c3": "Conv <pads = [1, 1, 1, 1]> (r2, w3, b3)",
    "r3": "Relu (c3)",
    "g": "GlobalAveragePool (r3)",
    "f": "Flatten (g)",
    "y": "MatMul (f, w4)",
}


def numbers() -> dict[str, Array]:
    sizes = {"w1": (8, 3, 3, 3), "w2": (8, 8, 3, 3), "w3": (8, 8, 3, 3), "w4": (8, 5)}
    found = {name: drawn(*size, seed=seed, scale=0.3) for seed, (name, size) in enumerate(sizes.items())}
    return found | {f"b{place}": drawn(8, seed=10 + place, scale=0.2) for place in (1, 2, 3)}


def network(path: Path, *changes: Change) -> Path:
    lines, weights = dict(LINES), numbers()
    for change in changes:
        change(lines, weights)
    body = "\n".join(f"{name} = {line}" for name, line in lines.items())
    return written(path, f"small (float[4, 3, 12, 12] x) => (float[4, 5] y) {{ {body} }}", weights)


def localized(folder: Path, *changes: Change) -> Localization:
    sides = [opened(network(folder / f"{place}.onnx", *made), FEEDS) for place, made in enumerate([(), changes])]
    return localize_networks(*sides, [(FEEDS, FEEDS)], folder / "work", Options()).result


def line(name: str, old: str, new: str) -> Change:
    return lambda lines, _: lines.update({name: lines[name].replace(old, new)})


def weights(name: str, change: Callable[[Array], Array]) -> Change:
    return lambda _, held: held.update({name: np.ascontiguousarray(change(held[name]), np.float32)})


def disturbed(amount: float) -> Change:
    def change(_: dict[str, str], held: dict[str, Array]) -> None:
        for seed, (name, array) in enumerate(held.items()):
            noise = np.random.default_rng(100 + seed).standard_normal(array.shape)
            held[name] = (array + amount * np.sqrt(np.mean(np.square(array))) * noise).astype(np.float32)

    return change


POOLING, RELU = line("p1", "MaxPool", "AveragePool"), line("r2", "LeakyRelu <alpha = 0.1>", "Identity")
NEIGHBOURS = {
    "pooling, permuted weights": (POOLING, weights("w2", lambda w: w[:, ::-1]), ("p1", "c2")),
    "pads, a lost activation": (
        line("c1", "[1, 1, 1, 1]", "[0, 0, 2, 2]"),
        line("r1", "Relu", "Identity"),
        ("c1", "r1"),
    ),
    "an activation, pooling": (line("r1", "Relu", "Elu"), POOLING, ("r1", "p1")),
    "a lost activation, scaled weights": (RELU, weights("w3", lambda w: 1.5 * w), ("r2", "c3")),
    "a slope, flipped weights": (line("r2", "0.1", "0.3"), weights("w3", lambda w: w[..., ::-1, ::-1]), ("r2", "c3")),
}


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_neighbouring_faults_are_both_told(name: str, tmp_path: Path) -> None:
    one, two, layers = NEIGHBOURS[name]
    faults = localized(tmp_path, one, two).faults
    assert len(faults) == 2
    assert all(any(f"`{layer}`" in fault.words for fault in faults) for layer in layers)


def test_a_repair_counts_both(tmp_path: Path) -> None:
    one, two, _ = NEIGHBOURS["pooling, permuted weights"]
    paths = [network(tmp_path / f"{place}.onnx", *made) for place, made in enumerate([(), (one, two)])]
    done = conrepair.repair(*paths, output=tmp_path / "repaired", samples=8, in_process=True)
    assert done.result is not None
    assert (done.result.places, done.mended, len(done.result.edits)) == (2, True, 2)


@pytest.mark.parametrize("amount", [0.002, 0.02])
def test_another_training_state_is_one_finding(amount: float, tmp_path: Path) -> None:
    [fault] = localized(tmp_path, disturbed(amount)).faults
    assert fault.words.startswith("weights of another training state (checkpoint): those of 4 of 4 layers are off by")
    assert set(fault.target_layers) == {"c1", "c2", "c3", "y"}


def test_what_else_is_wrong_is_named_beside_it(tmp_path: Path) -> None:
    first, second = localized(tmp_path, disturbed(0.002), line("r1", "Relu", "Identity")).faults
    assert first.words == "Relu `r1` of the original is missing in the converted model"
    assert second.words.startswith("weights of another training state")


def test_a_layer_that_is_much_further_off_is_named_by_itself(tmp_path: Path) -> None:
    other = weights("w2", lambda w: drawn(*w.shape, seed=40, scale=0.3))
    first, second = localized(tmp_path, disturbed(0.002), other).faults
    assert "weights (w2) of `c2` are off by" in first.words
    assert second.words.startswith("weights of another training state (checkpoint): those of 3 of 4 layers")


def test_one_layer_that_is_disturbed_is_no_other_training(tmp_path: Path) -> None:
    noise = 0.01 * drawn(8, 8, 3, 3, seed=30)
    [fault] = localized(tmp_path, weights("w2", lambda w: w + noise)).faults
    assert "weights (w2) of `c2` are off by" in fault.words
