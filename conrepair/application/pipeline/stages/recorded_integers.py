"""Integers among outputs that were computed elsewhere: what they stand for, as a device gives them quantized."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from conrepair.application.pipeline.evaluation import Execution
from conrepair.application.pipeline.stages.state import RunState
from conrepair.formats.models.formats import RECORDED
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.verdicts.evaluate.fitted_grid import NARROW, fitted_grid, grid_in_words
from conrepair.verdicts.evaluate.run import Run

_SAVE = (
    "save (output - zero_point) * scale as float32 in their place, with both as `conrepair inspect CONVERTED` shows "
    "them of the converted file"
)


def read_integers(state: RunState, executed: Sequence[Execution]) -> None:
    """Take recorded integers for quantized numbers, where the original gives real ones; they're judged as such.

    Args:
        state: Receives a note on each output.
        executed: What ran.
    """
    first = {item.model: item for item in reversed(executed) if item.kind == "reference"}
    for item in executed:
        right, run, source = first.get(item.reference), item.run, item.source
        if source is None or run is None or source.model.framework != RECORDED:
            continue
        if right is None or right.run is None or right is item:
            continue
        outputs = tuple(_read(state, item, spec, run, right.run) for spec in run.outputs)
        if outputs != run.outputs:
            narrow = next(spec.dtype for spec in outputs if spec.quantization is not None)
            about = dataclasses.replace(source.description, outputs=outputs, computes=narrow)
            item.source = dataclasses.replace(source, description=about)
            item.run = dataclasses.replace(
                run, outputs=outputs, quantized=True, precision=about.precision, intent=item.intent
            )


def _read(state: RunState, item: Execution, spec: TensorSpec, run: Run, right: Run) -> TensorSpec:
    """An output with what its integers stand for; as it is, where they're numbers of their own."""
    beside = {known.name: known for known in right.outputs}.get(spec.name)
    if spec.dtype not in NARROW or spec.quantization is not None or beside is None or not beside.is_float:
        return spec
    real, stored = right.arrays[spec.name][: run.count], run.arrays[spec.name]
    grid = fitted_grid(real, stored[: len(real)])
    words = f"{item.row_name.removesuffix('/source')}: the integers ({spec.dtype}) of {spec.name}"
    if grid is None:
        note = f"{words} don't follow the original's numbers, so scale and zero point aren't known: {_SAVE}"
    else:
        words += f" are taken for quantized numbers of {grid_in_words(grid)}, which fit the original's best"
        note = f"{words}; to be sure, {_SAVE}"
    if note not in state.notes:
        state.tell(note)
    return spec if grid is None else dataclasses.replace(spec, quantization=grid)
