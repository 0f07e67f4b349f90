"""Small models that are made once, kept between runs by what made them, and copied to where they're asked for.

`CONREPAIR_TEST_FILES` names the folder that keeps them, `.cache/tests` in the checkout where it isn't set; with ""
they are made once in each process. What's kept is found by a hash of the call, of the code in this folder and of the
examples, and of the releases of all libraries that are installed: what's old isn't found.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import inspect
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, ParamSpec

from conrepair.formats.models.model import Model
from conrepair.ground.runtime.files.whole import sha256_of
from conrepair.ground.runtime.typed import typed

__all__ = ["KEPT", "made_once"]

P = ParamSpec("P")

KEPT = "CONREPAIR_TEST_FILES"
"""The variable that names the folder."""

_SUPPORT = Path(__file__).parent
_ROOT = _SUPPORT.parents[1]
_FILES, _MODEL = "files", "model.json"


def made_once(make: Callable[P, Model]) -> Callable[P, Model]:
    """What makes a model below a folder, so that what makes the same one again copies it.

    Args:
        make: Takes `folder`, and what tells models apart; it writes the same files whenever it's called, by
            frameworks and code of this folder or the examples alone: what conrepair did would be kept when it does
            otherwise.
    """
    signature = inspect.signature(make)
    of_process = tempfile.TemporaryDirectory(prefix="conrepair-models-")

    @functools.cache
    def first(about: tuple[tuple[str, Any], ...]) -> tuple[Path, Model]:
        name = _key(make, about)
        root = Path(_folder() or of_process.name)
        if not (root / name).exists():
            _keep(root, name, lambda folder: make(folder=folder, **dict(about)))  # type: ignore[call-arg]
        known = json.loads((root / name / _MODEL).read_text(encoding="utf-8"))
        return root / name / _FILES, typed(Model, known)

    @functools.wraps(make)
    def copied(*arguments: P.args, **more: P.kwargs) -> Model:
        bound = signature.bind(*arguments, **more)
        bound.apply_defaults()
        folder = bound.arguments.pop("folder")
        origin, model = first(tuple(bound.arguments.items()))
        shutil.copytree(origin, folder, dirs_exist_ok=True)
        return replace(model, path=str(folder / model.path))

    return copied


def _folder() -> str:
    return os.environ.get(KEPT, str(_ROOT / ".cache" / "tests"))


def _key(make: Callable[..., Model], about: tuple[tuple[str, Any], ...]) -> str:
    call = f"{make.__module__}.{make.__qualname__}{about!r}"
    return hashlib.sha256(f"{_surroundings()} {call}".encode()).hexdigest()


@functools.cache
def _surroundings() -> str:
    """A hash of the code that models are made by, of Python's release, and of those of all libraries."""
    files = [*sorted(_SUPPORT.glob("*.py")), *sorted((_ROOT / "examples").glob("*.py"))]
    code = [(path.name, sha256_of(path)) for path in files]
    libraries = sorted((item.name, item.version) for item in importlib.metadata.distributions())
    return hashlib.sha256(repr((sys.version, code, libraries)).encode()).hexdigest()


def _keep(root: Path, name: str, make: Callable[[Path], Model]) -> None:
    """Make it aside, and move it there whole: others may make the same at the same time."""
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root) as aside:
        whole = Path(aside) / name
        (whole / _FILES).mkdir(parents=True)
        model = make(whole / _FILES)
        inner = replace(model, path=str(Path(model.path).relative_to(whole / _FILES)))
        (whole / _MODEL).write_text(json.dumps(asdict(inner)), encoding="utf-8")
        try:
            whole.rename(root / name)
        except OSError:
            if not (root / name).exists():
                raise
