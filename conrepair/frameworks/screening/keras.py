"""Keras: layers and functions that a configuration names, beyond those that compute."""

from __future__ import annotations

import io
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py

from conrepair.frameworks.detect import container
from conrepair.frameworks.model import Model
from conrepair.frameworks.screening.admission import UnusualContent, shown
from conrepair.frameworks.screening.hdf5 import check_hdf5, is_hdf5
from conrepair.runtime.archive import Archive, ArchiveError, is_archive, opened_archive, parsed_json

__all__ = ["seal"]

_CONFIG, _LEGACY, _WHAT = "config.json", "model_config", "its configuration"
_MEMBER = re.compile(r"config\.json|metadata\.json|model(_\d+)?\.weights\.(h5|npz|json)|assets/.+")
_HOLDING = {"JaxLayer", "FlaxLayer"}  # functions, as layers do that Keras refuses itself
_COMPUTING = {
    "activations", "constraints", "dtype_policies", "initializers", "layers", "losses", "metrics", "mixed_precision",
    "ops", "optimizers", "quantizers", "random", "regularizers", "src", "tree",
}  # fmt: skip
_MODELS = {"Functional", "Model", "Sequential"}
_OWN = {"DTypePolicy", "KerasTensor", "Variable"}


def seal(model: Model, place: Path) -> Iterator[UnusualContent]:
    """See `conrepair.frameworks.screening.admission.admitted`. Lambda layers are refused by Keras itself."""
    path = Path(model.path)
    if container(path) == ".keras":
        with opened_archive(path) as archive:
            text = archive.read_text(_CONFIG) if _CONFIG in archive.sizes else "{}"
            yield from _of_config(parsed_json(text, _WHAT))
            kept = [name for name in archive.sizes if _MEMBER.fullmatch(name)]
            for name in kept:
                _check_weights(archive, name)
            archive.copy(place, dict.fromkeys(kept))
        return
    shutil.copyfile(path, place)
    if is_archive(place) or not is_hdf5(place):
        raise ArchiveError("it isn't HDF5, or not only")
    try:
        with h5py.File(place, "r") as file:
            check_hdf5(file, place.stat().st_size)
            text = file.attrs.get(_LEGACY, "{}")
    except (OSError, ValueError, KeyError, RuntimeError, TypeError) as error:
        if isinstance(error, ArchiveError):
            raise
        raise ArchiveError(f"it's damaged: {error}") from error
    yield from _of_config(parsed_json(text, _WHAT))


def _check_weights(archive: Archive, name: str) -> None:
    if name.endswith(".npz"):
        Archive(io.BytesIO(archive.read(name)))
    elif name.endswith(".h5"):
        try:
            with h5py.File(io.BytesIO(archive.read(name)), "r") as file:
                check_hdf5(file, archive.sizes[name])
        except (OSError, KeyError, RuntimeError, TypeError) as error:
            raise ArchiveError(f"{name} in it is damaged: {error}") from error


def _of_config(config: Any) -> Iterator[UnusualContent]:
    pending = [config]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            pending += value.values()
            yield from _of_object(value.get("class_name"), value.get("module"), value.get("config"))
        elif isinstance(value, list):
            pending += value


def _of_object(name: Any, module: Any, config: Any) -> Iterator[UnusualContent]:
    if not isinstance(name, str):
        return
    last = name.rpartition(">")[2]
    if last in _HOLDING:
        yield UnusualContent(f"a layer {last}, which holds a function", confinable=True)
    if not isinstance(module, str) or not module:
        return
    package, _, rest = module.partition(".")
    what = config if last == "function" and isinstance(config, str) else last
    if package in {"keras", "keras_hub", "keras_cv", "keras_nlp"}:
        part = rest.partition(".")[0]
        if part not in _COMPUTING and what not in (_MODELS if part else _MODELS | _OWN):
            yield UnusualContent(f"{shown(f'{module}.{what}')} among its layers", confinable=True)
