"""Keras: layers and functions that a configuration names, beyond those that compute."""

from __future__ import annotations

import io
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
from h5py import h5d, h5g, h5l, h5o

from conrepair.formats.models.admission import UnusualContent, shown
from conrepair.formats.models.detect import container
from conrepair.formats.models.model import Model
from conrepair.ground.runtime.files.archive import (
    Archive,
    ArchiveError,
    check_unpacked,
    is_archive,
    opened_archive,
    parsed_json,
)

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
    """See `conrepair.formats.models.admission.admitted`. Lambda layers are refused by Keras itself."""
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
    if is_archive(place) or not _is_hdf5(place):
        raise ArchiveError("it isn't HDF5, or not only")
    try:
        with h5py.File(place, "r") as file:
            _check_hdf5(file, place.stat().st_size)
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
                _check_hdf5(file, archive.sizes[name])
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


# HDF5: what a file of weights has no place for, found without reading any of its numbers.


_MARK = b"\x89HDF\r\n\x1a\n"
_FILTERS = {1, 2, 3, 4, 5, 6, 32000}  # those of the library, and h5py's LZF; others are programs that it looks for
_MOST_OBJECTS = 1_000_000


def _is_hdf5(path: Path) -> bool:
    """Whether a file begins as HDF5 does: the library also finds what begins later, behind something else."""
    with path.open("rb") as file:
        return file.read(len(_MARK)) == _MARK


def _check_hdf5(file: Any, size: int) -> None:
    """Look through all groups and datasets of a file.

    Args:
        file: An `h5py.File`; its lower interface is used, which takes a third of the time.
        size: Of the file in bytes.

    Raises:
        ArchiveError: if it reaches other files, needs filters that are programs, or unpacks to more than it may.
    """
    whole = 0
    seen: set[int] = set()
    pending = [file.id]
    while pending:
        group = pending.pop()
        for name in group:
            if group.links.get_info(name).type != h5l.TYPE_HARD:
                raise ArchiveError(f"{_shown(name)} in it is a link to something else")
            item = h5o.open(group, name)
            place = h5o.get_info(item).addr
            if place in seen:
                continue
            seen.add(place)
            if len(seen) > _MOST_OBJECTS:
                raise ArchiveError(f"it has more than {_MOST_OBJECTS} groups and datasets")
            if isinstance(item, h5g.GroupID):
                pending.append(item)
            elif isinstance(item, h5d.DatasetID):
                whole += _checked_size(item, name)
                check_unpacked(whole, size, "its numbers take at least")


def _checked_size(item: Any, name: bytes) -> int:
    """Bytes of a dataset's numbers."""
    properties = item.get_create_plist()
    if properties.get_external_count() or properties.get_layout() == h5d.VIRTUAL:
        raise ArchiveError(f"the numbers of {_shown(name)} in it lie in another file")
    if any(properties.get_filter(place)[0] not in _FILTERS for place in range(properties.get_nfilters())):
        raise ArchiveError(f"{_shown(name)} in it is packed by a program that isn't in it")
    return int(item.get_space().get_simple_extent_npoints()) * int(item.get_type().get_size())


def _shown(name: bytes) -> str:
    return repr(shown(name.decode(errors="backslashreplace")))
