"""What a job is told, between machines: paths there become contents, and texts that come back have this one's paths.

Jobs know nothing of it. Which texts are paths is said here by the keys of payloads that have them, a closed table:
names of tensors look like paths, too, and nothing of a machine may go elsewhere because a model has such a name.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

Place = tuple[str | int, ...]
"""Keys and numbers that lead to a value in another."""

_KEYS = frozenset(
    {
        "built",
        "case",
        "database",
        "given",
        "instances",
        "judged",
        "known",
        "models",
        "network",
        "networks",
        "patch",
        "path",
    }
)


def paths_of(value: Any, place: Place = (), *, named: bool = False) -> Iterator[tuple[Place, Path]]:
    """The files and folders that a job reads.

    Args:
        value: The job's payload, or a part of it.
        place: Where in the payload that is.
        named: Whether its key says that it's a path, or some.

    Yields:
        Where in the payload, and which.
    """
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from paths_of(item, (*place, key), named=key in _KEYS)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from paths_of(item, (*place, number), named=named)
    elif named and isinstance(value, str) and Path(value).is_absolute() and Path(value).exists():
        yield place, Path(value)


def with_paths(payload: Mapping[str, Any], paths: Sequence[tuple[Place, str]]) -> dict[str, Any]:
    """A payload with other paths in some places.

    Args:
        payload: As it is.
        paths: By place.
    """
    made: dict[str, Any] = copy.deepcopy(dict(payload))
    for place, path in paths:
        here: Any = made
        for key in place[:-1]:
            here = here[key]
        here[place[-1]] = path
    return made


def with_texts(value: Any, texts: Mapping[str, str]) -> Any:
    """A plain value with parts of its texts replaced.

    Args:
        value: JSON-able.
        texts: What stands for what; the longest first.
    """
    if isinstance(value, str):
        for before in sorted(texts, key=len, reverse=True):
            value = value.replace(before, texts[before])
        return value
    if isinstance(value, Mapping):
        return {key: with_texts(item, texts) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [with_texts(item, texts) for item in value]
    return value
