"""What a command writes among a person's files: it replaces what this program wrote whole, and nothing else.

A list of what was written (`Listing`) lies in a run's folder, and beside a model or a single file. A folder in which
anything else lies, or something that was changed, is refused before any work is done. Where that came while the
command ran, the folder is kept, whole, under another name.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from conrepair.runtime.errors import StorageError, UsageError
from conrepair.runtime.files import explain_write_error, make_folder, storage_error
from conrepair.runtime.listing import Listing, is_folder
from conrepair.runtime.path_text import model_path, real_path
from conrepair.runtime.replacing import NEW, give_back, put_all, put_aside, turn
from conrepair.runtime.scratch import scratch_folder
from conrepair.runtime.words import complain

LIST = ".conrepair-files.json"
"""Name of the list in a folder; beside a file it has the file's name in front."""

_SCRATCH = ".conrepair-output-"
_NAMES, _BYTES = 100_000, 32 << 20  # of a list; the largest audits write some thousand files


@dataclass(frozen=True)
class Output:
    """A file or a folder that a command writes.

    Attributes:
        path: Where it shall stand.
        by: What writes it, as a noun: "localization". Another one's output isn't replaced.
        beside: Whether the list lies beside it: of models, which are what their files are, and of single files.
        shared: Whether more lies in it than what's written by this class.
    """

    path: Path
    by: str
    beside: bool = False
    shared: bool = False

    def __post_init__(self) -> None:
        """A way back (`new/../out`) may lead over a folder that's missing until something is written."""
        if ".." in self.path.parts:
            object.__setattr__(self, "path", model_path(self.path))

    def check(self, *, force: bool = True, inputs: Iterable[str | Path] = ()) -> None:
        """Make sure, before any work is done, that writing loses nothing of a person's.

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
            known = self._known()
            if path.name not in known.tops:
                raise UsageError(
                    f"{path} exists and no {self.by} of this version wrote it, so it isn't replaced. "
                    "Choose another output (-o), or another `name` in a configuration."
                )
            for top in known.tops:
                for name, own in known.walk(path.parent, top):
                    if own:
                        _check_access(path.parent / name)
                    elif name in known.files or name in known.folders:
                        raise _changed(path.parent / name)
                    elif not self.shared:
                        raise UsageError(
                            f"{path.parent / name} was written by no {self.by}, so {path} isn't replaced. "
                            "Choose another output (-o), or move it elsewhere."
                        )
        for item in inputs:
            if real_path(item).is_relative_to(real_path(path)):
                raise UsageError(
                    f"{item} lies in {path}, which this {self.by} would replace. Choose another output (-o)."
                    if real_path(item) != real_path(path)
                    else f"{item} is read, and would be replaced. Choose another output (-o)."
                )

    def wrote(self, name: str) -> bool:
        """Whether a file beside it was written along with it, and is as it was.

        Args:
            name: Of the file.
        """
        return self._known().owns(self.path.parent, name)

    @contextlib.contextmanager
    def write(self) -> Iterator[Path]:
        """Yield a temporary path; what the block put there, and beside it, appears whole when it succeeds.

        On any error what was there stays, all of it.

        Raises:
            StorageError: if it can't be written.
        """
        with self._written(self._settle) as temporary:
            yield temporary

    @contextlib.contextmanager
    def add(self, *, strict: bool = False) -> Iterator[Path]:
        """Yield a temporary folder; each file that the block put there is put into the one that's there.

        Args:
            strict: Whether something that's in the way is refused, and not called otherwise.

        Raises:
            UsageError: if it's no folder, or, with `strict`, something in the way isn't as it was written; nothing
                was done then.
            StorageError: if it can't be written.
        """
        with self._written(lambda scratch: self._add(scratch, strict=strict)) as temporary:
            temporary.mkdir()
            yield temporary

    @contextlib.contextmanager
    def _written(self, settle: Callable[[Path], None]) -> Iterator[Path]:
        parent = self.path.parent
        with storage_error(parent):
            make_folder(parent)
            with scratch_folder(parent, _SCRATCH, give_back) as scratch:
                (scratch / NEW).mkdir()
                temporary = scratch / NEW / self.path.name
                yield temporary
                if not os.path.lexists(temporary):
                    raise FileNotFoundError(errno.ENOENT, "nothing was written", str(self.path))
                with turn(parent):
                    try:
                        settle(scratch)
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
            (folder / LIST).unlink(missing_ok=True)  # of the last time, that was interrupted
            Listing.of(self.by, folder, folder.iterdir()).write(folder / LIST)
            folder.rename(self.path)

    def remove(self) -> None:
        """Remove a single file, unless somebody changed it."""
        with storage_error(self.path.parent):
            if self.wrote(self.path.name):
                self.path.unlink()
            elif os.path.lexists(self.path):
                complain(f"conrepair: kept in {self.path.parent}, as no {self.by} wrote it: {self.path.name}")
            self._list.unlink(missing_ok=True)

    @property
    def _list(self) -> Path:
        return self.path.with_name(f".{self.path.name}{LIST}") if self.beside else self.path / LIST

    def _read(self) -> Listing | None:
        """What an earlier command of the same sort has listed.

        Raises:
            UsageError: if it's longer than what commands write.
        """
        found = None
        large = self._list.is_file() and self._list.stat().st_size > _BYTES
        if not large:
            found = Listing.read(self._list)
        if large or (found is not None and len(found.files) + len(found.folders) > _NAMES):
            raise UsageError(
                f"{self._list} lists more than {_NAMES:,} files, so {self.path} isn't looked through nor replaced. "
                "Choose another output (-o)."
            )
        return found if found is not None and found.by == self.by else None

    def _known(self) -> Listing:
        """The same, told from the folder around the output; the list with it, where that's in it."""
        found = self._read()
        if found is None:
            return Listing(self.by)
        if self.beside:
            return found
        return found.below(self.path.name) | Listing.of(found.by, self.path.parent, [self._list])

    def _write_list(self, listing: Listing, scratch: Path) -> None:
        """Write the list, which is there as a whole at any time."""
        listing.write(scratch / LIST)
        self._list.parent.mkdir(exist_ok=True)
        (scratch / LIST).replace(self._list)

    def _settle(self, scratch: Path) -> None:
        """Put everything in its place."""
        new, name, known = scratch / NEW, self.path.name, self._known()
        if self.beside:
            made = Listing.of(self.by, new, new.iterdir())
            # Files that are there and those to come: whenever this process ends, both are known as ours.
            self._write_list(made | known, scratch)
            # A list may be a stranger's: what isn't called after the output doesn't go for its sake.
            put_all(scratch, name, made | known, [top for top in known.tops if top.startswith(name)])
            self._write_list(made, scratch)
        else:
            (new / name / LIST).unlink(missing_ok=True)  # it came along with a folder from elsewhere
            Listing.of(self.by, new / name, (new / name).iterdir()).write(new / name / LIST)
            put_all(scratch, name, known, ())

    def _add(self, scratch: Path, *, strict: bool) -> None:
        """Put files into a folder, one after the other; folders stay the same."""
        parent, new = self.path.parent, scratch / NEW
        made, known = Listing.of(self.by, new, new.iterdir()), self._known()
        earlier = self._read() or Listing(self.by)
        own = Listing.of(self.by, new / self.path.name, (new / self.path.name).iterdir())
        names = sorted((*made.folders, *made.files))  # a folder before what's in it

        def is_taken(name: str) -> bool:
            place = parent / name
            free = is_folder(place) if name in made.folders else known.owns(parent, name)
            return os.path.lexists(place) and not free

        first = next(filter(is_taken, names), None)
        if first is not None and (strict or first == self.path.name):
            raise _changed(parent / first)
        self._write_list(earlier | own, scratch)
        for name in names:
            if is_taken(name):
                put_aside(parent / name, parent / name, self.by)
            if name in made.folders:
                (parent / name).mkdir(exist_ok=True)
            else:
                (new / name).replace(parent / name)
        self._write_list(Listing(self.by, {**earlier.files, **own.files}, earlier.folders | own.folders), scratch)


def _check_access(path: Path) -> None:
    """A folder that's replaced, or a file."""
    if not is_folder(path):
        return
    if path.is_mount():
        raise UsageError(f"{path} is where a disk is mounted, and can't be replaced. Name a folder in it (-o).")
    if not os.access(path, os.W_OK | os.X_OK):
        raise UsageError(f"{path} can't be written to. Choose another output (-o).")


def _changed(path: Path) -> UsageError:
    return UsageError(
        f"{path} isn't as conrepair wrote it, so it isn't replaced. Move it elsewhere, or choose another output (-o)."
    )
