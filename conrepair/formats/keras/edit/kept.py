"""What a .keras file holds besides the network: put back where a changed one is written."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np

_CONFIG, _METADATA, _WEIGHTS = "config.json", "metadata.json", "model.weights.h5"
_COMPILED = "compile_config"
_OPTIMIZER = "optimizer"


def carry_over(original: Path, path: Path, *, rebuilt: bool) -> None:
    """Give a written file what the original has and Keras didn't write, in place.

    That's how it was compiled, its optimizer's state as long as the weights are of the same shapes, what's said about
    the file, and files that others put in.

    Args:
        original: The file as it was; one of HDF5 is left alone.
        path: Of the written file.
        rebuilt: Whether more than numbers changed.
    """
    if not zipfile.is_zipfile(original):
        return
    with zipfile.ZipFile(original) as archive:
        before = {item.filename: (item, archive.read(item)) for item in archive.infolist()}
    with zipfile.ZipFile(path) as archive:
        after = {item.filename: (item, archive.read(item)) for item in archive.infolist()}
    kept = {name: found for name, found in before.items() if not name.endswith(".weights.h5") or name in after}
    rebuilt = rebuilt or _generation(before[_METADATA][1]) != _generation(after[_METADATA][1])
    ours = {
        _CONFIG: _config(before[_CONFIG][1], after[_CONFIG][1], rebuilt=rebuilt),
        _METADATA: json.dumps(json.loads(before[_METADATA][1]) | json.loads(after[_METADATA][1])).encode(),
    }
    if _WEIGHTS in before.keys() & after.keys():
        ours[_WEIGHTS] = _weights(before[_WEIGHTS][1], after[_WEIGHTS][1])
    with zipfile.ZipFile(path, "w") as archive:
        for name, (item, content) in (after | kept).items():
            archive.writestr(item, ours.get(name, content))


def _config(before: bytes, after: bytes, *, rebuilt: bool) -> bytes:
    """The network's configuration: word for word where only numbers changed."""
    if not rebuilt:
        return before
    compiled = json.loads(before).get(_COMPILED)
    return json.dumps(json.loads(after) | ({} if compiled is None else {_COMPILED: compiled})).encode()


def _generation(metadata: bytes) -> str:
    """Of Keras, whose configurations the next one doesn't read word for word."""
    return str(json.loads(metadata).get("keras_version", "")).partition(".")[0]


def _weights(before: bytes, after: bytes) -> bytes:
    """The old file with the new numbers; the new one where other weights are in it."""
    old, new = io.BytesIO(before), io.BytesIO(after)
    with h5py.File(old, "r+") as kept, h5py.File(new, "r") as written:
        ours, theirs = _datasets(kept), _datasets(written)
        if {name: item.shape for name, item in ours.items() if not name.startswith(_OPTIMIZER)} != {
            name: item.shape for name, item in theirs.items()
        }:
            return after
        for name, item in theirs.items():
            if ours[name].dtype != item.dtype:
                return after
            if np.asarray(ours[name][()]).tobytes() != np.asarray(item[()]).tobytes():
                ours[name][...] = item[()]
    return old.getvalue()


def _datasets(file: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    file.visititems(lambda name, item: found.update({name: item}) if isinstance(item, h5py.Dataset) else None)
    return found
