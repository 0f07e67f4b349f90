"""What a function was called with, checked at the door: what can't be meant is answered by its name."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from conrepair.ground.runtime.bounds import MOST_SAMPLES, MOST_SECONDS, MOST_SEED
from conrepair.ground.runtime.errors import UsageError
from conrepair.ground.runtime.path_text import path_problem
from conrepair.ground.runtime.words import shortened

Reader = Callable[[str, Any], Any]
"""Given an argument's name and value, returns what's meant, or raises `UsageError`."""

_MOST, _SHOWN, _BITS = 1_000_000, 60, 200


def refused(name: str, value: Any, wanted: str) -> UsageError:
    """The error for an argument that can't be meant.

    Args:
        name: Of the argument.
        value: That was given.
        wanted: What to give.
    """
    plain = value is None or type(value) in {str, float, bool} or _is_short(value)
    kind = type(value).__qualname__
    return UsageError(f"{name} is {shortened(repr(value), _SHOWN) if plain else f'of type {kind}'}: give {wanted}.")


def _is_short(value: Any) -> bool:
    return type(value) is int and value.bit_length() < _BITS


def _is_bool(value: Any) -> bool:
    """Whether it's a truth value, NumPy's too; a parser that asks this needn't load NumPy."""
    return isinstance(value, bool) or (
        type(value).__module__ == "numpy" and type(value).__name__ in {"bool", "bool_"}
    )


def whole(least: int, most: int = _MOST) -> Reader:
    """A whole number, NumPy's too."""

    def read(name: str, value: Any) -> int:
        if _is_bool(value) or not isinstance(value, Integral):
            raise refused(name, value, f"a whole number, at least {least}")
        if not least <= int(value) <= most:
            raise refused(name, value, f"at least {least}" if value < least else f"at most {most:,}")
        return int(value)

    return read


def real(least: float = -math.inf, most: float = math.inf) -> Reader:
    """A finite number, NumPy's too."""

    def read(name: str, value: Any) -> float:
        if _is_bool(value) or not isinstance(value, Real):
            raise refused(name, value, "a number")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise refused(name, value, "a finite number")
        if not least <= number <= most:
            raise refused(name, value, f"at least {least:g}" if number < least else f"at most {most:,g}")
        return number

    return read


def flag(name: str, value: Any) -> bool:
    """True or False: "no" would be true, and a number hardly meant."""
    if not _is_bool(value):
        raise refused(name, value, "True or False")
    return bool(value)


def text(name: str, value: Any) -> str:
    """A text."""
    if not isinstance(value, str):
        raise refused(name, value, "a text")
    return value


def path(name: str, value: Any) -> Path:
    """A path that something can lie at."""
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str) or not os.fspath(value):
        raise refused(name, value, "a path")
    if problem := path_problem(str(Path(value))):
        raise UsageError(f"{name}: {problem}")
    return Path(value)


def path_text(name: str, value: Any) -> str:
    """A path, or a word in its place, as text."""
    return str(path(name, value))


def classes(name: str, value: Any) -> Any:
    """Names of classes, or the path of a list of them."""
    return path(name, value) if isinstance(value, str | os.PathLike) else NAMES(name, value)


def items_of(read: Reader, wanted: str) -> Reader:
    """A list of so much; a lone text is none, as its letters would be taken for items."""

    def read_all(name: str, value: Any) -> tuple[Any, ...]:
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
            raise refused(name, value, f"a list of {wanted}")
        return tuple(read(f"{name}[{place}]", item) for place, item in enumerate(value))

    return read_all


def one_or_more(read: Reader, wanted: str) -> Reader:
    """A list of so much, or one alone."""
    read_all = items_of(read, wanted)

    def read_any(name: str, value: Any) -> tuple[Any, ...]:
        alone = isinstance(value, str) or not isinstance(value, Iterable)
        found: tuple[Any, ...] = read_all(name, [value] if alone else value)
        return found

    return read_any


def mapping_of(read: Reader, wanted: str) -> Reader:
    """A mapping of texts to so much."""

    def read_all(name: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise refused(name, value, f"a dict of {wanted}")
        return {text(f"a key of {name}", key): read(f"{name}[{key!r}]", item) for key, item in value.items()}

    return read_all


def recipe(name: str, value: Any) -> Any:
    """A recipe: its name, the path of a recipe.json, or its fields."""
    from conrepair.ground.data.pictures.recipe import Recipe

    if not isinstance(value, Mapping | Recipe):
        path(name, value)
    return value


def _file(name: str, value: Any) -> str:
    """A path as it's written: what is called as something else is reached by "./"."""
    path(name, value)
    return str(os.fspath(value))


def _declared(name: str, value: Any) -> Any:
    from conrepair.ground.data.tensor_spec import TensorSpec

    return value if isinstance(value, TensorSpec) else text(name, value)


def pair(name: str, value: Any) -> Any:
    """Two whole numbers: the fewest and the most."""
    found = items_of(whole(0), "two whole numbers")(name, value)
    if len(found) != 2:
        raise refused(name, value, "two whole numbers, the fewest and the most")
    return found


def anything(_: str, value: Any) -> Any:
    """Any value: the function that takes it checks it."""
    return value


def _option(name: str, value: Any) -> Any:
    """A plain value or a list or mapping of such; whether it's right is said by what it's an option of."""
    if isinstance(value, Mapping):
        return {key: _option(name, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_option(name, item) for item in value]
    if not (value is None or type(value) in {str, float, bool} or _is_short(value)):
        raise refused(name, value, "a text, a number, True or False, or a list of these")
    return value


def _callable(name: str, value: Any) -> Any:
    if not callable(value):
        raise refused(name, value, "a function")
    return value


COUNT = whole(1)
SAMPLES = whole(1, MOST_SAMPLES)
SEED = whole(0, MOST_SEED)
SECONDS = real(0, MOST_SECONDS)
NAMES = items_of(text, "names")
MODELS = items_of(anything, "models")
DECLARED = one_or_more(_declared, "inputs, each '[NAME=]batch,3,224,224[:dtype]'")
OPTIONS = mapping_of(_option, "options by name")
BY_CONVERTER = mapping_of(mapping_of(_option, "options by name"), "options by converter")
FILES = items_of(_file, "paths")
FUNCTIONS = items_of(_callable, "functions")
SHARES = mapping_of(real(), "shares by name")
