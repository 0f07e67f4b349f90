"""What a command writes among a person's files: it replaces what this program wrote whole, and nothing else.

A list of what was written (`Listing`) lies in a run's folder, and beside a model or a single file. A folder in which
anything else lies, or something that was changed, is refused before any work is done. Where that came while the
command ran, the folder is kept, whole, under another name.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from conrepair.ground.runtime.errors import StorageError, UsageError
from conrepair.ground.runtime.files.listing import LIST, Listing, is_folder, names_in, walk
from conrepair.ground.runtime.files.replacing import NEW, give_back, put_all, turn
from conrepair.ground.runtime.files.scratch import scratch_folder
from conrepair.ground.runtime.files.whole import explain_write_error, make_folder, storage_error
from conrepair.ground.runtime.path_text import model_path, path_problem, real_path
from conrepair.ground.runtime.words import shortened

_SHOWN = 100


def place_in(folder: Path, name: str) -> Path:
    """Where a file is to be written: in the folder itself, whatever lies there already.

    Args:
        folder: Of somebody's; it may itself be named by a link.
        name: Of the file, relative, with `/`.

    Returns:
        The file's path. What a command writes there replaces a file, or nothing.

    Raises:
        UsageError: if a link, or what is no folder, is on the way, a folder or a link is in its place, or it leads
            out of the folder.
    """
    parts = PurePosixPath(name).parts
    if not parts or PurePosixPath(name).is_absolute() or ".." in parts:
        raise UsageError(f"{shortened(name, _SHOWN)} leads out of {folder}, so nothing is written there.")
    if problem := path_problem(str(folder / name)):
        raise UsageError(f"{problem}, so nothing is written there.")
    place = folder
    for number, part in enumerate(parts, 1):
        place /= part
        try:
            mode = place.lstat().st_mode
        except FileNotFoundError:
            break  # nothing lies below it, either
        if stat.S_ISLNK(mode):
            raise UsageError(f"{place} is a link, and nothing is written through links. Remove it, or choose -o.")
        last = number == len(parts)
        if not (stat.S_ISREG(mode) if last else stat.S_ISDIR(mode)):
            what = "file" if last else "folder"
            raise UsageError(f"{place} is no {what}, so no {what} is written there. Remove it, or choose -o.")
    return folder / name


def lies_in(folder: Path, path: str | Path) -> bool:
    """Whether a file, or a folder with all in it, is there and lies in another folder, whatever links say.

    Args:
        folder: Of somebody's.
        path: Absolute, from a document.
    """
    if path_problem(str(path)) or ".." in Path(path).parts:
        return False
    inside = real_path(folder)
    if real_path(path) == inside or not real_path(path).is_relative_to(inside):
        return False
    return all(item.is_file() and real_path(item).is_relative_to(inside) for item in _files(Path(path)))


def _files(path: Path) -> Iterator[Path]:
    """A file, or all that lies in a folder and is no folder; links to folders count as what they are."""
    if not path.is_dir():
        yield path
        return
    yield from (item for item in path.rglob("*") if item.is_symlink() or not item.is_dir())


_SCRATCH = ".conrepair-output-"


@dataclass(frozen=True)
class Output:
    """A file or a folder that a command writes.

    Attributes:
        path: Where it shall stand.
        by: What writes it, as a noun: "localization". Another one's output isn't replaced.
        beside: Whether the list lies beside it: of models, which are what their files are, and of single files.
    """

    path: Path
    by: str
    beside: bool = False

    def __post_init__(self) -> None:
        """A way back (`new/../out`) may lead over a folder that's missing until something is written."""
        if ".." in self.path.parts:
            object.__setattr__(self, "path", model_path(self.path))

    def check(self, *, force: bool = True, inputs: Iterable[str | Path] = ()) -> None:
        """Make sure, before any work is done, that writing replaces no file of a user's own.

        Args:
            force: Whether an earlier one is replaced.
            inputs: Files and folders that are read.

        Raises:
            UsageError: if something else than this command's output stands there or lies in it, or if that was
                changed since; if there's one, without `force`; if an input lies in it.
            StorageError: if it can't be looked into.
        """
        path = self.path
        with storage_error(path.parent):
            if not os.path.lexists(path):
                return
            if not force:
                raise UsageError(f"{path} exists. Give another output, or --force (force=True) to replace it.")
            if path.is_symlink():
                raise UsageError(
                    f"{path} is a link, and stays one. Name what it leads to, or choose another output (-o)."
                )
            with contextlib.suppress(FileNotFoundError):  # there's no current folder any more
                if real_path(Path.cwd()).is_relative_to(real_path(path)):
                    raise UsageError(
                        f"{path} is the current folder, or holds it, and would be replaced. Go elsewhere first."
                    )
            if is_folder(path) and not any(path.iterdir()):
                _check_access(path)
                return
            self._check_whole()
        for item in inputs:
            if real_path(item).is_relative_to(real_path(path)):
                raise UsageError(
                    f"{item} lies in {path}, which this {self.by} would replace. Choose another output (-o)."
                    if real_path(item) != real_path(path)
                    else f"{item} is read, and would be replaced. Choose another output (-o)."
                )

    def _check_whole(self) -> None:
        """Make sure that all of it is as it was written, and nothing else is there; contents come last."""
        root, known = self._root, self._known()
        if known.by != self.by or (self.beside and not known.names(self.path.name)):
            raise self._is_others(self.path)
        if not self.beside:
            _check_access(self.path)
        there = []
        for name, found in walk(root, self._siblings(known) if self.beside else None):
            if not known.resembles(name, found):
                if known.names(name):
                    raise _changed(root / name)
                raise UsageError(
                    f"{root / name} was written by no {self.by}, so {self.path} isn't replaced. "
                    "Choose another output (-o), or move it elsewhere."
                )
            if stat.S_ISDIR(found.st_mode):
                _check_access(root / name)
            there.append(name)
        for name in there:
            if not known.owns(root, name):
                raise _changed(root / name)

    def check_parts(self, names: Iterable[str]) -> None:
        """Make sure that nothing is in the way of files that are put into the folder, see `write`.

        Args:
            names: Of the files, by their paths in the folder.

        Raises:
            UsageError: if one is there and isn't as it was written, or it would be written through a link.
        """
        if os.path.lexists(self.path) and not is_folder(self.path):
            raise _changed(self.path)
        known = self._known()
        for name in names:
            place = place_in(self.path, name)
            if place.exists() and not known.owns(self.path, name):
                raise _changed(place) if known.by == self.by else self._is_others(place)

    def _is_others(self, path: Path) -> UsageError:
        return UsageError(
            f"{path} exists and no {self.by} of this version wrote it, so it isn't replaced. "
            "Choose another output (-o), or another `name` in a configuration."
        )

    def wrote(self, name: str) -> bool:
        """Whether a file was written along with it, and is as it was.

        Args:
            name: Of the file, beside it or in it.
        """
        return self._known().owns(self._root, name)

    @contextlib.contextmanager
    def write(self, *, parts: bool = False) -> Iterator[Path]:
        """Yield a temporary path; what the block put there, and beside it, appears whole when it succeeds.

        On any error what was there stays, all of it.

        Args:
            parts: Whether it's a folder, made already, whose files are put into the one that's there.

        Raises:
            UsageError: if one of the parts would replace what isn't as it was written; nothing was done then.
            StorageError: if it can't be written.
        """
        parent = self.path.parent
        with storage_error(parent):
            make_folder(parent)
            with scratch_folder(parent, _SCRATCH, give_back) as scratch:
                temporary = scratch / NEW / self.path.name
                (temporary if parts else temporary.parent).mkdir(parents=True)
                yield temporary
                if not os.path.lexists(temporary):
                    raise FileNotFoundError(errno.ENOENT, "nothing was written", str(self.path))
                with turn(parent):
                    try:
                        (self._put_parts if parts else self._settle)(scratch)
                    except OSError as error:
                        raise StorageError(
                            explain_write_error(error, parent)
                            or f"{self.path} can't be written ({error.strerror}); what was there stays. "
                            "Choose another output (-o)."
                        ) from error

    def take(self, folder: Path) -> None:
        """Put a folder there that is complete, and moved by the call.

        Args:
            folder: On the same disk.

        Raises:
            StorageError: if it can't be written.
        """
        if os.path.lexists(self.path):
            with self.write() as temporary:
                folder.rename(temporary)
            return
        with storage_error(self.path.parent):
            Listing.of(self.by, folder).write(folder / LIST)
            folder.rename(self.path)

    def remove(self) -> None:
        """Remove a single file, unless somebody changed it."""
        with storage_error(self.path.parent):
            if self.wrote(self.path.name):
                self.path.unlink()
                self._list.unlink()

    @property
    def _root(self) -> Path:
        """The folder that its list is about."""
        return self.path.parent if self.beside else self.path

    @property
    def _list(self) -> Path:
        return self.path.with_name(f".{self.path.name}{LIST}") if self.beside else self.path / LIST

    def _known(self) -> Listing:
        """What an earlier command of the same sort has listed."""
        found = Listing.read(self._list)
        return found if found.by == self.by else Listing("")

    def _siblings(self, known: Listing) -> list[str]:
        """Names of what's there, beside each other, of what was written."""
        return [name for name in names_in(self.path.parent) if known.names(name)]

    def _write_list(self, listing: Listing, scratch: Path) -> None:
        """Write the list, which is there as a whole at any time."""
        listing.write(scratch / LIST)
        (scratch / LIST).replace(self._list)

    def _settle(self, scratch: Path) -> None:
        """Move all written files to their places."""
        new, name, known = scratch / NEW, self.path.name, self._known()
        root = new if self.beside else new / name
        made = Listing.of(self.by, root)
        if self.beside:
            # Files that are there and those to come: whenever this process ends, both are known as ours.
            self._write_list(made | known, scratch)
            # A list may be a stranger's: what isn't called after the output doesn't go for its sake.
            put_all(scratch, name, made | known, [item for item in self._siblings(known) if item.startswith(name)])
            self._write_list(made, scratch)
        else:
            made.write(root / LIST)
            put_all(scratch, name, made | known, ())

    def _put_parts(self, scratch: Path) -> None:
        """Put files into a folder, one after the other; folders stay the same."""
        new, known = scratch / NEW / self.path.name, self._known()
        made = Listing.of(self.by, new)
        files = [name for name, found in walk(new) if not stat.S_ISDIR(found.st_mode)]
        self.check_parts(files)
        make_folder(self.path)
        self._write_list(made | known, scratch)
        for name in files:
            (self.path / name).parent.mkdir(parents=True, exist_ok=True)
            (new / name).replace(self.path / name)
        self._write_list(known.updated(made), scratch)


def _check_access(path: Path) -> None:
    """A folder that's replaced."""
    if path.is_mount():
        raise UsageError(f"{path} is where a disk is mounted, and can't be replaced. Name a folder in it (-o).")
    if not os.access(path, os.W_OK | os.X_OK):
        raise UsageError(f"{path} can't be written to. Choose another output (-o).")


def _changed(path: Path) -> UsageError:
    return UsageError(
        f"{path} isn't as conrepair wrote it, so it isn't replaced. Move it elsewhere, or choose another output (-o)."
    )
