"""What goes in and out of a file is called, and ordered, the same in every process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import keras
import small_models as small
from keras import layers

from conrepair.frameworks import keras as keras_files
from conrepair.frameworks import tensorflow
from conrepair.frameworks.model import Model


def test_names_of_a_sequential_model_are_the_same_in_every_process(tmp_path: Path) -> None:
    network = keras.Sequential([layers.Dense(5), layers.Dense(2, name="last")])
    network.build((None, small.FEATURES))
    models = []
    for suffix in ("keras", "h5"):
        network.save(tmp_path / f"net.{suffix}")
        models.append(small.model_of("keras", tmp_path / f"net.{suffix}"))
    described = [keras_files.FRAMEWORK.describe(model) for model in models]
    assert all([spec.name for spec in about.outputs] == ["last"] for about in described)
    script = (
        "import sys; from conrepair.frameworks.keras import FRAMEWORK; from conrepair.frameworks.model import Model; "
        "import keras; keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)]); "
        "loaded = [FRAMEWORK.load(Model('keras', path, '')) for path in sys.argv[1:]]; "
        "print(*([spec.name for spec in item.inputs + item.outputs] for item in loaded), sep='\\n')"
    )
    command = [sys.executable, "-c", script, *(model.path for model in models)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-2:] == [
        str([spec.name for spec in about.inputs + about.outputs]) for about in described
    ]


def test_the_order_of_a_saved_model_is_the_same_in_every_process(tmp_path: Path) -> None:
    """TensorFlow itself reads a signature in another order each time."""
    script = (
        "import sys; from conrepair.frameworks.tensorflow import FRAMEWORK; "
        "from conrepair.frameworks.model import Model; "
        "runnable = FRAMEWORK.load(Model('tensorflow', sys.argv[1], '')); "
        "print([spec.name for spec in runnable.inputs + runnable.outputs])"
    )
    path = str(small.save_tensorflow(small.tensorflow_pair(), tmp_path / "pair"))
    there = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, check=True).stdout
    here = tensorflow.FRAMEWORK.load(Model("tensorflow", path, ""))
    assert there.splitlines()[-1] == str([spec.name for spec in here.inputs + here.outputs])
    assert there.splitlines()[-1] == "['context', 'scene', 'mixed', 'picture']"
