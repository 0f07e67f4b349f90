"""The jobs that travel to executors: a closed table, so that no name of a function ever comes from outside."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from conrepair.runtime.confinement import CONFINED, NETWORK, OPEN

__all__ = ["JOBS", "reach_of"]

_MODULE = "conrepair.pipeline.jobs"

JOBS: Mapping[str, str] = MappingProxyType(
    {
        "attempt": f"{_MODULE}:attempt",
        "build": f"{_MODULE}:build",
        "compile": f"{_MODULE}:compile",
        "contents": f"{_MODULE}:contents",
        "convert": f"{_MODULE}:convert",
        "convert_network": "conrepair.pipeline.network_conversions:convert_network",
        "describe": f"{_MODULE}:describe",
        "draw_inputs": f"{_MODULE}:draw_inputs",
        "element_types": "conrepair.pipeline.generate_jobs:element_types",
        "execute": f"{_MODULE}:execute",
        "generate": "conrepair.pipeline.generate_jobs:generate",
        "learn": "conrepair.pipeline.generate_material:learn",
        "localize": f"{_MODULE}:localize",
        "narrow": "conrepair.pipeline.narrowing_jobs:narrow",
        "outline": f"{_MODULE}:outline",
        "patch": "conrepair.pipeline.patching:patch",
        "probe": "conrepair.pipeline.probes:probe",
        "repair": f"{_MODULE}:repair",
        "rounding": f"{_MODULE}:rounding",
    }
)
"""By the name that a task has: "package.module:function", imported where the job runs."""

_DEVICES = frozenset({"compile", "execute"})  # what runs on one that the user names


def reach_of(kind: str, *, device: bool = False, program: bool = False) -> str:
    """How far a job reaches, by what it is and what the user asked for: never by what's in a file.

    Args:
        kind: Of the job. A factory is a program of the user's: what builds has no bounds.
        device: Whether it runs on a device elsewhere that the user named.
        program: Whether it runs a program that the user named.
    """
    if program or kind == "build":
        return OPEN
    return NETWORK if device and kind in _DEVICES else CONFINED
