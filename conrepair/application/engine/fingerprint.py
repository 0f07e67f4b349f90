"""What identifies the code that makes a result: ours and the libraries'."""

from __future__ import annotations

import contextlib
import fnmatch
import functools
import hashlib
import importlib.metadata
import importlib.util
import os
import re
from collections.abc import Mapping
from pathlib import Path

import conrepair
from conrepair.application.engine.job_table import JOBS
from conrepair.ground.runtime.plugins import plugins

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
_DIAGNOSES, _NAMES_FAULTS = "diagnoses", "diagnosis/localization/faces/diagnose.py"  # a group, and what asks it
_ALL = "conrepair.application.engine.job_table"  # names every job
_NAMED = re.compile(rb"conrepair((?:\.(?:\w|\{[\w.]+\})+)+)")  # begins with letters, which are looked for fast
_FOR_TYPES = re.compile(rb"^if TYPE_CHECKING:\n(?:[ ].*\n|\n)*", re.MULTILINE)  # it never runs
_FILLED_IN = re.compile(r"\{.*?\}")


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
    code = job_code(Path(conrepair.__file__).parent, kind)
    others = plugin_code(_DIAGNOSES) if _NAMES_FAULTS in code else ""
    return hashlib.sha256(f"{hash_of(code)} {sorted(library_versions().items())}{others}".encode()).hexdigest()


def plugin_code(words: str) -> str:
    """Hash of the plug-ins that a job names: their code, and the versions of what they require.

    Args:
        words: What a job is, needs, and is told, as JSON; or a group, for all that are in it.

    Returns:
        "" where there's none.
    """
    wanted = [item for item in plugins() if f'"{item.name}"' in words or item.group == words]
    found = {(re.split("[.:]", item.value)[0], item.package) for item in wanted}
    return hash_of({module: _plugin(module, package).encode() for module, package in found}) if found else ""


@functools.cache
def _plugin(module: str, package: str) -> str:
    required = re.findall(r"^[\w.-]+", "\n".join(importlib.metadata.requires(package) or []), re.MULTILINE)
    versions = []
    for name in (package, *required):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions.append(f"{name} {importlib.metadata.version(name)}")
    spec = importlib.util.find_spec(module)
    places = [] if spec is None else [*map(Path, spec.submodule_search_locations or [str(spec.origin)])]
    files = [file for place in places for file in (place, *place.rglob("*.py")) if file.is_file()]
    return f"{versions} {hash_of({str(file): file.read_bytes() for file in files})}"


def hash_of(code: Mapping[str, bytes]) -> str:
    """SHA-256 of texts and their names, from `job_code`."""
    digest = hashlib.sha256()
    for name, text in sorted(code.items()):
        digest.update(name.encode() + b"\0" + text)
    return digest.hexdigest()


def job_code(package: Path, kind: str = "") -> dict[str, bytes]:
    """The code that a job's result depends on: its module, and all that is imported from there on.

    A module that another one names anywhere counts as imported, so lazy imports do, and those by name; of a package
    that is named, all modules count.

    Args:
        package: Folder of conrepair.
        kind: Of job; "": all of them.

    Returns:
        Texts by file, relative to the folder.
    """
    files = _files(str(package))
    found: dict[str, bytes] = {}
    waiting = [JOBS.get(kind, _ALL).partition(":")[0].removeprefix("conrepair").encode()]
    seen: set[bytes] = set()
    while waiting:
        if (wanted := waiting.pop()) in seen:
            continue
        seen.add(wanted)
        for name in _named(files, wanted.decode()):
            if name not in found:
                found[name] = (package / name).read_bytes()
                waiting += _NAMED.findall(_FOR_TYPES.sub(b"", found[name]))
    return found


def _files(package: str) -> dict[str, str]:
    """All modules: their files, relative to the folder, by their names."""
    found = {}
    for folder, _, names in os.walk(package):
        inside = folder.removeprefix(package).replace(os.sep, ".")
        for name in names:
            if name.endswith(".py"):
                file = f"{inside}.{name}"
                found[file.removesuffix(".py")] = f"{file[1:].removesuffix('.py').replace('.', '/')}.py"
    return found


def _named(files: Mapping[str, str], name: str) -> list[str]:
    """The module of that name, or all of a package; what stands behind a module's name is something in it.

    What stands in braces, as a format's name, may be any.
    """
    if (pattern := _FILLED_IN.sub("*", name)) != name:
        return [files[module] for module in fnmatch.filter(files, pattern)]
    parts = name.split(".")
    for count in range(2, len(parts) + 1):
        if (module := ".".join(parts[:count])) in files:
            return [files[module]]
    return [file for module, file in files.items() if module.startswith(f"{name}.")]
