"""The names of a model's classes in the order of its outputs: a list of them as a file, or in a model's file."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from conrepair.ground.runtime.errors import DataError
from conrepair.ground.runtime.files.ordinary_file import NotOrdinaryError, read_ordinary
from conrepair.ground.runtime.words import shortened

FILES = ("classes.txt", "labels.txt")
_LARGEST = 1 << 24  # bytes of a list
_SHOWN, _LETTERS = 12, 30  # classes of a sentence, letters of one
_WITH_BACKGROUND = 1001  # of ImageNet: labels don't count the class in front
_NUMBERED = re.compile(r"(\d{1,6})[\s:,;]+(\S.*)")


@dataclass(frozen=True)
class ClassNames:
    """Classes in the order of a model's outputs.

    Attributes:
        names: One for each output.
        source: Where they come from, in words.
    """

    names: tuple[str, ...]
    source: str

    def numbers(self) -> dict[str, int]:
        """The number of each class by its name in lower case."""
        return {name.casefold(): place for place, name in reversed([*enumerate(self.names)])}

    def lacks(self, wanted: Collection[str]) -> list[str]:
        """Those names that aren't among them, sorted."""
        known = self.numbers()
        return sorted({name for name in wanted if name.casefold() not in known})


def numbered_in_words(names: Sequence[str]) -> str:
    """Classes with their numbers: "0 = circle, 1 = cross"."""
    shown = [f"{place} = {shortened(name, _LETTERS)}" for place, name in enumerate(names[:_SHOWN])]
    more = f", ... ({len(names)} classes)" if len(names) > _SHOWN else ""
    return f"{', '.join(shown)}{more}"


def read_class_names(file: Path) -> ClassNames:
    """Read a list of classes: a name a line, with or without its number ("0 circle") in front.

    Args:
        file: Of text.

    Raises:
        DataError: if it can't be read, or has no name, or one twice.
    """
    return _parsed(read_list(file, "The list of classes"), str(file))


def read_list(file: Path, called: str) -> bytes:
    """All of a file that a person wrote.

    Args:
        file: Of text.
        called: What a message calls it.

    Raises:
        DataError: if it can't be read.
    """
    try:
        return read_ordinary(file, _LARGEST)
    except NotOrdinaryError as error:
        raise DataError(f"{called} {error}") from error
    except OSError as error:
        raise DataError(f"{called} {file} can't be read: {error.strerror}. Check the path.") from error


def _parsed(content: bytes, source: str) -> ClassNames:
    try:
        lines = [line.strip() for line in content.decode("utf-8-sig").splitlines()]
    except UnicodeDecodeError as error:
        raise DataError(f"The list of classes {source} is no text in UTF-8. Write a class's name a line.") from error
    names = [line for line in lines if line]
    numbered = [_NUMBERED.fullmatch(name) for name in names]
    if names and all(found and int(found[1]) == place for place, found in enumerate(numbered)):
        names = [found[2] for found in numbered if found]
    if len(names) == _WITH_BACKGROUND:
        names = names[1:]
    if not names:
        raise DataError(f"The list of classes {source} is empty. Write a class's name a line, in the model's order.")
    return ClassNames(tuple(names), source)


def lists_nearby(folder: Path, models: Sequence[Path]) -> Iterator[ClassNames]:
    """Lists of classes in a folder of photos, beside it, beside models, and in TFLite's metadata.

    What can't be read as such a list is none.

    Args:
        folder: Of photos.
        models: Files that run on them.
    """
    places = [folder, folder.absolute().parent, *(path.absolute().parent for path in models)]
    files = dict.fromkeys(place / name for place in places for name in FILES)
    for file in files:
        if file.is_file() and (found := _list_or_none(file)) is not None:
            yield found
    for path in models:
        if path.suffix.lower() == ".tflite" and path.is_file() and zipfile.is_zipfile(path):
            yield from _in_metadata(path)


def _list_or_none(file: Path) -> ClassNames | None:
    try:
        return read_class_names(file)
    except DataError:  # nobody named it: a file of this name may be for something else
        return None


def _in_metadata(path: Path) -> Iterator[ClassNames]:
    """Lists that TFLite's metadata associate with a model: text files in an archive behind it."""
    try:
        with zipfile.ZipFile(path) as archive:
            for item in archive.infolist():
                if item.filename.lower().endswith(".txt") and item.file_size <= _LARGEST:
                    with archive.open(item) as stream:
                        yield _parsed(stream.read(_LARGEST), f"{item.filename} in {path.name}")
    except (zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError, DataError):
        return  # no list that can be read, as before
