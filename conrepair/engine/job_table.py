"""The jobs that travel to executors: a closed table, so that no name of a function ever comes from outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from conrepair.runtime.confinement import CONFINED, GPU, NETWORK, OPEN
from conrepair.runtime.gpu_devices import gpu_devices

JOBS: Mapping[str, str] = MappingProxyType(
    {
        "accuracy": "conrepair.jobs.accuracy:accuracy",
        "answers": "conrepair.jobs.systems:answers",
        "attempt": "conrepair.jobs.conversion:attempt",
        "baked": "conrepair.jobs.localization:baked",
        "build": "conrepair.jobs.description:build",
        "compile": "conrepair.jobs.execution:compile",
        "contents": "conrepair.jobs.description:contents",
        "convert": "conrepair.jobs.conversion:convert",
        "convert_network": "conrepair.campaigns.network_conversions:convert_network",
        "describe": "conrepair.jobs.description:describe",
        "draw_inputs": "conrepair.jobs.inputs:draw_inputs",
        "element_types": "conrepair.campaigns.generate_jobs:element_types",
        "execute": "conrepair.jobs.execution:execute",
        "execute_released": "conrepair.jobs.released:execute_released",
        "forms": "conrepair.jobs.trace_kernels:forms",
        "fuzz_recheck": "conrepair.campaigns.fuzz_jobs:fuzz_recheck",
        "fuzz_reduce": "conrepair.campaigns.fuzz_jobs:fuzz_reduce",
        "fuzz_try": "conrepair.campaigns.fuzz_jobs:fuzz_try",
        "generate": "conrepair.campaigns.generate_jobs:generate",
        "kernels": "conrepair.jobs.trace_kernels:kernels",
        "learn": "conrepair.campaigns.generate_material:learn",
        "localize": "conrepair.jobs.localization:localize",
        "look": "conrepair.pipeline.look:look",
        "narrow": "conrepair.campaigns.narrowing_jobs:narrow",
        "optimizers": "conrepair.jobs.optimizers:optimizers",
        "outline": "conrepair.jobs.conversion:outline",
        "patch": "conrepair.jobs.repair:patch",
        "preparation": "conrepair.jobs.inputs:preparation",
        "probe": "conrepair.jobs.probes:probe",
        "probe_gpu": "conrepair.jobs.gpu_probes:probe_gpu",
        "recorded": "conrepair.jobs.recorded:recorded",
        "referees": "conrepair.jobs.referees:referees",
        "repair": "conrepair.jobs.repair:repair",
        "rounding": "conrepair.jobs.localization:rounding",
        "switches": "conrepair.jobs.systems:switches",
        "trace": "conrepair.jobs.trace_search:trace",
    }
)
"""By the name that a task has: "package.module:function", imported where the job runs."""

IMPORTS: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "": ("pydantic.dataclasses", "tqdm.std", "conrepair.jobs.execution", "conrepair.localization.models"),
        "onnx": ("onnx", "onnxruntime", "conrepair.frameworks.onnx", "conrepair.networks.onnx"),
    }
)
"""What the process has imported that workers are forked from, by the framework that their jobs need; "": all.

None of these starts a thread, which PyTorch and TensorFlow do: they're imported where they are needed.
"""

_ON_DEVICES = {
    NETWORK: frozenset({"compile", "execute"}),
    GPU: frozenset({"compile", "execute", "localize", "probe_gpu", "repair"})
    | {"accuracy", "answers", "fuzz_recheck", "fuzz_reduce", "fuzz_try", "kernels", "switches", "trace"},
}  # what runs on one that isn't the processor


def reach_of(kind: str, *, device: str = CONFINED, program: bool = False) -> str:
    """How far a job reaches, by what it is and what the user asked for; by a file, no further than to the GPU.

    Args:
        kind: Of the job. A factory is a program of the user's: what builds has no bounds.
        device: Where it runs: `CONFINED` is the processor, `GPU` one of this machine, `NETWORK` elsewhere.
        program: Whether it runs a program that the user named.
    """
    if program or kind == "build":
        return OPEN
    if kind not in _ON_DEVICES.get(device, ()) or (device == GPU and not gpu_devices()):
        return CONFINED
    return device
