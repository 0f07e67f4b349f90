"""Write what every kernel of a build computes."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from conrepair.formats.models.runnable import Array
from conrepair.formats.tvm.calls import CALLS, Calls, KernelCall
from conrepair.formats.tvm.runnable import TvmRunnable
from conrepair.formats.tvm.stepping import Stepping
from conrepair.ground.runtime.errors import ModelLoadError
from conrepair.ground.runtime.files.whole import write_json
from conrepair.ground.runtime.typed import typed

KERNELS = "kernels.json"
_ARRAYS = "kernels"


def load_calls(folder: Path) -> Calls:
    """What a build calls.

    Args:
        folder: Of the build.

    Raises:
        ModelLoadError: if that isn't known.
    """
    path = folder / CALLS
    if not path.is_file():
        raise ModelLoadError(
            f"{folder} has no {CALLS}, so its kernels can't be looked into: an older version built it, or which "
            "kernels run depends on values. Build it again; a model with branches can't be looked into when compiled."
        )
    return typed(Calls, json.loads(path.read_text(encoding="utf-8")))


def capture(runnable: TvmRunnable, batches: Iterable[Mapping[str, Array]], count: int, folder: Path) -> int:
    """Run batches, and write each kernel's results as they come.

    Args:
        runnable: A loaded build, which nobody else runs meanwhile.
        batches: Feeds by the names of its inputs.
        count: How many there are.
        folder: Receives `KERNELS` (the kernels in order, with the operators that they stand for), and a file for each
            result, whose first axis are the batches.

    Returns:
        How many kernels there are.

    Raises:
        ModelLoadError: if which kernels the build calls isn't known.
        InferenceError: if one fails.
    """
    calls = load_calls(runnable.folder)
    (folder / _ARRAYS).mkdir()
    stepping = Stepping(runnable, calls)
    everything = [value for call in calls.calls for value in call.writes]
    for place, feeds in enumerate(batches):
        given = {value: feeds[spec.name] for value, spec in zip(calls.inputs, runnable.inputs, strict=True)}
        stepping.run(given, everything, functools.partial(_write, folder, place, count))
    write_json(folder / KERNELS, {"batches": count, "kernels": _described(calls)})
    return len(calls.calls)


def _write(folder: Path, place: int, count: int, call: KernelCall, arrays: Sequence[Array]) -> None:
    """Put a batch into the files of a call, which needn't fit into memory."""
    for value, array in zip(call.writes, arrays, strict=True):
        path = folder / _file(value)
        if place == 0:
            stored = np.lib.format.open_memmap(path, "w+", array.dtype, (count, *array.shape))
        else:
            stored = np.load(path, mmap_mode="r+")
        stored[place] = array


def _file(value: str) -> str:
    return f"{_ARRAYS}/{value}.npy"


def _described(calls: Calls) -> list[dict[str, Any]]:
    return [
        {
            "function": call.function,
            "members": [{"name": name, "operator": calls.operators[name]} for name in call.members],
            "part_of_operator": call.part,
            "view": call.view,
            "results": [
                {
                    "file": _file(value),
                    "tensors": list(calls.tensors.get(value, ())),
                    "shape": list(calls.shapes[value][0]),
                    "dtype": calls.shapes[value][1],
                }
                for value in call.writes
            ],
        }
        for call in calls.calls
    ]
