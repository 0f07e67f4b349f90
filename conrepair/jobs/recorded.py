"""What stands in an execution's place where outputs were computed elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from conrepair.data.recorded import outputs_among, read_recorded
from conrepair.data.tensor_spec import TensorSpec
from conrepair.frameworks.model import Model, from_json, to_json
from conrepair.runtime.errors import DataError


def recorded(payload: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Take outputs that were computed elsewhere for a run.

    Args:
        payload: "model" (the arrays), "outputs" (names of what they stand for, of the model beside them), "samples".
        folder: Receives one `output_<index>.npy` for each, and `seconds.npy`, all of them 0.

    Returns:
        As an execution does.

    Raises:
        DataError: if they are of fewer samples than there are.
    """
    model, count = from_json(Model, payload["model"]), payload["samples"]
    arrays = read_recorded(Path(model.path))
    names = outputs_among(arrays, payload["outputs"])
    there = len(next(iter(arrays.values())))
    if there < count:
        raise DataError(
            f"{model.path} has outputs of {there} samples, and the data has {count}. Give the data that they were "
            f"computed for, or --samples {there} where they're of its first ones."
        )
    specs = []
    for place, (output, name) in enumerate(names.items()):
        array = np.asarray(arrays[name][:count])
        np.save(folder / f"output_{place}.npy", array)
        specs.append(TensorSpec(output, ("samples", *array.shape[1:]), array.dtype.name))
    np.save(folder / "seconds.npy", np.zeros(count))
    unread = sorted(set(arrays) - set(names.values()))
    others = (f"{len(unread)} arrays of tensors on the way ({', '.join(unread[:3])}, ...)",) if unread else ()
    return {
        "outputs": [to_json(spec) for spec in specs],
        "count": count,
        "samples": count,
        "starts": [0],
        "load_seconds": 0.0,
        "run_seconds": 0.0,
        "repeats": True,
        "refused": {},
        "matching": {"guesses": (), "others": others},
    }
