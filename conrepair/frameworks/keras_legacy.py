"""Keras 2's HDF5 files for Keras 3: what Keras 2 wrote of its layers and Keras 3 has no word for, and needs none.

Keras 3 refuses a layer's configuration for one key that it doesn't know, though Keras 2 wrote each option of a layer,
used or not, and how to compute beside what. A key is left out whose value says that the option isn't used (None,
False), or that changes no result; any other is Keras 3's to refuse.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import h5py
import keras

from conrepair.frameworks.detect import container
from conrepair.frameworks.keras_legacy_calls import with_calls

__all__ = ["readable_by_keras3"]

_CONFIG = "model_config"
_UNUSED = (None, False)
_WITHOUT_EFFECT: Mapping[str, tuple[Any, ...]] = {
    "groups": (1,),  # of depthwise and separable convolutions, which have none
    "fused": (True,),  # which kernel
    "trainable": (True,),
    "implementation": (0, 1, 2),
    "renorm_momentum": (0.99,),  # what `renorm` would take
    "virtual_batch_size": (0,),
}
_BY_CALLS = {"query_shape", "key_shape", "value_shape", "build_config"}  # calls say them
_OF_TRAINING = ("_initializer", "_regularizer", "_constraint")
_OF_MODELS = {"Functional", "Model", "Sequential"}
# Taken from keyword arguments, or before a layer is made.
_TAKEN = {"batch_input_shape", "batch_shape", "input_shape", "input_dim", "input_length", "layer", "cell", "alpha"}


@contextlib.contextmanager
def readable_by_keras3(path: Path) -> Iterator[Path]:
    """The file itself, or a copy that Keras 3 reads as what the file means; the copy is gone behind the block.

    Args:
        path: Of a model of Keras.
    """
    text = _configuration(path)
    if text is None:
        yield path
        return
    translated = _translated(json.loads(text))
    if translated == json.loads(text):
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        shutil.copyfile(path, copy)
        with h5py.File(copy, "r+") as file:
            file.attrs[_CONFIG] = json.dumps(translated)
        yield copy


def _configuration(path: Path) -> str | None:
    """What an HDF5 file says about its network; None for files of other kinds."""
    if container(path) == ".keras" or not h5py.is_hdf5(path):
        return None
    with h5py.File(path, "r") as file:
        text = file.attrs.get(_CONFIG)
    return text.decode("utf-8") if isinstance(text, bytes) else text


def _translated(value: Any) -> Any:
    """A configuration, and all that's inside it, in Keras 3's words."""
    if isinstance(value, list):
        return [_translated(item) for item in value]
    if not isinstance(value, dict):
        return value
    if _is_policy(value):
        return value["config"]["name"]
    found = {key: _translated(item) for key, item in value.items()}
    kind, config = found.get("class_name"), found.get("config")
    layer = getattr(keras.layers, kind, None) if isinstance(kind, str) and kind not in _OF_MODELS else None
    if isinstance(config, dict) and inspect.isclass(layer):
        found = {key: item for key, item in found.items() if key not in _BY_CALLS}
        found["config"] = _known(layer, config)
    return with_calls(found) if isinstance(found.get("inbound_nodes"), list) else found


def _is_policy(value: Mapping[str, Any]) -> bool:
    """Whether it's the type that a layer computes in, as an object: `dtype` takes the name."""
    config = value.get("config")
    return value.get("class_name") == "Policy" and isinstance(config, dict) and isinstance(config.get("name"), str)


def _known(layer: type, config: dict[str, Any]) -> dict[str, Any]:
    """A layer's configuration without what has no effect."""
    taken = _arguments(layer)
    return {key: value for key, value in config.items() if key in taken or not _says_nothing(key, value)}


def _says_nothing(key: str, value: Any) -> bool:
    if key in _BY_CALLS or key.endswith(_OF_TRAINING) or any(value is item for item in _UNUSED):
        return True
    return any(value == item and type(value) is type(item) for item in _WITHOUT_EFFECT.get(key, ()))


def _arguments(layer: type) -> set[str]:
    """The names of what a layer is made with, by itself and by the classes that it hands the others on to."""
    found = set(_TAKEN)
    for kind in inspect.getmro(layer):
        if "__init__" in vars(kind):
            parameters = inspect.signature(vars(kind)["__init__"]).parameters.values()
            found |= {item.name for item in parameters if item.kind is not item.VAR_KEYWORD}
            if not any(item.kind is item.VAR_KEYWORD for item in parameters):
                break
    return found
