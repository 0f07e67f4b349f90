"""Whether a model's file may be loaded here: what it holds, what this process is kept from, what the user says."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conrepair.frameworks.model import Model
from conrepair.runtime.confinement import held
from conrepair.runtime.errors import ModelLoadError

__all__ = ["HOW_TO_TRUST", "Finding", "admit", "how_to_trust"]


def how_to_trust(key: str, python: str = "") -> str:
    """What a person does who trusts a file.

    Args:
        key: Of a configuration.
        python: What is said from Python.
    """
    from_python = f", {python} from Python" if python else ""
    return (
        "If it's yours, or from somebody whose programs you would run, say so: --trust on the command line, "
        f"{key} in a configuration{from_python}"
    )


HOW_TO_TRUST = how_to_trust("`trust: true` of that model", "trust=True")
_MOST = 3
_SCREENED = {"torch", "keras", "tensorflow"}  # formats that can hold code


@dataclass(frozen=True)
class Finding:
    """Something that no ordinary file of its format has.

    Attributes:
        what: In words.
        confinable: Whether it does nothing beyond what a confined process is kept from. Otherwise it's code where
            the format has none.
    """

    what: str
    confinable: bool = False


def admit(model: Model) -> None:
    """Look through a file before its library loads it; nothing of it is run.

    Args:
        model: Of any framework.

    Raises:
        ModelLoadError: if it isn't trusted, and holds what this process isn't kept from.
    """
    if model.trust or model.framework not in _SCREENED:
        return
    screen: Any = importlib.import_module(f"conrepair.frameworks.screening.{model.framework}")
    found: list[Finding] = list(screen.findings(model))
    if code := [item.what for item in found if not item.confinable]:
        raise ModelLoadError(
            f"{model.path} isn't loaded: it holds code where its format has none: {_some(code)}. {HOW_TO_TRUST}."
        )
    if found and not held().full:
        raise ModelLoadError(
            f"{model.path} isn't loaded: it may reach beyond the model: {_some(item.what for item in found)}; and "
            f"this process is {held()}. Load it in a worker on a kernel with Landlock and seccomp (`conrepair "
            f"doctor` says what holds here). {HOW_TO_TRUST}."
        )


def shown(path: Path | str) -> str:
    """A name or text out of a file, short."""
    text = str(path)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _some(words: Iterable[str]) -> str:
    different = list(dict.fromkeys(words))
    more = f"; and {len(different) - _MOST} more" if len(different) > _MOST else ""
    return "; ".join(different[:_MOST]) + more
