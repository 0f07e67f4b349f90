"""Values that cross the border of a process as JSON, and come back as what they were: types say how."""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
from collections.abc import Callable, Mapping, Set
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_type_hints

import numpy as np

if TYPE_CHECKING:
    import pydantic

Value = TypeVar("Value")


def plain(value: Any) -> Any:
    """A value as JSON has it: dataclasses as mappings of their fields, sets as lists, enumerations by their values.

    Args:
        value: Of dataclasses, containers, texts, paths and numbers; keys are texts or numbers.
    """
    return json.loads(json.dumps(value, default=_parts))


def _parts(value: Any) -> Any:
    """A value as JSON can hold it, for types that JSON lacks."""
    if dataclasses.is_dataclass(value):
        return {name: getattr(value, name) for name in _fields(cast(Any, type(value)))}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Set):
        return sorted(value, key=str)
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} doesn't cross the border of a process")


@functools.cache
def _fields(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


def typed(kind: type[Value], value: Any) -> Value:
    """The value that `plain` was given.

    Args:
        kind: Its type.
        value: As JSON has it, or the value itself.

    Raises:
        pydantic.ValidationError: if that's nothing of the kind.
    """
    key: Any = kind
    result: Value = value if type(value) is kind else _adapter(key).validate_python(value)
    return result


@functools.cache
def _adapter(kind: Any) -> pydantic.TypeAdapter[Any]:
    """What checks a value: making one takes far longer than using it."""
    import pydantic  # a process that runs nothing has no need of it

    return pydantic.TypeAdapter(kind)


def call(function: Callable[..., Any], arguments: Mapping[str, Any], folder: Path) -> Any:
    """Do a job: a function of a folder and of values that its annotations tell.

    Args:
        function: Its module imports what its annotations name.
        arguments: By name, as `plain` gives them, or the values themselves.
        folder: Receives what it makes.
    """
    kinds = _annotations(function)
    return function(folder=folder, **{name: typed(kinds.get(name, Any), value) for name, value in arguments.items()})


@functools.cache
def _annotations(function: Callable[..., Any]) -> dict[str, Any]:
    return get_type_hints(function)
