"""Folders for work in progress, which the next run removes when this one was killed."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from conrepair.ground.runtime.files.locks import LOCK, forget_lock, lock, opened_for_lock

SCRATCH = ".conrepair-scratch-"
"""Prefix in folders that others use too."""


@contextlib.contextmanager
def scratch_folder(parent: Path, prefix: str, rescue: Callable[[Path], None] = lambda _: None) -> Iterator[Path]:
    """Yield an empty folder that is gone after the block; those of runs that were killed are removed first.

    The folder is locked, and the kernel unlocks it when the process ends, however it ends.

    Args:
        parent: Where to make it; exists.
        prefix: Of its name; nobody else may use it there.
        rescue: Called with this folder, and each of a killed run, before it is removed; it stays where that raises
            OSError.

    Raises:
        OSError: if it can't be made.
    """
    sweep(parent, prefix, rescue)
    folder, descriptor = _make(parent, prefix)
    try:
        yield folder
    finally:
        with contextlib.suppress(OSError):
            rescue(folder)
            shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)
        forget_lock(folder)


@contextlib.contextmanager
def kept_folder(
    folder: Path, prefix: str, worth_keeping: Callable[[Path], bool], *, own: Collection[str]
) -> Iterator[Path]:
    """Yield a folder of this name, as it was left by a process that was killed or interrupted.

    Args:
        folder: Made where it isn't there; nobody else uses its name.
        prefix: Of a scratch folder beside it, for when another process has it.
        worth_keeping: Whether something in it is of use to the next process; else it's gone after the block.
        own: Names of folders in it that whoever uses it makes; others in it aren't removed.

    Raises:
        OSError: if it can't be made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locked(folder, wait=False))
        except OSError:
            yield stack.enter_context(scratch_folder(folder.parent, prefix))
            return
        try:
            yield folder
        finally:
            if not worth_keeping(folder):
                for name in own:
                    shutil.rmtree(folder / name, ignore_errors=True)
                with contextlib.suppress(OSError):  # somebody has put something into it
                    folder.rmdir()


def sweep(parent: Path, prefix: str, rescue: Callable[[Path], None] = lambda _: None) -> None:
    """Remove the scratch folders whose makers are gone; a link of such a name is nobody's scratch folder."""
    for folder in parent.glob(f"{prefix}*"):
        if folder.is_symlink() or folder.suffix == LOCK:
            continue
        with contextlib.suppress(OSError), locked(folder, wait=False):  # in use, gone meanwhile, or another user's
            rescue(folder)
            shutil.rmtree(folder, ignore_errors=True)
        forget_lock(folder)


@contextlib.contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold the lock of a file or folder; processes and threads that use it take turns.

    Raises:
        OSError: if it doesn't exist, or, with `wait` False, if it's locked.
    """
    descriptor = opened_for_lock(path)
    try:
        if not lock(descriptor, wait=wait, needless=wait):
            raise BlockingIOError(f"{path} is in use")
        yield
    finally:
        os.close(descriptor)


def _make(parent: Path, prefix: str) -> tuple[Path, int]:
    """A new folder and the descriptor that holds its lock."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        try:
            descriptor = opened_for_lock(folder)
        except FileNotFoundError:
            continue
        with contextlib.suppress(OSError):  # a file system without locks: the folder isn't swept
            lock(descriptor)
        if folder.is_dir():
            return folder, descriptor
        os.close(descriptor)  # another run swept it before it was locked
