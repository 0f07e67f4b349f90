"""What has to be the same on two machines, so that a job comes to the same there."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import conrepair
from conrepair.application.engine.fingerprint import hash_of, job_code, library_versions


@functools.cache
def identity(kind: str) -> dict[str, Any]:
    """Of this machine, for a kind of job: "code" and "versions".

    Args:
        kind: A name of `conrepair.application.engine.job_table`.
    """
    return {"code": hash_of(job_code(Path(conrepair.__file__).parent, kind)), "versions": library_versions()}


def otherwise(kind: str, wanted: Mapping[str, Any]) -> str:
    """Why a job might come to something else here, in words; "" where it doesn't.

    Args:
        kind: Of the job.
        wanted: The identity where it comes from. Libraries that only one of both has don't count: the job says itself
            what it lacks.
    """
    here = identity(kind)
    if here["code"] != wanted["code"]:
        return f"its conrepair ({conrepair.__version__}) isn't the one that asks; install the same"
    versions = here["versions"]
    others = [
        f"{name} {versions[name]} instead of {version}"
        for name, version in wanted["versions"].items()
        if versions.get(name, version) != version
    ]
    return f"it has {', '.join(others)}" if others else ""
