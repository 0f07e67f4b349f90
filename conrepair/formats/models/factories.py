"""Call a dotted factory: "package.module:function" with keyword arguments."""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import sys
from pathlib import Path
from typing import Any

from conrepair.formats.models.model import Factory
from conrepair.ground.runtime.errors import ModelLoadError
from conrepair.ground.runtime.files.whole import sha256_of
from conrepair.ground.runtime.libraries import missing_library
from conrepair.ground.runtime.torchvision import import_torchvision
from conrepair.ground.runtime.user_modules import reach_module

_FINGERPRINTED = {"conrepair", "keras", "tensorflow", "torch", "torchvision"}


def call_factory(factory: Factory) -> Any:
    """Import a factory, and call it.

    A user's own `nets.py` is looked for in the working directory and the configuration's folder (see `Workers`).

    Args:
        factory: What to call.

    Raises:
        MissingLibraryError: if a library of an extra isn't installed.
        ModelLoadError: if the module or function doesn't exist or the call fails.
    """
    module_name, _, function_name = factory.target.partition(":")
    if module_name.split(".")[0] == "torchvision":
        import_torchvision()
    reach_module(module_name)
    try:
        function: Any = importlib.import_module(module_name)
        for part in function_name.split("."):
            function = getattr(function, part)
    except (ImportError, AttributeError) as error:
        raise missing_library(error) or ModelLoadError(
            f"factory {factory.target}: {error}. It's written package.module:function, and the module must be "
            "installed, in the working directory, or in the configuration's folder."
        ) from error
    # A user's module may raise anything when it's imported.
    except Exception as error:
        raise ModelLoadError(
            f"factory {factory.target}: importing {module_name} failed: {type(error).__name__}: {error}"
        ) from error
    try:
        return function(**factory.kwargs)
    # A user's function may raise anything; it is reported, with its name.
    except Exception as error:
        arguments = ", ".join(f"{key}={value!r}" for key, value in factory.kwargs.items())
        raise ModelLoadError(
            f"factory {factory.target}({arguments}) failed: {type(error).__name__}: {error}"
        ) from error


def factory_code(target: str, base: Path) -> str:
    """Hash the code that a factory's module can reach beside it; nothing is imported.

    For a module of the user's: its package, and all modules in the same folder. For an installed one: its version.

    Args:
        target: "package.module:function".
        base: The configuration's folder.

    Returns:
        64 hexadecimal digits, or "" for a package whose version the fingerprint of results holds anyway.
    """
    package = target.partition(":")[0].split(".")[0]
    if package in _FINGERPRINTED:
        return ""
    for entry in [*sys.path, str(Path.cwd()), str(base)]:
        folder = Path(entry or ".")
        if folder.name in {"site-packages", "dist-packages"}:
            continue
        if (folder / package).is_dir() or (folder / f"{package}.py").is_file():
            files = sorted({*folder.glob("*.py"), *(folder / package).rglob("*.py")})
            return hashlib.sha256("".join(sha256_of(file) for file in files).encode()).hexdigest()
    names = sorted(set(importlib.metadata.packages_distributions().get(package, [])))
    versions = [f"{name} {importlib.metadata.version(name)}" for name in names]
    return hashlib.sha256(repr(versions).encode()).hexdigest()
