"""Folders of photos, with labels where they have some.

The order of the photos is the natural one of their names (2 before 10), and depends on nothing
else. Labels are read from the names of sub-folders, from file names, or from a CSV file: numbers,
or names of classes, whose numbers a list of them tells (`class_names`), else their alphabetical order.
"""

from __future__ import annotations

import collections
import csv
import dataclasses
import io
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Literal, TypeVar

from conrepair.ground.data.pictures.class_names import ClassNames, lists_nearby, numbered_in_words, read_list
from conrepair.ground.data.spread import spread_places
from conrepair.ground.runtime.errors import DataError
from conrepair.ground.runtime.files.ordinary_file import kind_of_file
from conrepair.ground.runtime.path_text import in_utf8, real_path

LabelSource = Literal["auto", "subfolders", "filenames", "none"] | Path

_LABELS_FILE = "labels.csv"
_LARGEST = 1 << 30  # bytes of a photo, and of a list of labels
LABEL_SOURCES = ("auto", "subfolders", "filenames", "none")
_RUNNING = "0123456789 _-()."  # what a running number at the end of a name is made of
_FEW = 20  # words that are told
_FILE_HEADINGS = frozenset({"file", "filename", "file_name", "image", "name", "path", "photo"})
# Longer numbers are names: Python refuses to read thousands of digits.
_INTEGER = re.compile(r"[+-]?\d{1,18}", re.ASCII)
# An integer between the ends of the stem, underscores and hyphens.
_LABEL_IN_STEM = re.compile(r"(?:^|(?<=[_-]))(\d+)(?=$|[_-])", re.ASCII)

_Item = TypeVar("_Item")


@dataclasses.dataclass(frozen=True)
class Photo:
    r"""One photo file.

    Attributes:
        path: Where the file is.
        name: Its path relative to the folder, with slashes; bytes that aren't UTF-8 as escapes (`\xe9`).
        label: The index of its class, or None if it is not known.
    """

    path: Path
    name: str
    label: int | None


@dataclasses.dataclass(frozen=True)
class PhotoSet:
    """Photos in a fixed order.

    Attributes:
        name: The folder's name.
        photos: The photos; at least one.
        classes: The names that the labels index, or None if the labels are plain integers or
            there are none.
        numbering: Which number stands for which class, and who says so, in words; "" for integers.
        hint: How labels could be had, in words, where there are none.
        total: How many photos the folder has.
    """

    name: str
    photos: tuple[Photo, ...]
    classes: tuple[str, ...] | None
    numbering: str = ""
    hint: str = ""
    total: int = 0


@dataclasses.dataclass(frozen=True)
class _Labels:
    """The labels of photos by name, the names of classes that they index, and who numbered these."""

    by_name: dict[str, int]
    classes: tuple[str, ...] | None
    numbering: str = ""


def read_photo_folder(
    folder: Path,
    *,
    labels: LabelSource = "auto",
    limit: int | None = None,
    classes: ClassNames | None = None,
    models: Sequence[Path] = (),
) -> PhotoSet:
    """Lists the photos of a folder and of those below it.

    A file counts as a photo if its suffix is one of a format that Pillow decodes. Hidden files and
    folders are skipped, and links to folders are not followed. Files are not opened.

    Args:
        folder: The folder.
        labels: Where labels come from:

            * "subfolders": the first folder of each photo's name. If all are integers they are the
              labels; else the folders that hold photos, sorted, enumerate the classes.
            * "filenames": the name in front of running numbers, where there are several
              (``circle_003.jpg`` is circle), else the last integer of the file's stem that underscores,
              hyphens or the stem's ends delimit (``imagenet_00_243.jpg`` is 243).
            * a path: a CSV file with the columns file (relative to `folder`) and label, with or
              without a header. Labels are integers, or names of classes.
            * "none": there are none.
            * "auto": the folder's labels.csv if it has one; else
              sub-folders if every photo is in one and there are at least two; else file names
              that begin with classes of a list; else none.
        limit: At most this many photos, spread over all; labels are enumerated on all of them.
        classes: In the order of the model's outputs, which numbers names. Without them a list in the folder, beside
            it or beside the models does that which has all names, and else alphabetical order.
        models: That run on the photos.

    Returns:
        The photos in natural order, at least one.

    Raises:
        DataError: The folder is missing, no folder, unreadable or without photos; an argument is
            wrong; or a label is missing, ambiguous or unreadable.
    """
    folder = Path(folder)
    _check_arguments(labels, limit)
    names = _list_photos(folder)
    lists = _Lists(classes, folder, models)
    found = _read_labels(folder, names, labels, lists)
    chosen = [names[place] for place in spread_places(len(names), limit)]
    for name in chosen:
        _check_file(folder / name, name)
    photos = (Photo(folder / name, in_utf8(name), found.by_name.get(name)) for name in chosen)
    own = None if found.classes is None else tuple(map(in_utf8, found.classes))
    hint = "" if found.by_name or labels == "none" else _hint(names)
    name = in_utf8(real_path(folder).name) or str(folder)
    return PhotoSet(name, tuple(photos), own, in_utf8(found.numbering), in_utf8(hint), len(names))


