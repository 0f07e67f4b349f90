"""Environments of other releases of a library, each with what its programs need besides."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterable, Mapping
from typing import Any

from conrepair.ground.runtime.errors import UsageError
from conrepair.ground.runtime.files.user_cache import limit_named
from conrepair.ground.runtime.outside.environments import (
    ENVIRONMENTS,
    Environment,
    MadeEnvironment,
    environment,
    environments_folder,
    find_environment,
    normalized,
    pin_of,
    remove_unused,
)
from conrepair.ground.runtime.plugins import Registry
from conrepair.ground.runtime.words import meant

RELEASED: Mapping[str, tuple[str, ...]] = {
    "onnxruntime": (),
    "apache-tvm": ("onnx",),
    "onnx": ("onnxruntime",),
    "onnxoptimizer": ("onnx", "onnxruntime"),
    "onnxsim": ("onnx", "onnxruntime"),
    "onnxslim": ("onnx", "onnxruntime"),
}
"""Libraries whose other releases can be run, and what of ours goes with them."""

_BESIDE: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("apache-tvm", "0.25.0"): {"apache-tvm-ffi": "0.1.12"},
    ("apache-tvm", "0.25.0.post1"): {"apache-tvm-ffi": "0.1.12"},
    ("apache-tvm", "0.26.0"): {"apache-tvm-ffi": "0.1.13.post2"},
    ("apache-tvm", "0.27.0"): {"apache-tvm-ffi": "0.1.14.post1"},
}
"""Versions that a release is compiled for, where what it asks for lets newer ones in."""

_MODULES = {"apache-tvm": "tvm"}  # where a library is imported by another name

RELEASES_LIMIT = "CONREPAIR_RELEASES_LIMIT"
"""Variable: gigabytes that environments of other releases may take."""

_DEFAULT_GB = 2.0
_PLUGGED: Registry[Any] = Registry("backends", {}, object)
_IS = "=="
_NUMBERS = re.compile(r"\d+")
_NUMPY_2 = (1, 19)  # of ONNX Runtime: before, it's compiled for numpy 1
_NUMPY_1 = "1.26.4"


def release(distribution: str, version: str) -> Environment:
    """The environment of a release.

    Args:
        distribution: The library, as package indices call it.
        version: Of it.

    Raises:
        UsageError: if there are none of that library, or the version is none.
    """
    packages = packages_of(distribution)
    if not packages:
        hint = meant(distribution, tuple(RELEASED), f"there are those of {', '.join(RELEASED)}")
        raise UsageError(f"other releases of {distribution!r} can't be run{hint}")
    try:
        name, version = pin_of(f"{distribution}{_IS}{version}")
    except ValueError as error:
        raise UsageError(
            f"{version!r} is no version of {distribution}: give one as package indices have it"
        ) from error
    here, own = {other: _installed(other) for other in ("numpy", *packages)}, _installed(distribution)
    # What has the version of the library, as parts of it do, is released with it.
    pins = {other: version if there in {"", own} else there for other, there in here.items()}
    if name == "onnxruntime" and tuple(map(int, _NUMBERS.findall(version)[:2])) < _NUMPY_2:
        pins["numpy"] = _NUMPY_1
    pins |= {name: version, **_BESIDE.get((name, version), {})}
    return Environment(f"{name}=={version}", f"{name} {version}", 0.5, 1, pins, tuple(packages.values()))


def packages_of(distribution: str) -> Mapping[str, str]:
    """Modules by package, of a library and of what goes with it; none where its other releases can't be run.

    Args:
        distribution: The library, as package indices call it; ours, or the first of a plug-in's backend.
    """
    if distribution in RELEASED:
        return {other: _MODULES.get(other, other) for other in (distribution, *RELEASED[distribution])}
    brought: Iterable[Mapping[str, str]] = (getattr(item, "packages", {}) for item in _PLUGGED.values())
    return next((packages for packages in brought if next(iter(packages), "") == distribution), {})


def _installed(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def named_environment(name: str) -> Environment:
    """An environment by its name: one of a tool, or `library==version`.

    Raises:
        UsageError: if there's none.
    """
    distribution, is_release, version = name.partition(_IS)
    return release(normalized(distribution), version) if is_release else environment(name)


def environments_of(needs: Iterable[str]) -> list[Environment]:
    """The environments among what jobs need, where libraries are, too.

    Args:
        needs: Names.

    Raises:
        UsageError: if one is of no release that can be run.
    """
    return [named_environment(name) for name in sorted(set(needs)) if name in ENVIRONMENTS or _IS in name]


def kept_releases() -> list[tuple[Environment, MadeEnvironment]]:
    """Releases whose environments are there, whole; those that were used last come first."""
    found = [(wanted, made) for wanted in made_releases() if (made := find_environment(wanted)) is not None]
    return sorted(found, key=lambda item: -item[1].used)


def trim_releases(needed: Iterable[str] = (), limit: float | None = None) -> list[str]:
    """Remove environments of releases, those first that weren't used for longest, while they take more than a limit.

    Args:
        needed: Names of those that stay, as do all that a process uses.
        limit: In gigabytes; None: what `CONREPAIR_RELEASES_LIMIT` says, or 2.

    Returns:
        Names of those that were removed.
    """
    if limit is None:
        limit = limit_named(RELEASES_LIMIT, _DEFAULT_GB)
    kept, stay, removed = kept_releases(), set(needed), []
    taken = sum(made.gigabytes for _, made in kept)
    for wanted, made in reversed(kept):
        if taken > limit and wanted.name not in stay and remove_unused(wanted):
            taken -= made.gigabytes
            removed.append(wanted.name)
    return removed


def made_releases() -> list[Environment]:
    """Releases whose environments are there, whole or not."""
    names = {path.name.rpartition("-")[0] for path in environments_folder().glob("*==*-" + "[0-9a-f]" * 16)}
    found = [name.split(_IS) for name in sorted(names)]
    return [release(library, version) for library, version in found if packages_of(library)]
