"""ONNX Runtime as the reference: every optimization off; or all on, for what is compared with that."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

_ERRORS_ONLY, _FATAL_ONLY = 3, 4


def open_session(
    model: bytes | Path,
    *,
    threads: int = 0,
    quiet: bool = False,
    optimized: bool = False,
    off: Collection[str] = (),
    written: Path | None = None,
) -> Any:
    """A session on the CPU that runs a graph as it's written.

    Args:
        model: Serialized, or a file, which may have external data.
        threads: To compute with; 0 lets ONNX Runtime choose.
        quiet: Say nothing on standard error about what it can't do; it's raised all the same.
        optimized: Whether ONNX Runtime rewrites the graph by all that it has.
        off: Optimizers that it leaves out.
        written: File that receives the graph as it's run.
    """
    import onnxruntime

    if quiet:  # kernels warn by the logger of the process
        onnxruntime.set_default_logger_severity(_FATAL_ONLY)
    options = onnxruntime.SessionOptions()
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimized else levels.ORT_DISABLE_ALL
    options.log_severity_level = _FATAL_ONLY if quiet else _ERRORS_ONLY
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # threads that wait take a core
    if written is not None:
        options.optimized_model_filepath = str(written)
    source = model if isinstance(model, bytes) else str(model)
    providers = ["CPUExecutionProvider"]
    return onnxruntime.InferenceSession(  # what fails isn't tried again: there's nothing else to fall back to
        source, options, providers, disabled_optimizers=list(off), enable_fallback=0
    )