def _check_arguments(labels: LabelSource, limit: int | None) -> None:
    if not isinstance(labels, Path) and labels not in LABEL_SOURCES:
        raise DataError(
            f"Unknown source of labels {labels!r}. Use one of {', '.join(LABEL_SOURCES)}, or the path of a CSV file."
        )
    if limit is not None and limit < 1:
        raise DataError(f"The limit on photos must be at least 1, but is {limit}.")


# --- Listing ---------------------------------------------------------------------------------


def _list_photos(folder: Path) -> list[str]:
    """Returns the names of all photos below a folder, in natural order."""
    if not folder.exists():
        raise DataError(f"The photo folder {folder} doesn't exist. Check the path.")
    if not folder.is_dir():
        raise DataError(f"{folder} is a file, not a folder of photos. Name the folder it is in.")
    from conrepair.ground.data.pictures.decode import photo_suffixes  # with Pillow, which other data needs none of

    suffixes = photo_suffixes()
    photos, others = _partition(_walk(folder), lambda name: PurePosixPath(name).suffix.lower() in suffixes)
    if not photos:
        raise DataError(
            f"There are no photos in {folder} or below it; found instead: {_summary(others)}. "
            "Name a folder of photos with suffixes such as .jpg or .png; hidden files are skipped."
        )
    return sorted(photos, key=_natural_key)


def _check_file(path: Path, name: str) -> None:
    """Refuse what has a photo's name and would be waited for, or has no end, or isn't there.

    Raises:
        DataError: saying what it is.
    """
    try:
        found = path.stat()
    except OSError as error:
        what = "a link that leads nowhere" if path.is_symlink() else f"unreadable ({error.strerror})"
    else:
        what = kind_of_file(found.st_mode)
        if found.st_size > _LARGEST:
            raise DataError(
                f"{in_utf8(name)} in the photo folder has {found.st_size:,} bytes (limit {_LARGEST:,}). Remove it."
            )
        if not what:
            return
    raise DataError(f"{in_utf8(name)} in the photo folder is {what}, not a file. Remove or rename it.")


