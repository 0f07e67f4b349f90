"""Keras: layers and functions that a configuration names, beyond those that compute."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conrepair.frameworks.model import Model
from conrepair.frameworks.screening.admission import Finding, shown

__all__ = ["findings"]

_HOLDING = {"JaxLayer", "FlaxLayer"}  # functions, as layers do that Keras refuses itself
_COMPUTING = {
    "activations", "constraints", "dtype_policies", "initializers", "layers", "losses", "metrics", "mixed_precision",
    "ops", "optimizers", "quantizers", "random", "regularizers", "src", "tree",
}  # fmt: skip
_MODELS = {"Functional", "Model", "Sequential"}
_OWN = {"DTypePolicy", "KerasTensor", "Variable"}
_LARGEST = 1 << 28


def findings(model: Model) -> Iterator[Finding]:
    """See `conrepair.frameworks.screening.admission.admit`. Lambda layers are refused by Keras itself."""
    try:
        config = _config(Path(model.path))
    except (OSError, ValueError, KeyError, RecursionError, zipfile.BadZipFile, NotImplementedError, EOFError):
        return  # it's damaged, as Keras says
    pending = [config]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            pending += value.values()
            yield from _of_object(value.get("class_name"), value.get("module"), value.get("config"))
        elif isinstance(value, list):
            pending += value


def _config(path: Path) -> Any:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            info = archive.getinfo("config.json")
            if info.file_size > _LARGEST:
                raise ValueError("larger than any configuration")
            return json.loads(archive.read(info))
    import h5py

    with h5py.File(path, "r") as file:
        return json.loads(file.attrs["model_config"])


def _of_object(name: Any, module: Any, config: Any) -> Iterator[Finding]:
    if not isinstance(name, str):
        return
    last = name.rpartition(">")[2]
    if last in _HOLDING:
        yield Finding(f"a layer {last}, which holds a function", confinable=True)
    if not isinstance(module, str) or not module:
        return
    package, _, rest = module.partition(".")
    what = config if last == "function" and isinstance(config, str) else last
    if package in {"keras", "keras_hub", "keras_cv", "keras_nlp"}:
        part = rest.partition(".")[0]
        if part not in _COMPUTING and what not in (_MODELS if part else _MODELS | _OWN):
            yield Finding(f"{shown(f'{module}.{what}')} among its layers", confinable=True)
