"""Outputs that somebody computed elsewhere, or has a function for, as a file of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.ground.data.tensors import read_tensors
from conrepair.ground.intake.data import arrays_of, write_arrays
from conrepair.ground.runtime.errors import InferenceError, UsageError

_BATCH = 16
_OUTPUTS = "an array, a mapping of arrays by output, or a list of arrays in the outputs' order, first axis samples"


def recorded_file(value: Any, folder: Path, data: Path | None, name: str) -> Path | None:
    """Write outputs into a folder; those of a function once it was called with the data.

    Args:
        value: An array, a mapping of arrays by output (first axis samples), or a function of a mapping of arrays by
            input that returns one of these, or a list.
        folder: For the file; made where one is written.
        data: What models are fed, an .npz or .npy.
        name: What the caller's argument is called.

    Returns:
        None where it's nothing of that.

    Raises:
        InferenceError: if the function fails, or returns something else.
        UsageError: if there's no data to call it with.
    """
    arrays = _called(value, data, name) if callable(value) else arrays_of(value, name)
    if arrays is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "outputs.npz"
    write_arrays(path, {output or "arr_0": array for output, array in arrays.items()})
    return path


def _called(function: Any, data: Path | None, name: str) -> dict[str, npt.NDArray[Any]]:
    if data is None or data.suffix not in {".npz", ".npy"}:
        raise UsageError(
            f"{name} is a function, which needs arrays: give data= (`conrepair.inputs(model)` draws some)."
        )
    inputs = read_tensors(data)
    counts = {len(array) for array in inputs.values()}
    if len(counts) > 1:
        raise UsageError(f"{name} is a function, which is called with samples along the first axis of each array.")
    count = counts.pop()
    rows = []
    for start in range(0, count, _BATCH):
        batch = {key: np.array(array[start : start + _BATCH]) for key, array in inputs.items()}
        given = batch[""] if list(batch) == [""] else batch
        try:
            result = function(given)
        except Exception as error:
            raise InferenceError(f"{name} failed: {type(error).__name__}: {error}") from error
        rows.append(_outputs(result, name))
        size = len(next(iter(batch.values())))
        if wrong := [key for key, array in rows[-1].items() if not array.ndim or len(array) != size]:
            raise InferenceError(
                f"{name} was called with {size} samples, and returned {wrong[0] or 'an array'} of shape "
                f"{list(rows[-1][wrong[0]].shape)}. Return {_OUTPUTS}."
            )
        if set(rows[-1]) != set(rows[0]):
            raise InferenceError(f"{name} returned the outputs {sorted(rows[-1])}, and {sorted(rows[0])} before.")
    return {key: np.concatenate([row[key] for row in rows]) for key in rows[0]}


def _outputs(result: Any, name: str) -> dict[str, npt.NDArray[Any]]:
    if isinstance(result, Sequence) and not isinstance(result, str | bytes):
        result = {f"output_{place}": item for place, item in enumerate(result)}
    arrays = arrays_of(result, f"what {name} returned")
    if arrays is None:
        raise InferenceError(f"{name} returned a {type(result).__qualname__}. Return {_OUTPUTS}.")
    return arrays
