"""HDF5 files as Keras 2 writes them.

`keras2.json` has, of networks that tf_keras 2.21 (Keras 2) made and ran: their configurations word for word, names of
weights with their shapes and seeds, and what they answered.
"""

from __future__ import annotations

import json
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
                numbers = np.random.default_rng(seed).uniform(-0.5, 0.5, shape)
                positive = "variance" in weight or "gamma" in weight
                inner.create_dataset(weight, data=(abs(numbers) + 0.1 if positive else numbers).astype(np.float32))
    return path


def question(name: str) -> np.ndarray:
    """What the network was asked."""
    shape, dtype = NETWORKS[name]["input"]
    generator = np.random.default_rng(1)
    drawn = generator.integers(0, 20, shape) if "int" in dtype else generator.normal(size=shape)
    return drawn.astype(dtype)


def answers(name: str) -> np.ndarray:
    """What Keras 2 answered."""
    return np.array(NETWORKS[name]["answers"])
