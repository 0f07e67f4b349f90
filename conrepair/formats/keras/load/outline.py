"""Keras: layers of the classes that the file names, and which of them nobody here has."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import h5py
import keras
import numpy as np

from conrepair.formats.models.model import Description, Model
from conrepair.formats.models.outline import Outline, lacking
from conrepair.ground.data.tensor_spec import TensorSpec, shape_of
from conrepair.ground.runtime.files.archive import is_archive, opened_archive


def outline(model: Model) -> Outline:
    """See `conrepair.formats.models.outline.outline`."""
    config, weights = _archive(Path(model.path)) if is_archive(Path(model.path)) else _legacy(Path(model.path))
    layers = list(_layers(config))
    inputs = tuple(_spec(item["config"]) for item in layers if item["class_name"] == "InputLayer")
    operators = (item["class_name"].rpartition(">")[2] for item in layers)
    unknown = [str(item.get("registered_name") or item["class_name"]) for item in layers if not _is_known(item)]
    words = (
        "the layers of the classes {} are code that isn't in the file: no such class is registered here; save a "
        "model of Keras' own layers, or export a SavedModel (`Model.export`)"
    )
    description = Description.counted(operators, weights, format="Keras", inputs=inputs, outputs=())
    return Outline(description, lacking(unknown, words))


def _archive(path: Path) -> tuple[Any, Counter[str]]:
    """Of a .keras file: the configuration, and numbers of weights by dtype."""
    with opened_archive(path) as archive:
        config = json.loads(archive.read_text("config.json"))
        with h5py.File(io.BytesIO(archive.read("model.weights.h5")), "r") as file:
            return config, _weights([group for name, group in file.items() if name != "optimizer"])


def _legacy(path: Path) -> tuple[Any, Counter[str]]:
    """Of an .h5 file."""
    with h5py.File(path, "r") as file:
        return json.loads(file.attrs["model_config"]), _weights([file["model_weights"]])


def _weights(groups: list[Any]) -> Counter[str]:
    found: Counter[str] = Counter()

    def visit(_: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            found[np.dtype(item.dtype).name] += int(item.size)

    for group in groups:
        if isinstance(group, h5py.Group):
            group.visititems(visit)
    return found


def _layers(config: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Those of a model's configuration, nested models' included."""
    inner = config.get("config")
    nested = inner.get("layers") if isinstance(inner, Mapping) else inner if isinstance(inner, list) else None
    if nested is None:
        yield config
        return
    for item in nested:
        yield from _layers(item)


def _is_known(item: Mapping[str, Any]) -> bool:
    name = item["class_name"]
    custom = item.get("registered_name") or name
    return hasattr(keras.layers, name) or keras.saving.get_registered_object(custom) is not None


def _spec(config: Mapping[str, Any]) -> TensorSpec:
    sizes = config.get("batch_shape") or config.get("batch_input_shape") or []
    dtype = config.get("dtype") or "float32"
    return TensorSpec(
        str(config.get("name", "input")),
        shape_of(sizes),
        dtype if isinstance(dtype, str) else str(dtype.get("config", {}).get("name", "float32")),
    )
