"""JSON of people: bounded in size and in depth, so that whoever walks it comes to an end."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from conrepair.ground.runtime.files.ordinary_file import read_ordinary

_MOST = 256 << 20  # bytes; a result of a large audit has some MiB
_VALUES = 16 << 20  # each of which takes a hundred bytes of memory, and three in a file
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_DEPTH = 200  # lists and objects within one another; those who walk a value call themselves so often


def read_json_text(path: Path) -> str:
    """The text of a file, or of the pipe that a shell hands over as one.

    Args:
        path: A file or a pipe.

    Raises:
        OSError: if it can't be opened or read, or is a device.
        ValueError: if it's too large, or isn't UTF-8.
    """
    content = _of_pipe(path) if stat.S_ISFIFO(path.stat().st_mode) else read_ordinary(path, _MOST)
    return content.decode("utf-8-sig")


def _of_pipe(path: Path) -> bytes:
    # A pipe that nobody writes to is empty; opened otherwise, it would be waited for.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as stream:
        os.set_blocking(descriptor, True)
        content = stream.read(_MOST + 1)
    if len(content) > _MOST:
        raise ValueError(f"it has more than {_MOST >> 20} MiB, which no JSON that is read here has")
    return content


def value_of(
    text: str,
    pairs: Callable[[list[tuple[str, Any]]], Any] | None = None,
    constant: Callable[[str], Any] | None = None,
) -> Any:
    """The value that JSON stands for.

    Args:
        text: JSON.
        pairs: Makes an object of its keys and values; default: a dict.
        constant: Called for NaN and infinities, which aren't JSON; default: they're numbers.

    Raises:
        ValueError: if it's no JSON, nested too deeply, of too many values, a number has thousands of digits, or a
            text can't be UTF-8.
    """
    deep = f"it's nested more than {_DEPTH} deep"
    if len(text) > _VALUES and sum(map(text.count, "[{,")) > _VALUES:
        raise ValueError(f"it has more than {_VALUES >> 20} million values")
    try:
        value = json.loads(text, object_pairs_hook=pairs, parse_constant=constant)
    except RecursionError as error:
        raise ValueError(deep) from error
    level = [value]
    for _ in range(_DEPTH):
        level = [item for outer in level for item in _items(outer)]
        if not level:
            break
    else:
        raise ValueError(deep)
    if _SURROGATE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"a text in it is no text: {error.reason} ({error.object[error.start]!r})") from error
    return value


def _items(value: Any) -> list[Any]:
    """The lists and objects that lie in one."""
    within = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [item for item in within if isinstance(item, dict | list)]
