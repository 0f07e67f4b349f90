"""Keras's mixed float16: what its own rounding explains isn't held against a target in float32."""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
import pytest
import small_models as small
import tensorflow as tf

import conrepair
from conrepair.formats.keras.load.framework import FRAMEWORK


def network(policy: str) -> keras.Model:
    image = keras.Input((8, 8, 3), name="image")
    hidden = image
    for place in range(2):
        hidden = keras.layers.Conv2D(6, 3, activation="relu", dtype=policy, name=f"conv{place}")(hidden)
    pooled = keras.layers.GlobalAveragePooling2D(dtype=policy, name="pool")(hidden)
    return keras.Model(image, keras.layers.Dense(5, name="last")(pooled))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source, a right TFLite file of float32, and one with a wrong weight."""
    folder = tmp_path_factory.mktemp("mixed")
    mixed, plain = network("mixed_float16"), network("float32")
    generator = np.random.default_rng(0)
    weights = [generator.normal(scale=0.3, size=item.shape).astype(np.float32) for item in mixed.weights]
    mixed.set_weights(weights)
    mixed.save(folder / "source.keras")
    mixed.export(folder / "saved", verbose=False)
    for name, factor in (("right", 1.0), ("wrong", 1.1)):
        plain.set_weights([weights[0] * np.float32(factor), *weights[1:]])
        (folder / f"{name}.tflite").write_bytes(tf.lite.TFLiteConverter.from_keras_model(plain).convert())
    return folder


def test_it_is_said_what_it_computes_in(folder: Path) -> None:
    about = FRAMEWORK.describe(small.model_of("keras", folder / "source.keras"))
    assert (about.precision, about.computes, set(about.weights)) == ("mixed float16", "float16", {"float32"})


@pytest.mark.parametrize(("target", "verdicts"), [("right", {"equivalent", "noise"}), ("wrong", {"faulty"})])
def test_targets_in_float32(target: str, verdicts: set[str], folder: Path) -> None:
    files = folder / "source.keras", folder / f"{target}.tflite"
    assert conrepair.compare(*files, in_process=True).verdict in verdicts
    found = conrepair.localize(*files, in_process=True)
    assert found.verdict in verdicts
    assert [fault.kind for fault in found.faults] == ["parameters"] * (target == "wrong")


def test_the_same_of_a_savedmodel(folder: Path) -> None:
    assert conrepair.inspect(folder / "saved", in_process=True).precision == "mixed float16"
    assert conrepair.compare(folder / "saved", folder / "right.tflite", in_process=True).verdict == "noise"
    assert conrepair.compare(folder / "saved", folder / "wrong.tflite", in_process=True).verdict == "faulty"


def test_a_format_without_its_kernels_gets_float32(folder: Path) -> None:
    made = conrepair.convert(folder / "source.keras", to="tflite", in_process=True, mend=False)
    assert made.exit_code == 0
    assert any("TFLite has no kernels of float16" in note for note in made.run.rows[-1].ran.artifact.provenance.notes)
