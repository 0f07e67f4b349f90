"""Text that shall be a path: from people, from configurations, from inside of models."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from conrepair.runtime.errors import UsageError
from conrepair.runtime.words import shortened

__all__ = ["checked_path", "fitting_name", "in_utf8", "path_problem", "real_path"]

_NAME = 255  # bytes that Linux, macOS and Windows allow for one name
_WHOLE = 4095  # and for all of them together
_BESIDE = 55  # bytes of a name that are left for what is put beside it: ".data", "-repaired", a scratch folder
_INSIDE = 600  # bytes of a path that are left for what is put into a folder
_HASH = 8
_SHOWN = 60


def path_problem(text: str, *, output: bool = False) -> str:
    """Why nothing can lie at a path, without looking at the disk; "" where something can.

    Args:
        text: The path.
        output: Whether something is to be written there, with files beside it that are named after it.
    """
    shown, most, whole = shortened(text, _SHOWN), _NAME, _WHOLE
    if output:
        most, whole = most - _BESIDE, whole - _INSIDE
    if "\0" in text:
        return f"{shown} is no path: it holds a null character"
    try:
        names = [name.encode() for name in text.split("/")]
    except UnicodeEncodeError:
        return f"{shown} isn't UTF-8, so no report can name it; rename it"
    longest = max(map(len, names))
    if longest > most:
        return f"{shown} is no path here: a name in it has {longest} bytes, and {most} are the most"
    if (length := sum(map(len, names)) + len(names) - 1) > whole:
        return f"{shown} is no path here: it has {length} bytes, and {whole} are the most"
    return ""


def checked_path(given: str | os.PathLike[str]) -> Path:
    """A path that something can lie at.

    Args:
        given: From a person.

    Raises:
        UsageError: if nothing can.
    """
    path = Path(given)
    if problem := path_problem(str(path)):
        raise UsageError(problem)
    return path


def real_path(path: str | os.PathLike[str]) -> Path:
    """Where a path leads, absolute; links that lead to themselves stay, and then there's nothing there."""
    return Path(os.path.realpath(path))


def fitting_name(text: str, most: int = _NAME - _BESIDE) -> str:
    """A name as it is where files can be named after it, else its ends and the hash of all of it.

    Args:
        text: A name without folders.
        most: Bytes that it may have.
    """
    name = os.fsencode(text)
    if len(name) <= most:
        return text
    half = (most - _HASH - 2) // 2
    digest = hashlib.sha256(name).hexdigest()[:_HASH]
    return f"{name[:half].decode(errors='ignore')}-{digest}-{name[-half:].decode(errors='ignore')}"


def in_utf8(name: str) -> str:
    r"""A file's name as it can be written anywhere: bytes that aren't UTF-8 as escapes (`\xe9`).

    Args:
        name: As the system lists it.
    """
    return name.encode(errors="surrogateescape").decode(errors="backslashreplace")
