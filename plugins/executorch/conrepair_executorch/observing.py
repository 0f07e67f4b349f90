"""What operators of a program compute, by the names of the program of torch.export that it was made of.

The exporter numbers operators of that program in their order, from 1 on, and keeps the number as a debug handle where
an operator becomes several, or goes to a delegate. What the last operator with a handle gives is what the original's
gives. Which instruction has which handle stands in the program's ETRecord, beside it; where there's none, or shapes
contradict it, nothing but outputs is told.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from conrepair.plugins import Array, Model
from conrepair_executorch import record_of
from conrepair_executorch.runtime import forward, load, specs

_LEAST, _EACH = 1 << 20, 32  # bytes for what one run gives: at least, and for each number of the program's own
_GONE = {"detach", "detach_", "alias", "lift_fresh_copy"}  # the exporter leaves these out


def observed(model: Model, beside: Model) -> Callable[[Mapping[str, Array]], Mapping[str, Array]]:
    """See `Format.observed`.

    Args:
        model: The program.
        beside: What it's compared with; of another format than torch.export's, it has no debug handles.
    """
    record = record_of(Path(model.path))
    operators = _operators(beside) if record.is_file() else []
    room = max(_LEAST, _EACH * sum(math.prod(shape) for _, shape in operators))

    def run(feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        module = load(model, enable_etdump=True, debug_buffer_size=room)
        inputs, outputs = specs(module)
        results = forward(module, [feeds[spec.name] for spec in inputs])
        found = {spec.name: array for spec, array in zip(outputs, results, strict=True)}
        return found | (_told(module, record, operators) if operators else {})

    return run


def _operators(beside: Model) -> list[tuple[str, tuple[int, ...]]]:
    """Name and shape of what each operator of a program gives that gets a debug handle; nothing of another format."""
    if beside.framework != "torch" or not beside.path.endswith(".pt2"):
        return []
    program = torch.export.load(beside.path)
    found = []
    for node in program.graph.nodes:
        name = getattr(getattr(node.target, "overloadpacket", None), "__name__", "")
        value = node.meta.get("val")
        if node.op == "call_function" and name not in _GONE:
            found.append((node.name, tuple(value.shape) if isinstance(value, torch.Tensor) else ()))
    return found


def _told(module: Any, record: Path, operators: list[tuple[str, tuple[int, ...]]]) -> dict[str, Array]:
    """Tensors of the run before, by the operators' names."""
    from executorch.devtools import Inspector

    with tempfile.TemporaryDirectory() as folder:
        events, values = Path(folder, "events"), Path(folder, "values")
        module.write_etdump_result_to_file(str(events), str(values))
        inspector = Inspector(etdump_path=str(events), etrecord=str(record), debug_buffer_path=str(values))
        last: dict[int, Array] = {}
        for block in inspector.event_blocks:
            for event in block.events:
                handles = event.debug_handles
                handle = max(handles, default=0) if isinstance(handles, list | tuple) else int(handles or 0)
                if handle and event.debug_data and isinstance(event.debug_data[-1], torch.Tensor):
                    last[handle] = np.array(event.debug_data[-1])
    fits = all(
        handle <= len(operators) and array.shape in {operators[handle - 1][1], ()} for handle, array in last.items()
    )
    return {operators[handle - 1][0]: array for handle, array in sorted(last.items()) if array.shape} if fits else {}
