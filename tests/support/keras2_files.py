"""Files as Keras 2 writes them.

`keras2.json` has, of networks that tf_keras 2.21 (Keras 2) made and ran: their configurations word for word, names of
weights with their shapes and seeds, and what they answered.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import h5py
import numpy as np

NETWORKS: dict[str, Any] = json.loads((Path(__file__).parent / "keras2.json").read_text(encoding="utf-8"))


def write(name: str, path: Path, config: Any = None) -> Path:
    """Write a network's file, with another configuration than its own if that's given."""
    network = NETWORKS[name]
    with h5py.File(path, "w") as file:
        file.attrs["keras_version"], file.attrs["backend"] = "2.21.0", "tensorflow"
        file.attrs["model_config"] = json.dumps(config or network["config"])
        group = file.create_group("model_weights")
        group.attrs["layer_names"] = [layer.encode() for layer in network["weights"]]
        for layer, weights in network["weights"].items():
            inner = group.create_group(layer)
            inner.attrs["weight_names"] = [weight.encode() for weight in weights]
            for weight, (shape, seed) in weights.items():
                inner.create_dataset(weight, data=_numbers(weight, shape, seed))
    return path


def write_archive(name: str, path: Path, more: tuple[dict[str, Any], ...] = ()) -> Path:
    """Write a network's file in the form of TensorFlow 2.13 to 2.15, maybe with more layers."""
    network = NETWORKS[name]
    config = json.loads(json.dumps(network["config"]))
    kind = str(config["class_name"])
    config |= {"module": f"keras.src.engine.{kind.lower()}", "registered_name": kind}
    layers = config["config"]["layers"]
    layers.extend(more)
    for layer in layers:
        layer |= {"module": "keras.layers", "registered_name": None}
    weights, counts = io.BytesIO(), Counter[str]()
    with h5py.File(weights, "w") as file:
        for layer in layers:
            held = network["weights"].get(layer["config"]["name"], {})
            kind = re.sub("(?<=[a-z])(?=[A-Z])|(?<=.)(?=[A-Z][a-z])", "_", layer["class_name"]).lower()
            same, counts[kind] = counts[kind], counts[kind] + 1
            group = file.create_group(f"layers/{kind}{f'_{same}' if same else ''}/vars")
            for place, (weight, (shape, seed)) in enumerate(held.items()):
                group.create_dataset(str(place), data=_numbers(weight, shape, seed))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("metadata.json", json.dumps({"keras_version": "2.15.0"}))
        archive.writestr("config.json", json.dumps(config))
        archive.writestr("model.weights.h5", weights.getvalue())
    return path


def _numbers(weight: str, shape: list[int], seed: int) -> np.ndarray:
    numbers = np.random.default_rng(seed).uniform(-0.5, 0.5, shape)
    positive = "variance" in weight or "gamma" in weight
    return (abs(numbers) + 0.1 if positive else numbers).astype(np.float32)


def question(name: str) -> np.ndarray:
    """What the network was asked."""
    shape, dtype = NETWORKS[name]["input"]
    generator = np.random.default_rng(1)
    drawn = generator.integers(0, 20, shape) if "int" in dtype else generator.normal(size=shape)
    return drawn.astype(dtype)


def answers(name: str) -> np.ndarray:
    """What Keras 2 answered."""
    return np.array(NETWORKS[name]["answers"])