def _walk(folder: Path) -> Iterator[str]:
    """Yields the relative names, with slashes, of all files that are not hidden."""
    for current, folders, files in os.walk(folder, onerror=_refuse_folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        parent = Path(current).relative_to(folder)
        for name in files:
            if not name.startswith("."):
                yield (parent / name).as_posix()


def _refuse_folder(error: OSError) -> None:
    raise DataError(
        f"The folder {error.filename} can't be listed: {error.strerror}. Make it readable, or choose another folder."
    ) from error


def _natural_key(name: str) -> tuple[object, ...]:
    """Returns a sort key by which numbers within names compare as numbers."""
    # Splitting by a group alternates text and digits, so that equal places have equal types. The
    # name itself comes last: names that differ in case or in zeros alone keep a fixed order.
    return (*(_natural_part(part) for part in PurePosixPath(name).parts), ((name,),))


def _natural_part(part: str) -> tuple[object, ...]:
    pieces = re.split(r"(\d+)", part.casefold(), flags=re.ASCII)
    return tuple(int(piece) if index % 2 else piece for index, piece in enumerate(pieces))


def _summary(names: Sequence[str]) -> str:
    """Describes files by their suffixes, the most frequent first."""
    if not names:
        return "nothing"
    counts = collections.Counter(PurePosixPath(name).suffix.lower() for name in names)
    # Ties by name: the order in which files are found depends on the file system.
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    parts = [f"{count} {suffix or 'without suffix'}" for suffix, count in ranked[:5]]
    rest = sum(count for _, count in ranked[5:])
    return ", ".join([*parts, f"{rest} other"] if rest else parts)


def _partition(items: Iterable[_Item], condition: Callable[[_Item], bool]) -> tuple[list[_Item], list[_Item]]:
    """Splits items into those that fulfil a condition and the others."""
    chosen: list[_Item] = []
    others: list[_Item] = []
    for item in items:
        (chosen if condition(item) else others).append(item)
    return chosen, others


# --- Labels ----------------------------------------------------------------------------------


class _Lists:
    """The lists of classes that may number names: the one that's given alone, else those nearby."""

    def __init__(self, given: ClassNames | None, folder: Path, models: Sequence[Path]) -> None:
        self._given, self.is_given = given, given is not None
        self._nearby: Iterable[ClassNames] = () if given is not None else lists_nearby(folder, models)

    def fitting(self, labels: Collection[str]) -> ClassNames | None:
        """The one that is given where its names are meant, or the first that has all of these; None without any.

        Raises:
            DataError: if the one that is given lacks a name.
        """
        if self._given is None:
            self._nearby = list(self._nearby)
            return next((item for item in self._nearby if not item.lacks(labels)), None)
        lacking = self._given.lacks(labels)
        if lacking and all(map(_INTEGER.fullmatch, labels)):
            return None
        if lacking:
            raise DataError(
                f"The list of classes {self._given.source} doesn't have {', '.join(lacking[:5])}, which photos are "
                f"labelled with; it has {numbered_in_words(self._given.names)}. Give the names as in the labels."
            )
        return self._given


def _read_labels(folder: Path, names: Sequence[str], source: LabelSource, lists: _Lists) -> _Labels:
    """Reads the labels of all photos from a source, after settling what "auto" means."""
    if source == "auto":
        source = _choose_source(folder, names, lists)
    if isinstance(source, Path):
        return _number(_labels_from_csv(source, names), lists)
    if source == "subfolders":
        return _number(_labels_from_subfolders(folder, names), lists)
    if source == "filenames":
        return _number(_labels_from_names(folder, names, lists), lists)
    return _Labels({}, None)


def _choose_source(folder: Path, names: Sequence[str], lists: _Lists) -> LabelSource:
    file = folder / _LABELS_FILE
    if file.is_file():
        return file
    if all("/" in name for name in names) and len({_first_part(name) for name in names}) > 1:
        return "subfolders"
    return "filenames" if _begin_with_classes(names, lists) else "none"


def _first_part(name: str) -> str:
    return name.split("/", 1)[0]


def _labels_from_subfolders(folder: Path, names: Sequence[str]) -> dict[str, str]:
    inside, outside = _partition(names, lambda name: "/" in name)
    if outside:
        raise DataError(
            f"Labels are to come from sub-folders, but {_some(outside)} in {folder} is in none. "
            "Move each photo into the folder of its class, or choose another source of labels."
        )
    return {name: _first_part(name) for name in inside}


def _labels_from_names(folder: Path, names: Sequence[str], lists: _Lists) -> dict[str, str]:
    if _begin_with_classes(names, lists) or _are_counted(names):
        return {name: _beginning(name) for name in names}
    texts = {name: _label_in_stem(name) for name in names}
    without = [name for name, text in texts.items() if not text]
    if without:
        raise DataError(
            f"Labels are to come from file names, but {_some(without)} in {folder} doesn't have "
            "an integer between underscores or hyphens, and doesn't begin with a class. Name photos as in "
            "circle_003.jpg or photo_12.jpg, give the list of classes that names begin with (--classes), or choose "
            "another source of labels."
        )
    return {name: text for name, text in texts.items() if text}


def _beginning(name: str) -> str:
    """What stands in a file's name in front of its running number."""
    return PurePosixPath(name).stem.rstrip(_RUNNING)


def _begin_with_classes(names: Sequence[str], lists: _Lists) -> bool:
    """Whether each name begins with a class of a list."""
    labels = {_beginning(name) for name in names}
    try:
        return "" not in labels and lists.fitting(labels) is not None
    except DataError:  # of the list that is given, which may be meant for other labels than names
        return False


def _are_counted(names: Sequence[str]) -> bool:
    """Whether names begin with a few words, behind each of which photos are counted."""
    stems = {PurePosixPath(name).stem for name in names}
    words = {_beginning(name) for name in names}
    return "" not in words and 1 < len(words) <= len(names) / 2 and len(stems) == len(names)


def _hint(names: Sequence[str]) -> str:
    """That names begin with what may be classes, where nothing says that they are."""
    words = sorted({_beginning(name) for name in names})
    if not _are_counted(names) or len(words) > _FEW:
        return ""
    return f"names begin with {', '.join(words)}: --labels filenames takes these for classes"


def _label_in_stem(name: str) -> str | None:
    """Returns the last delimited integer of a file's stem; a stem that is only digits has none."""
    stem = PurePosixPath(name).stem
    matches = _LABEL_IN_STEM.findall(stem)
    return matches[-1] if matches and matches[-1] != stem else None


def _number(texts: dict[str, str], lists: _Lists) -> _Labels:
    """Numbers labels by the list of classes that has them; reads integers; else enumerates names in sorted order."""
    whole = all(_INTEGER.fullmatch(text) for text in texts.values())
    known = lists.fitting(set(texts.values())) if not whole or lists.is_given else None
    if known is not None:
        by_list = known.numbers()
        numbers = {name: by_list[text.casefold()] for name, text in texts.items()}
        return _Labels(numbers, known.names, f"{numbered_in_words(known.names)}, as {known.source} has them")
    if whole:
        numbers = {name: int(text) for name, text in texts.items()}
        for name, number in numbers.items():
            if number < 0:
                raise DataError(f"The label of {name} is {number}. Labels index classes: use integers from 0.")
        return _Labels(numbers, None)
    classes = tuple(sorted(set(texts.values())))
    indices = {label: index for index, label in enumerate(classes)}
    words = f"{numbered_in_words(classes)}, in alphabetical order; --classes FILE (a name a line) gives the model's"
    return _Labels({name: indices[text] for name, text in texts.items()}, classes, words)


def _some(names: Sequence[str]) -> str:
    """Names the first of several photos, and says how many more there are."""
    more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
    return f"{names[0]}{more}"


# --- CSV -------------------------------------------------------------------------------------


def _labels_from_csv(file: Path, names: Sequence[str]) -> dict[str, str]:
    """Reads the labels of all photos from a CSV file.

    The file column is looked up among the photos that were found, never opened as a path: a row
    can't reach outside of the folder.
    """
    known = frozenset(names)
    texts: dict[str, str] = {}
    first_lines: dict[str, int] = {}
    for position, (line, cells) in enumerate(_csv_rows(file)):
        if position == 0 and _is_header(cells, known):
            continue
        where = f"{file}, line {line}"
        name, label = _csv_entry(where, cells, known)
        if name in texts:
            raise DataError(
                f"{where}: {name} already has a label, on line {first_lines[name]}. Remove one of the two rows."
            )
        texts[name] = label
        first_lines[name] = line
    without = [name for name in names if name not in texts]
    if without:
        raise DataError(
            f"{file} has no row for {_some(without)}. Add a row for each photo, remove the photos, "
            "or choose another source of labels ('none' for no labels)."
        )
    _check_kinds(file, texts, first_lines)
    return texts


def _csv_rows(file: Path) -> list[tuple[int, list[str]]]:
    """Returns the rows that are not blank, stripped, each with its line number."""
    try:
        text = read_list(file, "The labels file").decode("utf-8-sig")
        reader = csv.reader(io.StringIO(text, newline=""))
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(
            f"The labels file {file} is not CSV in UTF-8: {error}. Save it as CSV with the columns file and label."
        ) from error
    return [(line, cells) for line, cells in rows if any(cells)]


def _is_header(cells: Sequence[str], known: frozenset[str]) -> bool:
    return bool(cells) and cells[0].lower() in _FILE_HEADINGS and cells[0] not in known


def _csv_entry(where: str, cells: Sequence[str], known: frozenset[str]) -> tuple[str, str]:
    """Returns the photo's name and the label of one row."""
    if len(cells) != 2 or not all(cells):
        raise DataError(
            f"{where}: a row has two columns, file and label, but this one is {','.join(cells)!r}. Correct the row."
        )
    file, label = cells
    for candidate in (file, _normal(file), _normal(file.replace("\\", "/"))):
        if candidate in known:
            return candidate, label
    if PurePosixPath(file).is_absolute() or ".." in re.split(r"[/\\]", file):
        raise DataError(
            f"{where}: {file!r} leads outside of the photo folder. Give the file's path relative to the folder."
        )
    raise DataError(
        f"{where}: {file!r} is not among the photos of the folder. Correct the file's path, which "
        "is relative to the folder, or remove the row."
    )


def _normal(file: str) -> str:
    """Removes a leading ./ and doubled slashes."""
    return PurePosixPath(file).as_posix()


def _check_kinds(file: Path, texts: dict[str, str], lines: dict[str, int]) -> None:
    """Refuses labels of which some are integers and some are names: one of them is a mistake."""
    integers, words = _partition(texts, lambda name: bool(_INTEGER.fullmatch(texts[name])))
    if integers and words:
        odd = min((integers, words), key=len)[0]
        raise DataError(
            f"{file}, line {lines[odd]}: the label {texts[odd]!r} doesn't go with the others: "
            f"{len(integers)} labels are integers and {len(words)} are names. Use only one kind."
        )
