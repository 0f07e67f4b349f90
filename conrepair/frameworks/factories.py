"""Call a dotted factory: "package.module:function" with keyword arguments."""

from __future__ import annotations

import hashlib
import importlib
import sys
from pathlib import Path
from typing import Any

from conrepair.frameworks.model import Factory
from conrepair.runtime.errors import ModelLoadError
from conrepair.runtime.files import sha256_of
from conrepair.runtime.torchvision import import_torchvision

__all__ = ["call_factory", "factory_code"]


def call_factory(factory: Factory) -> Any:
    """Import and call it.

    The working directory is importable, as it is for `python -c`, so that a user's own `nets.py` is found.

    Args:
        factory: What to call.

    Raises:
        ModelLoadError: if the module or function doesn't exist or the call fails.
    """
    module_name, _, function_name = factory.target.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    if module_name.split(".")[0] == "torchvision":
        import_torchvision()
    try:
        function: Any = importlib.import_module(module_name)
        for part in function_name.split("."):
            function = getattr(function, part)
    except (ImportError, AttributeError) as error:
        raise ModelLoadError(
            f"factory {factory.target}: {error}. It's written package.module:function, and the module must be "
            "installed or in the working directory."
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


def factory_code(target: str) -> str:
    """Hash the code that a factory's module can reach in its own package; nothing is imported.

    Installed packages are identified by their version instead (see the fingerprint), as is one that can't be found.

    Args:
        target: "package.module:function".

    Returns:
        64 hexadecimal digits, or "".
    """
    package = target.partition(":")[0].split(".")[0]
    for entry in [str(Path.cwd()), *sys.path]:
        folder = Path(entry or ".")
        if folder.name in {"site-packages", "dist-packages"}:
            continue
        if (folder / package).is_dir():
            files = sorted((folder / package).rglob("*.py"))
        elif (folder / f"{package}.py").is_file():
            files = [folder / f"{package}.py"]
        else:
            continue
        return hashlib.sha256("".join(sha256_of(file) for file in files).encode()).hexdigest()
    return ""
