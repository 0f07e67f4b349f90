"""Read a configuration file; say exactly what is wrong with it, where, and what was meant."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from conrepair.application.config.model import AuditConfig, DatasetConfig, RecipeConfig
from conrepair.ground.runtime.errors import ConfigError
from conrepair.ground.runtime.files.json_file import read_json_text, value_of
from conrepair.ground.runtime.words import shortened

_MISSING: Any = object()
_PROBLEMS = 100  # that a person may want to see at once
_GIVEN, _BITS = 200, 1000  # letters of a value, bits of a number


def read_json(path: Path, duplicates: list[str] | None = None) -> Any:
    """Read a JSON file.

    Args:
        path: Of the file.
        duplicates: Receives keys that stand twice in an object; they're refused when there's no such list.

    Raises:
        ConfigError: if it's missing or no JSON.
    """
    try:
        text = read_json_text(path)
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: no such configuration file. Give one: `conrepair run CONFIG.json`") from error
    except IsADirectoryError as error:
        raise ConfigError(f"{path} is a folder; give a JSON file") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: can't be read as UTF-8 text: {error}") from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: can't be read: {error}") from error

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        return _object(items, duplicates)

    try:
        value = value_of(text, pairs, _refuse)
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"{path}, line {error.lineno}, column {error.colno}: not valid JSON: {error.msg}"
        ) from error
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from error
    return value


def parse_config(value: Any, where: str) -> AuditConfig:
    """Check a configuration that was already read.

    Args:
        value: The JSON value.
        where: What to call it in messages.

    Raises:
        ConfigError: naming every JSON path at fault.
    """
    try:
        return AuditConfig.with_parts(value if isinstance(value, dict) else ()).model_validate(value)
    except ValidationError as error:
        raise ConfigError(
            f"{where}: the configuration doesn't fit the schema (`conrepair config schema` prints it):\n"
            + "\n".join(explain(error, value))
        ) from error


def sound_parts(value: Any) -> tuple[list[tuple[int, AuditConfig]], DatasetConfig | None]:
    """Of a configuration that isn't right as a whole what is right by itself.

    Args:
        value: The JSON value.

    Returns:
        Models, each as a configuration of its own, by their places; and the audit's data, where that's right.
    """
    whole = value if isinstance(value, dict) else {}
    items = whole.get("models")
    found: list[tuple[int, AuditConfig]] = []
    for place, item in enumerate(items if isinstance(items, list) else []):
        with contextlib.suppress(ValidationError):
            found.append((place, AuditConfig.model_validate({"models": [item]})))
    with contextlib.suppress(ValidationError):
        return found, DatasetConfig.model_validate(whole.get("dataset"))
    return found, None


def read_recipe(value: Any) -> RecipeConfig:
    """Check a recipe that was already read.

    Args:
        value: Its fields.

    Raises:
        ConfigError: naming every field at fault.
    """
    try:
        return RecipeConfig.model_validate(value)
    except ValidationError as error:
        raise ConfigError("the recipe isn't right:\n" + "\n".join(explain(error, value))) from error


def explain(error: ValidationError, value: Any) -> list[str]:
    """A line for each place at fault: its JSON path, what is wrong, what is given.

    Args:
        error: Of pydantic.
        value: What it refused.
    """
    problems: dict[str, str] = {}
    for problem in map(_named, _first_causes(error.errors())):
        path = _json_path(problem["loc"], value)
        # The alternatives of a union are refused one by one; the first is what was most likely meant.
        problems.setdefault(path, f"  {path}: {problem['msg'].removeprefix('Value error, ')}{_given(problem)}")
    shown = list(problems.values())
    more = len(shown) - _PROBLEMS
    return shown if more <= 0 else [*shown[:_PROBLEMS], f"  and {more:,} more"]


def _named(problem: Any) -> Any:
    """A name that chooses none of the alternatives is a wrong value of `name`."""
    if problem["type"] != "union_tag_invalid":
        return problem
    known, given = problem["ctx"]["expected_tags"], problem["ctx"]["tag"]
    return problem | {"loc": (*problem["loc"], "name"), "msg": f"Input should be one of {known}", "input": given}


def _first_causes(problems: list[Any]) -> list[Any]:
    """Drop "too short", which pydantic adds to a sequence whose items were refused."""
    within = {problem["loc"][:length] for problem in problems for length in range(len(problem["loc"]))}
    return [problem for problem in problems if problem["type"] != "too_short" or problem["loc"] not in within]


def _json_path(location: tuple[int | str, ...], value: Any) -> str:
    path = "$"
    for part in location:
        if value is not _MISSING and not isinstance(value, dict | list):
            break  # pydantic names the alternatives of a union, and the fields that a text stands for
        if isinstance(value, dict) and part not in value and part in {value.get("name"), "own", "plugin"}:
            continue  # the alternative that a name chose
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            value = _MISSING
        path += f"[{part}]" if isinstance(part, int) else f".{part}"
    return path


def _given(problem: Any) -> str:
    value = problem["input"]
    if isinstance(value, str | float | bool) or (isinstance(value, int) and value.bit_length() < _BITS):
        return f" (given: {shortened(json.dumps(value), _GIVEN)})"
    return ""


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not a number of JSON")


def _object(pairs: list[tuple[str, Any]], duplicates: list[str] | None) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            if duplicates is None:
                raise ValueError(f"the key '{key}' stands twice in one object; remove one")
            duplicates.append(key)
        result[key] = value
    return result
