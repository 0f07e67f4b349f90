"""Outputs that were computed elsewhere (a phone, another runtime), as files of arrays."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.ground.data.tensors import opened_arrays
from conrepair.ground.runtime.errors import DataError
from conrepair.ground.runtime.words import natural_order

Array = npt.NDArray[Any]

_FILES = {".npz", ".npy"}
_RESULT = "result.json"


def is_recorded(path: Path) -> bool:
    """Whether a file or a folder holds arrays of NumPy.

    Args:
        path: An .npz, an .npy, or a folder of either.
    """
    if path.is_dir():
        return any(_members(path))
    return path.is_file() and path.suffix.lower() in _FILES


def read_recorded(path: Path) -> dict[str, Array]:
    """Read recorded outputs; nothing is unpickled.

    Args:
        path: An .npz of arrays by name, first axis samples; an .npy of a single output; a folder with an .npy for
            each output, with an .npz for each sample, or that `execute -o` wrote.

    Returns:
        Arrays by name, samples first; an .npy file's by the empty name.

    Raises:
        DataError: if a file is damaged, or they don't fit together.
    """
    if not path.is_dir():
        return _of_one_length(path, opened_arrays(path))
    members = _members(path)
    kinds = {member.suffix.lower() for member in members}
    if len(kinds) > 1:
        raise DataError(
            f"{path} holds .npy and .npz files. Give a folder with an .npy per output, or with an .npz per sample."
        )
    if kinds == {".npz"}:
        return _of_samples(path, [opened_arrays(member) for member in members])
    written = _written(path)
    named = {written.get(member.name, member.stem): member for member in members}
    wanted = set(written.values()) or set(named)
    arrays = {name: opened_arrays(member)[""] for name, member in named.items() if name in wanted}
    return _of_one_length(path, arrays)


def outputs_among(arrays: Mapping[str, Array], names: Sequence[str]) -> dict[str, str]:
    """Which arrays are a model's outputs.

    Args:
        arrays: What was computed elsewhere, tensors on the way perhaps among it.
        names: Of the model's outputs, in its order; none where they aren't known.

    Returns:
        The array's name by the output's: of its name; in order, where none has one and there are as many; else all.
    """
    found = {name: name for name in names if name in arrays}
    if found:
        return found
    if len(names) == len(arrays):
        return dict(zip(names, arrays, strict=True))
    return {name: name for name in arrays}


def _of_one_length(path: Path, arrays: dict[str, Array]) -> dict[str, Array]:
    """Arrays that have as many samples, in front; what's read is looked at no further."""
    lengths = {name: len(array) if array.ndim else 0 for name, array in arrays.items()}
    if len(set(lengths.values())) > 1 or 0 in lengths.values():
        listing = ", ".join(f"{name or 'array'}: {list(array.shape)}" for name, array in arrays.items())
        raise DataError(
            f"{path}: the first axis of every array must be the samples, as many in all; found {listing}."
        )
    return arrays


def _members(folder: Path) -> list[Path]:
    names = natural_order(path.name for path in folder.iterdir() if path.suffix.lower() in _FILES and path.is_file())
    return [folder / name for name in names]


def _of_samples(folder: Path, samples: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """Arrays of files with a sample each, with or without an axis of one sample in front."""
    names = list(samples[0])
    for place, sample in enumerate(samples):
        for name in sorted({*names} ^ {*sample}):
            raise DataError(f"{folder}: sample {place} and sample 0 don't have the same arrays: one lacks {name}.")
        for name in names:
            if sample[name].shape != samples[0][name].shape:
                first, this = list(samples[0][name].shape), list(sample[name].shape)
                raise DataError(f"{folder}: {name} is {first} in sample 0 and {this} in sample {place}.")
    alone = all(array.ndim and len(array) == 1 for array in samples[0].values())
    join = np.concatenate if alone else np.stack
    return {name: join([sample[name] for sample in samples]) for name in names}


def _written(folder: Path) -> dict[str, str]:
    """Names of outputs by the files that `execute -o` wrote them to; none of another folder."""
    try:
        rows = json.loads((folder / _RESULT).read_text(encoding="utf-8"))["rows"]
        outputs = rows[-1]["ran"]["run"]["outputs"]
        return {f"output_{place}.npy": str(item["name"]) for place, item in enumerate(outputs)}
    except (OSError, ValueError, LookupError, TypeError):
        return {}
