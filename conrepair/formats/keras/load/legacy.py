"""Keras 2's files for Keras 3: what Keras 2 wrote of its layers and Keras 3 has no word for, and needs none.

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
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import h5py
import keras

from conrepair.formats.keras.load.legacy_calls import with_calls, with_own_calls
from conrepair.formats.models.detect import container
from conrepair.ground.runtime.errors import ModelLoadError

_CONFIG = "model_config"
_ARCHIVED, _ABOUT = "config.json", "metadata.json"
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
_OF_MODELS = {
    "Functional": "keras.src.models.functional",
    "Model": "keras.src.models.model",
    "Sequential": "keras.src.models.sequential",
}
_FUNCTIONS = ("function", "output_shape")  # of a Lambda layer
_OF_FUNCTIONS = {"function_type", "module", "output_shape_type", "output_shape_module"}  # what kind the functions are
# Taken from keyword arguments, or before a layer is made.
_SHAPE = "batch_input_shape"
_TAKEN = {_SHAPE, "batch_shape", "input_shape", "input_dim", "input_length", "layer", "cell", "alpha"}


@contextlib.contextmanager
def readable_by_keras3(path: Path) -> Iterator[Path]:
    """The file itself, or a copy that Keras 3 reads as what the file means; the copy is gone behind the block.

    Args:
        path: Of a model of Keras.

    Raises:
        ModelLoadError: if it holds no model.
    """
    text, version = _configuration(path)
    if text is None and container(path) == ".h5":
        raise ModelLoadError(
            f"{path} holds weights without a network, as `save_weights` writes them, or nothing of Keras's. Load "
            "them into their network (`load_weights`), and save that (`model.save`)."
        )
    told = None if text is None or version.startswith("3.") else json.loads(text)
    translated = _translated(told)
    if translated == told:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        _write(path, copy, json.dumps(translated))
        yield copy


def way_from_keras2(path: Path) -> str:
    """What to do about a file that Keras 3 refuses: "" where Keras 2 didn't write it."""
    try:
        _, version = _configuration(path)
    except (OSError, KeyError, ValueError, zipfile.BadZipFile):  # it's damaged, which is said elsewhere
        return ""
    if not version.startswith("2."):
        return ""
    return (
        f"Keras {version} wrote it, and Keras 3 doesn't take all of it. Where Keras 2 loads it (the package "
        "tf_keras), write it as a SavedModel (`model.export(FOLDER)`), and give that"
    )


def _configuration(path: Path) -> tuple[str | None, str]:
    """What a file of Keras 2 says about its network, None for others; and which version of Keras wrote it."""
    if container(path) == ".keras":
        with zipfile.ZipFile(path) as archive:
            about = json.loads(archive.read(_ABOUT)) if _ABOUT in archive.namelist() else {}
            version = str(about.get("keras_version", ""))
            return (archive.read(_ARCHIVED).decode() if version.startswith("2.") else None), version
    if not h5py.is_hdf5(path):
        return None, ""
    with h5py.File(path, "r") as file:
        return _text(file.attrs.get(_CONFIG)), _text(file.attrs.get("keras_version")) or ""


def _text(value: Any) -> str | None:
    return value.decode("utf-8") if isinstance(value, bytes) else value


def _write(path: Path, copy: Path, configuration: str) -> None:
    """The same file with another configuration."""
    if container(path) != ".keras":
        shutil.copyfile(path, copy)
        with h5py.File(copy, "r+") as file:
            file.attrs[_CONFIG] = configuration
        return
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(copy, "w") as new:
        for name in old.namelist():
            new.writestr(name, configuration if name == _ARCHIVED else old.read(name))


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
        if "module" in found:  # of an archive, whose networks begin with an InputLayer
            found["module"] = "keras.layers"
            said = set() if layer is keras.layers.InputLayer else {_SHAPE}
            found["config"] = {key: item for key, item in found["config"].items() if key not in said}
    elif kind in _OF_MODELS:
        found |= {"module": _OF_MODELS[str(kind)]} if "module" in found else {}
        found["config"] = with_own_calls(config)
    return with_calls(found) if isinstance(found.get("inbound_nodes"), list) else found


def _is_policy(value: Mapping[str, Any]) -> bool:
    """Whether it's the type that a layer computes in, as an object: `dtype` takes the name."""
    config = value.get("config")
    return value.get("class_name") == "Policy" and isinstance(config, dict) and isinstance(config.get("name"), str)


def _known(layer: type, config: dict[str, Any]) -> dict[str, Any]:
    """A layer's configuration without what has no effect."""
    taken = _arguments(layer)
    known = {key: value for key, value in config.items() if key in taken or not _says_nothing(key, value)}
    if layer is keras.layers.BatchNormalization and isinstance(known.get("axis"), list):
        [known["axis"]] = known["axis"]
    if layer is not keras.layers.Lambda:
        return known
    functions = {key: _function(value) for key, value in known.items() if key in _FUNCTIONS}
    return {key: value for key, value in known.items() if key not in _OF_FUNCTIONS} | functions


def _function(value: Any) -> Any:
    """A function of a Lambda layer: the code, its defaults and what's bound in it; as it is where it's a name."""
    if not isinstance(value, list) or len(value) != 3 or not isinstance(value[0], str):
        return value
    return {"class_name": "__lambda__", "config": dict(zip(("code", "defaults", "closure"), value, strict=True))}


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
