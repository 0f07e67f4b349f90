"""What identifies the code that makes a result: ours and the libraries'."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
from pathlib import Path

import conrepair

__all__ = ["code_fingerprint", "library_versions"]

_LIBRARIES = (
    "ai-edge-litert",
    "apache-tvm",
    "apache-tvm-ffi",
    "keras",
    "numpy",
    "onnx",
    "onnx-ir",
    "onnx2torch",
    "onnxruntime",
    "onnxscript",
    "onnxsim",
    "onnxslim",
    "pillow",
    "sympy",
    "tensorflow",
    "tf2onnx",
    "torch",
    "torchvision",
)
# Rooms that no job's result depends on; a room that is new counts until it's named here.
_OTHER_ROOMS = {
    *("cli.py", "config", "editors", "evaluate", "faults", "graph", "localize", "metrics", "networks", "pipeline"),
    *("repair", "report"),
}
_LOCALIZING = {"evaluate", "faults", "graph", "localize", "metrics", "networks"}
_CUTTING = {"graph", "networks", "repair"}
_MORE_ROOMS = {  # by kind of job
    "localize": _LOCALIZING,
    "repair": _LOCALIZING | {"editors", "repair"},
    "rounding": _LOCALIZING | {"editors"},
    "draw_inputs": {"graph", "metrics", "networks"},
    "outline": _CUTTING,
    "attempt": _CUTTING,
}
_JOB_FILES = ("pipeline/jobs.py",)


@functools.cache
def library_versions() -> dict[str, str]:
    """Versions of the libraries that results depend on; those that aren't installed are left out."""
    versions = {}
    for name in _LIBRARIES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


@functools.cache
def code_fingerprint(kind: str = "") -> str:
    """Hash of the code that runs in jobs and of the libraries' versions: a change of either makes results stale.

    Args:
        kind: Of job; some use more rooms than others.
    """
    digest = hashlib.sha256()
    package = Path(conrepair.__file__).parent
    left_out = _OTHER_ROOMS - _MORE_ROOMS.get(kind, set())
    files = [file for file in sorted(package.rglob("*.py")) if file.relative_to(package).parts[0] not in left_out]
    for file in [*files, *(package / name for name in _JOB_FILES)]:
        digest.update(file.relative_to(package).as_posix().encode() + b"\0" + file.read_bytes())
    digest.update(repr(sorted(library_versions().items())).encode())
    return digest.hexdigest()
