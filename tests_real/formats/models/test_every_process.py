"""What goes in and out of a file is called, and ordered, the same in every process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import keras
import small_models as small
from keras import layers

from conrepair.formats.keras.load import framework as keras_files
from conrepair.formats.models.model import Model
from conrepair.formats.tensorflow.load import framework as tensorflow

_SCRIPT = """
import sys
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
import keras
keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
for path in sys.argv[1:]:
    kind = "keras" if path.endswith((".keras", ".h5")) else "tensorflow"
    loaded = framework(kind).load(Model(kind, path, ""))
    print([spec.name for spec in loaded.inputs + loaded.outputs])
"""


def test_what_goes_in_and_out_is_called_and_ordered_the_same(tmp_path: Path) -> None:
    """Of a sequential model, and of a saved one: TensorFlow itself reads a signature in another order each time."""
    network = keras.Sequential([layers.Dense(5), layers.Dense(2, name="last")])
    network.build((None, small.FEATURES))
    models = []
    for suffix in ("keras", "h5"):
        network.save(tmp_path / f"net.{suffix}")
        models.append(small.model_of("keras", tmp_path / f"net.{suffix}"))
    described = [keras_files.FRAMEWORK.describe(model) for model in models]
    assert all([spec.name for spec in about.outputs] == ["last"] for about in described)
    pair = str(small.save_tensorflow(small.tensorflow_pair(), tmp_path / "pair"))
    here = tensorflow.FRAMEWORK.load(Model("tensorflow", pair, ""))
    command = [sys.executable, "-c", _SCRIPT, *(model.path for model in models), pair]
    there = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-3:]
    assert there == [str([spec.name for spec in one.inputs + one.outputs]) for one in (*described, here)]
    assert there[-1] == "['context', 'scene', 'mixed', 'picture']"
