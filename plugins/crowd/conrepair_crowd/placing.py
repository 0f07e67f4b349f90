"""Which workers a job can go to: resources, as Dask calls what workers say that they have."""

from __future__ import annotations

import importlib.util
from collections.abc import Collection, Mapping
from typing import Any

from conrepair.ground.runtime.gpu_devices import gpu_devices
from conrepair.ground.runtime.processes.confinement import GPU

LIBRARIES: Mapping[str, str] = {
    "jax": "jax",
    "onnx": "onnx",
    "onnxruntime": "onnxruntime",
    "tensorflow": "tensorflow",
    "tflite": "ai_edge_litert",
    "torch": "torch",
    "tvm": "tvm",
}
"""What jobs need, by the name that they call it, and as it's imported."""


def resources_here(threads: int) -> dict[str, float]:
    """What this machine has: of libraries as much as there are threads, so that they never bound what runs.

    Args:
        threads: Of the worker.
    """
    found = {name: float(threads) for name, module in LIBRARIES.items() if importlib.util.find_spec(module)}
    return found | ({GPU: 1.0} if gpu_devices() else {})


def wanted_resources(needs: Collection[str], reach: str, workers: Collection[Mapping[str, Any]]) -> dict[str, float]:
    """What to ask for, for a job: what it needs of that which any worker says it has.

    Args:
        needs: Libraries that it imports.
        reach: How far it reaches.
        workers: What the scheduler knows of them.
    """
    known = {name for worker in workers for name in worker.get("resources", {})}
    wanted = {*needs, GPU} if reach == GPU else set(needs)
    return dict.fromkeys(sorted(wanted & known), 1.0)
