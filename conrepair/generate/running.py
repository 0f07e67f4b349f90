"""Generated networks in ONNX Runtime, in this process."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

import numpy as np
import onnx

from conrepair.generate.graph import Draft
from conrepair.generate.values.drawn import drawn_values

__all__ = ["accepted", "run"]

Arrays = Mapping[str, np.ndarray[Any, Any]]


def run(
    model: onnx.ModelProto, feeds: Arrays, names: Collection[str], *, optimized: bool = False
) -> dict[str, np.ndarray[Any, Any]]:
    """Compute a model's outputs.

    Args:
        model: The network.
        feeds: By input.
        names: Of its outputs, in order.
        optimized: Whether the runtime may rewrite the graph.

    Raises:
        Exception: what ONNX Runtime raises, of no common class.
    """
    runtime = _runtime()
    session = runtime.InferenceSession(
        model.SerializeToString(), _options(optimized), providers=["CPUExecutionProvider"]
    )
    return dict(zip(names, session.run(None, dict(feeds)), strict=True))


def accepted(model: onnx.ModelProto, draft: Draft) -> bool:
    """Whether ONNX Runtime takes a model of one operator."""
    generator = np.random.default_rng(0)
    feeds = {name: drawn_values(tensor.type, tensor.values, generator) for name, tensor in draft.sources.items()}
    try:
        run(model, feeds, draft.outputs())
    except Exception:  # noqa: BLE001 (the runtime's errors have no common class)
        return False
    return True


@cache
def _runtime() -> Any:
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    onnxruntime.set_default_logger_severity(4)
    return onnxruntime


@cache
def _options(optimized: bool) -> Any:
    runtime = _runtime()
    options = runtime.SessionOptions()
    level = runtime.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimized else level.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return options
