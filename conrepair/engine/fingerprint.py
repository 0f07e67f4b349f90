"""What identifies the code that makes a result: ours and the libraries'."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import re
from collections.abc import Iterable
from pathlib import Path

import conrepair
from conrepair.engine.job_table import JOBS

_LIBRARIES = (
    "ai-edge-litert",
    "apache-tvm",
    "apache-tvm-ffi",
    "keras",
    "numpy",
    "onnx",
    "onnx-ir",
    "onnx2torch",
    "onnxoptimizer",
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
_ALL = "conrepair.engine.job_table"  # names every job
_NAMED = re.compile(r"conrepair((?:\.\w+)+)")  # begins with letters, which are looked for fast


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
        kind: Of job; it depends on what its module imports, and what that imports. "": all of them.
    """
    digest = hashlib.sha256()
    package = Path(conrepair.__file__).parent
    for name, text in sorted(job_code(package, kind).items()):
        digest.update(name.encode() + b"\0" + text.encode())
    digest.update(repr(sorted(library_versions().items())).encode())
    return digest.hexdigest()


def job_code(package: Path, kind: str = "") -> dict[str, str]:
    """The code that a job's result depends on: its module, and all that is imported from there on.

    A module that another one names anywhere counts as imported, so lazy imports do, and those by name; of a package
    that is named, all modules count.

    Args:
        package: Folder of conrepair.
        kind: Of job; "": all of them.

    Returns:
        Texts by file, relative to the folder.
    """
    found: dict[str, str] = {}
    waiting = [JOBS.get(kind, _ALL).partition(":")[0].removeprefix("conrepair")]
    seen: set[str] = set()
    while waiting:
        if (wanted := waiting.pop()) in seen:
            continue
        seen.add(wanted)
        for file in _files(package, wanted):
            name = file.relative_to(package).as_posix()
            if name not in found:
                found[name], named = _read(file, file.stat().st_mtime_ns)
                waiting += named
    return found


@functools.cache
def _read(file: Path, changed: int) -> tuple[str, frozenset[str]]:
    """A module's text and what it names, by when it was changed."""
    text = file.read_text(encoding="utf-8")
    return text, _named(text)


def _named(text: str) -> frozenset[str]:
    return frozenset(_NAMED.findall(text))


def _files(package: Path, named: str) -> Iterable[Path]:
    """The module of that name, or all of a package; what stands behind a module's name is something in it."""
    folder = package
    for name in named.split(".")[1:]:
        if (file := folder / f"{name}.py").is_file():
            return (file,)
        folder = folder / name
        if not folder.is_dir():
            return ()
    return folder.rglob("*.py")
