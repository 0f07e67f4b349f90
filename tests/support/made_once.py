"""Small models that are made once in a process, and copied to where they're asked for."""

from __future__ import annotations

import functools
import inspect
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ParamSpec

from conrepair.frameworks.model import Model

__all__ = ["made_once"]

P = ParamSpec("P")


def made_once(make: Callable[P, Model]) -> Callable[P, Model]:
    """What makes a model below a folder, so that what makes the same one again copies it.

    Args:
        make: Takes `folder`, and what tells models apart; it writes the same files whenever it's called.
    """
    signature = inspect.signature(make)
    kept = tempfile.TemporaryDirectory(prefix="conrepair-models-")

    @functools.cache
    def first(about: tuple[tuple[str, Any], ...]) -> tuple[Path, Model]:
        folder = Path(tempfile.mkdtemp(dir=kept.name))
        return folder, make(folder=folder, **dict(about))  # type: ignore[call-arg]

    @functools.wraps(make)
    def copied(*arguments: P.args, **more: P.kwargs) -> Model:
        bound = signature.bind(*arguments, **more)
        bound.apply_defaults()
        folder = bound.arguments.pop("folder")
        origin, model = first(tuple(bound.arguments.items()))
        shutil.copytree(origin, folder, dirs_exist_ok=True)
        return replace(model, path=str(folder / Path(model.path).relative_to(origin)))

    return copied
