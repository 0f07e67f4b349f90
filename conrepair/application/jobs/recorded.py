"""What stands in an execution's place where outputs were computed elsewhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from conrepair.application.jobs.values import RunRecord
from conrepair.formats.models.model import Model
from conrepair.ground.data.binding import Matching
from conrepair.ground.data.recorded import outputs_among, read_recorded
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import DataError
from conrepair.verdicts.evaluate.run import Run


def recorded(folder: Path, model: Model, outputs: tuple[str, ...], samples: int) -> RunRecord:
    """Take outputs that were computed elsewhere for a run.

    Args:
        folder: Receives one `output_<index>.npy` for each, and `seconds.npy`, all of them 0.
        model: The arrays.
        outputs: Names of what they stand for, of the model beside them.
        samples: How many there are.

    Raises:
        DataError: if they are of fewer samples than there are.
    """
    arrays = read_recorded(Path(model.path))
    names = outputs_among(arrays, outputs)
    there = len(next(iter(arrays.values())))
    if there < samples:
        raise DataError(
            f"{model.path} has outputs of {there} samples, and the data has {samples}. Give the data that they were "
            f"computed for, or --samples {there} where they're of its first ones."
        )
    specs = []
    for place, (output, name) in enumerate(names.items()):
        array = np.asarray(arrays[name][:samples])
        np.save(folder / f"output_{place}.npy", array)
        specs.append(TensorSpec(output, ("samples", *array.shape[1:]), array.dtype.name))
    np.save(folder / "seconds.npy", np.zeros(samples))
    unread = sorted(set(arrays) - set(names.values()))
    others = (f"{len(unread)} arrays of tensors on the way ({', '.join(unread[:3])}, ...)",) if unread else ()
    run = Run(name="", folder=Path(), outputs=tuple(specs), count=samples)
    return RunRecord(run=run, samples=samples, matching=Matching(others=others))
