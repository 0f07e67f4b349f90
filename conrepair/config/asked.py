"""From a section of a configuration to the options of the verb that it asks for."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, TypeVar

from conrepair.config.strict import Strict
from conrepair.runtime.errors import UsageError
from conrepair.verbs.generate import CASES
from conrepair.verbs.option import Options

Asked = TypeVar("Asked", bound=Options)

_PATHS = frozenset({"accuracy", "data", "functions", "grown_from", "known", "learn", "models"})


def asked(verb: type[Asked], section: Strict, base: Path, **more: Any) -> Asked:
    """What a section asks a verb for: all of its keys that are options of the verb.

    Args:
        verb: Whose options.
        section: Of a configuration.
        base: Folder that relative paths start from.
        **more: Other options.

    Raises:
        UsageError: for options that can't be meant together.
    """
    told = _told(verb, section)
    paths = {name: _placed(value, base) for name, value in told.items() if name in _PATHS}
    return verb(**(told | paths | more))


def _told(verb: type[Options], section: Strict) -> dict[str, Any]:
    options = {item.name for item in dataclasses.fields(verb)}
    return {name: value for name, value in section.model_dump().items() if name in options}


def _placed(value: Any, base: Path) -> Any:
    """A path below a folder, or several; nothing, and what stands for ONNX's own cases, as it is."""
    if isinstance(value, tuple):
        return tuple(_placed(item, base) for item in value)
    return value if value in {None, CASES} else str(base / value)


def check(verb: type[Options], section: Strict, **more: Any) -> None:
    """Refuse a section whose keys can't be meant together.

    Args:
        verb: Whose options they are.
        section: Of a configuration.
        **more: Other options.

    Raises:
        ValueError: if so, as pydantic takes it.
    """
    try:
        verb(**_told(verb, section), **more)
    except UsageError as error:
        raise ValueError(str(error)) from error
