"""What a command writes among a person's files: it replaces what it has written itself, and nothing else.

A list of what was written (`Listing`) lies in a run's folder, and beside a model or a single file. What it doesn't
name stays where it was, whatever is written: it's moved over into the new folder before that takes the old one's
place. What is in the way of a new file, as it came or was changed while the command ran, is kept under another name.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from conrepair.runtime.errors import StorageError, UsageError
from conrepair.runtime.files import explain_write_error, make_folder, storage_error
from conrepair.runtime.listing import Listing, is_folder
from conrepair.runtime.output_checks import check_free, check_place
from conrepair.runtime.replacing import NEW, Kept, give_back, put_all, put_into, turn
from conrepair.runtime.scratch import scratch_folder
from conrepair.runtime.words import complain, shortened

__all__ = ["LIST", "Output"]

LIST = ".conrepair-files.json"
"""Name of the list in a folder; beside a file it has the file's name in front."""

_SCRATCH = ".conrepair-output-"
_SHOWN, _NAME = 5, 60
_NAMES, _BYTES = 100_000, 32 << 20  # of a list; the largest audits write some thousand files


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

    def check(self) -> None:
        """Make sure, before any work is done, that writing loses nothing of a person's.

        Raises:
            UsageError: if something else than this command's output stands there, or if that was changed since.
            StorageError: if it can't be looked into.
        """
        with storage_error(self.path.parent):
            check_place(self.path, self.by, self._known())

    def wrote(self, name: str) -> bool:
        """Whether a file beside it was written along with it, and is as it was.

        Args:
            name: Of the file.
        """
        known = self._known()
        return known is not None and known.owns(self.path.parent, name)

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
    def _written(self, settle: Callable[[Path], list[Kept]]) -> Iterator[Path]:
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
                        kept = settle(scratch)
                    except OSError as error:
                        raise StorageError(
                            explain_write_error(error, parent)
                            or f"{self.path} can't be written ({error.strerror}); what was there stays. "
                            "Choose another output (-o)."
                        ) from error
        self._tell(kept)

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
        """Remove what was written and is as it was; what else there is stays, with the folders that it lies in."""
        parent, known = self.path.parent, self._known()
        if known is None:
            return
        with storage_error(parent):
            found = list(known.walk(parent, self.path.name))
            for name in [name for name, own in found if own]:
                if is_folder(parent / name):
                    with contextlib.suppress(OSError):  # somebody's file is in it
                        (parent / name).rmdir()
                elif parent / name != self._list:
                    (parent / name).unlink()
            self._list.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                self.path.rmdir()
        self._tell([(name, parent / name) for name, own in found if not own])

    def _tell(self, kept: list[Kept]) -> None:
        if kept:
            complain(f"conrepair: kept in {self.path.parent}, as no {self.by} wrote it: {_told(kept)}")

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

    def _known(self) -> Listing | None:
        """The same, told from the folder around the output; the list with it."""
        found = self._read()
        if found is None or self.beside:
            return found
        root = self.path.parent
        return found.below(self.path.name) | Listing.of(found.by, root, [self._list])

    def _list_for(self, listing: Listing, scratch: Path) -> None:
        """Write the list, which is there as a whole at any time."""
        listing.write(scratch / LIST)
        self._list.parent.mkdir(exist_ok=True)
        (scratch / LIST).replace(self._list)

    def _settle(self, scratch: Path) -> list[Kept]:
        """Put everything in its place; what was kept, as it was called and as it's called now."""
        parent, new, name = self.path.parent, scratch / NEW, self.path.name
        if not self.beside:
            (new / name / LIST).unlink(missing_ok=True)  # it came along with a folder from elsewhere
        made, known = Listing.of(self.by, new, new.iterdir()), self._known() or Listing(self.by)
        if self.beside:
            # Files that are there and those to come: whenever this process ends, both are known as ours.
            self._list_for(made | known.still(parent), scratch)
        else:
            made.inside(name).write(new / name / LIST)
            made = made | Listing.of(self.by, new, [new / name / LIST])
        return put_all(scratch, name, made | known)

    def _add(self, scratch: Path, *, strict: bool) -> list[Kept]:
        """Put files into a folder; what was kept, as it was called and as it's called now."""
        parent, new, name = self.path.parent, scratch / NEW, self.path.name
        made, known = Listing.of(self.by, new, new.iterdir()), self._known() or Listing(self.by)
        itself = Listing(self.by, folders=frozenset({name}))  # no link to a folder elsewhere
        check_free(parent, made if strict else itself, made | known)
        earlier, own = self._read() or Listing(self.by), made.inside(name)
        self._list_for(earlier | own, scratch)
        kept = put_into(scratch, made, made | known)
        self._list_for(earlier.without(own) | own, scratch)
        return kept


def _told(kept: list[Kept]) -> str:
    """In words, with what it's called now, where that's something else."""
    shown = [
        shortened(name, _NAME)
        + ("" if place.name == name.rpartition("/")[2] else f" (now {shortened(place.name, _NAME)})")
        for name, place in kept[:_SHOWN]
    ]
    more = [f"and {len(kept) - _SHOWN} more"] if len(kept) > _SHOWN else []
    return ", ".join([*shown, *more])
