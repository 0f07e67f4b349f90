"""Networks that were quantized with samples of too small a range: one finding, fixed in their own format."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from crossed import slower

import conrepair

SAMPLES = np.random.default_rng(5).normal(size=(160, 12)).astype(np.float32)


def converted(path: Path, *, times: float, stored: str) -> Path:
    """A small network of Keras in eight bits, calibrated with samples of so many times the real range."""
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(3)
    network = keras.Sequential(
        [
            keras.layers.Input((12,)),
            keras.layers.Dense(24, activation="relu", name="first"),
            keras.layers.Dense(16, activation="relu", name="second"),
            keras.layers.Dense(6, name="last"),
        ]
    )
    network.save(path.with_suffix(".keras"))
    converter = tf.lite.TFLiteConverter.from_keras_model(network)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([times * row[None]] for row in SAMPLES[:64])
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = converter.inference_output_type = tf.dtypes.as_dtype(stored)
    path.write_bytes(converter.convert())
    return path


@pytest.mark.parametrize("stored", [*slower("float32"), "uint8"])
def test_too_small_a_range_is_one_finding_and_fixed(stored: str, tmp_path: Path) -> None:
    target = converted(tmp_path / "net.tflite", times=0.3, stored=stored)
    source = target.with_suffix(".keras")
    done = conrepair.repair(source, target, data=SAMPLES, seconds=60, advice=0, in_process=True)
    assert len(done.faults) == 1
    assert "calibrated on too small a range" in done.faults[0].words
    assert (done.result.found, len(done.result.after.faults), done.mended) == (1, 0, True)
    assert done.model is not None
    assert done.model.suffix == ".tflite"
    compared = [conrepair.compare(source, file, data=SAMPLES, in_process=True) for file in (target, done.model)]
    before, after = (item.row.comparison.outputs[0].error.relative_l2 for item in compared)
    assert after < min(0.1, before / 3)


def test_a_right_range_is_left_alone(tmp_path: Path) -> None:
    target = converted(tmp_path / "net.tflite", times=1.0, stored="float32")
    done = conrepair.repair(target.with_suffix(".keras"), target, data=SAMPLES, advice=0, in_process=True)
    assert (done.faults, done.model) == ((), None)
