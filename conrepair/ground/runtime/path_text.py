"""Text that shall be a path: from people, from configurations, from inside of models."""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from collections.abc import Hashable
from pathlib import Path

from conrepair.ground.runtime.errors import UsageError
from conrepair.ground.runtime.words import shortened

_NAME = 255  # bytes that Linux, macOS and Windows allow for one name
_WHOLE = 4095  # and for all of them together
_BESIDE = 55  # bytes of a name that are left for what is put beside it: ".data", "-repaired", a scratch folder
_INSIDE = 600  # bytes of a path that are left for what is put into a folder
_HASH = 8
_SHOWN = 60
_FORBIDDEN = re.compile(r'[<>:"/\\|?*]')
_ENDS = re.compile(r"^[. ]|[. ]$")
_DEVICES = re.compile(r"^(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9\u00b9\u00b2\u00b3])\s*(\.|$)", re.IGNORECASE)


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


def model_path(path: str | os.PathLike[str]) -> Path:
    """Where a model is, absolute, under the name that it's given by: a hub's cache has links to files without names.

    Args:
        path: Of a file or folder; links on the way to it are followed.
    """
    given = Path(path)
    return real_path(given.parent) / given.name if given.name not in {"", ".."} else real_path(given)


def fitting_name(text: str, most: int = _NAME - _BESIDE) -> str:
    """A name as it is where every system can call a file or a folder so, else one of it and its hash.

    It's one name, that isn't hidden and leads nowhere: without separators, dots at its ends, characters that don't
    print or that Windows has other uses for. `conrepair.ground.runtime.path_text.Names` also keeps several apart.

    Args:
        text: Any, from anywhere.
        most: Bytes that it may have.
    """
    name = _FORBIDDEN.sub("_", "".join([letter if letter.isprintable() else "_" for letter in text]))
    name = _DEVICES.sub(r"_\g<0>", _ENDS.sub("_", name)) or "_"
    size = len(name.encode())
    if name == text and size <= most:
        return name
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:_HASH]
    if size + _HASH + 1 <= most:
        return f"{name}-{digest}"
    half, whole = (most - _HASH - 2) // 2, name.encode()
    return f"{whole[:half].decode(errors='ignore')}-{digest}-{whole[-half:].decode(errors='ignore')}"


def in_utf8(name: str) -> str:
    r"""A file's name as it can be written anywhere: bytes that aren't UTF-8 as escapes (`\xe9`).

    Args:
        name: As the system lists it.
    """
    return name.encode(errors="surrogateescape").decode(errors="backslashreplace")


# Names of files for texts of others: no two are confused, by whatever file system.


class FileNames:
    """Names in one folder: each thing has its own, also where case and forms of letters don't count."""

    def __init__(self) -> None:
        self._names: dict[Hashable, str] = {}
        self._taken: dict[str, int] = {}

    def of(self, thing: Hashable, wanted: str) -> str:
        """The name of a thing: always the same one, and no other thing's.

        Args:
            thing: What is told from others: a text, or several.
            wanted: What to call it, where a file can be called so and nothing else is.

        Returns:
            A name as of `fitting_name`: without folders, and leading nowhere.
        """
        if thing not in self._names:
            self._names[thing] = self._free(fitting_name(wanted))
        return self._names[thing]

    def _free(self, wanted: str) -> str:
        """It, or with the first number behind it that no other has."""
        first, name = _folded(wanted), wanted
        while _folded(name) in self._taken:
            self._taken[first] += 1
            name = fitting_name(f"{wanted}-{self._taken[first]}")
        self._taken[_folded(name)] = 1
        return name


def _folded(name: str) -> str:
    """The same for names that some file system takes for one."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def typed(word: str | Path) -> str:
    """A path as a person would type it here; a file whose name begins as options do isn't one."""
    path = Path(word)
    near = min(os.path.relpath(path), str(path), key=len) if path.is_absolute() else str(word)
    return f"./{near}" if near.startswith("-") and path.exists() else near
