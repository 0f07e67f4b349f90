"""The jobs that travel to executors: a closed table, so that no name of a function ever comes from outside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from conrepair.application.engine.task import STEPS
from conrepair.ground.runtime.gpu_devices import gpu_devices
from conrepair.ground.runtime.plugins import Registry, named
from conrepair.ground.runtime.processes.confinement import CONFINED, GPU, NETWORK, OPEN

JOBS: Mapping[str, str] = MappingProxyType(
    {
        **STEPS,
        "attempt": "conrepair.application.jobs.conversion:attempt",
        "build": "conrepair.application.jobs.description:build",
        "compile": "conrepair.application.jobs.execution:compile",
        "contents": "conrepair.application.jobs.description:contents",
        "look": "conrepair.application.pipeline.look:look",
        "outline": "conrepair.application.jobs.conversion:outline",
        "patch": "conrepair.application.jobs.repair:patch",
        "probe": "conrepair.application.jobs.probes:probe",
        "probe_gpu": "conrepair.application.jobs.gpu_probes:probe_gpu",
        "repair": "conrepair.application.jobs.repair:repair",
    }
)
"""By the name that a task has: "package.module:function", imported where the job runs."""

IMPORTS: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "": (
            "pydantic.dataclasses",
            "tqdm.std",
            "conrepair.application.jobs.execution",
            "conrepair.diagnosis.localization.models",
        ),
        "onnx": (
            "onnx",
            "onnxruntime",
            "conrepair.formats.onnx.load.framework",
            "conrepair.formats.onnx.read.network",
        ),
    }
)
"""What the process has imported that workers are forked from, by the framework that their jobs need; "": all.

None of these starts a thread, which PyTorch and TensorFlow do: they're imported where they are needed.
"""

_ON_DEVICES = {
    NETWORK: frozenset({"compile", "execute"}),
    GPU: frozenset({"compile", "execute", "localize", "probe_gpu", "repair"}),
}  # what runs on one that isn't the processor


REGISTERED: tuple[Registry[Any], ...] = tuple(Registry(group, JOBS, Callable) for group in ("jobs", "gpu_jobs"))
"""The groups of plug-ins' jobs, for who looks whether they can be imported."""


def jobs() -> dict[str, str]:
    """All jobs: ours, and those of installed plug-ins, which have other names."""
    return {**named("jobs"), **named("gpu_jobs"), **JOBS}


def reach_of(kind: str, *, device: str = CONFINED, program: bool = False) -> str:
    """How far a job reaches, by what it is and what the user asked for; by a file, no further than to the GPU.

    Args:
        kind: Of the job. A factory is a program of the user's: what builds has no bounds.
        device: Where it runs: `CONFINED` is the processor, `GPU` one of this machine, `NETWORK` elsewhere.
        program: Whether it runs a program that the user named.
    """
    if program or kind == "build":
        return OPEN
    if device == GPU and not gpu_devices():
        return CONFINED
    known = kind in _ON_DEVICES.get(device, ()) or (device == GPU and kind in named("gpu_jobs"))
    return device if known else CONFINED
