"""The jobs that travel to executors: a closed table, so that no name of a function ever comes from outside."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["JOBS"]

_MODULE = "conrepair.pipeline.jobs"

JOBS: Mapping[str, str] = MappingProxyType(
    {
        "attempt": f"{_MODULE}:attempt",
        "build": f"{_MODULE}:build",
        "compile": f"{_MODULE}:compile",
        "contents": f"{_MODULE}:contents",
        "convert": f"{_MODULE}:convert",
        "describe": f"{_MODULE}:describe",
        "draw_inputs": f"{_MODULE}:draw_inputs",
        "execute": f"{_MODULE}:execute",
        "localize": f"{_MODULE}:localize",
        "outline": f"{_MODULE}:outline",
        "probe": "conrepair.pipeline.probes:probe",
        "repair": f"{_MODULE}:repair",
        "rounding": f"{_MODULE}:rounding",
    }
)
"""By the name that a task has: "package.module:function", imported where the job runs."""
