"""Where a few models are looked at: a folder for what is made, and what runs the jobs."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from conrepair.application.engine.job_table import jobs
from conrepair.application.engine.place import executor, preparing
from conrepair.ground.runtime.errors import StorageError
from conrepair.ground.runtime.files.journal import Journal
from conrepair.ground.runtime.files.scratch import SCRATCH, scratch_folder
from conrepair.ground.runtime.files.store import Entry, Store, journals
from conrepair.ground.runtime.files.trimming import adopt, trim
from conrepair.ground.runtime.files.user_cache import FOLDER, UserCache, user_cache
from conrepair.ground.runtime.processes.executor import Executor, InProcess
from conrepair.ground.runtime.processes.process import POSSIBLE
from conrepair.ground.runtime.shown.progress import ProgressDisplay
from conrepair.ground.runtime.words import complain

if TYPE_CHECKING:
    from conrepair.application.engine.scheduler import Scheduler
    from conrepair.application.engine.task import Result, Task

STORE = "store"
"""Name of the folder of results in a session's room."""

_Made = TypeVar("_Made")
_NO_WORKERS = (
    "conrepair: this system has no worker processes: a library that crashes ends the command along, and what a file "
    "makes a library do is kept from nothing (docs/security.md). Give files of your own."
)


class Session:
    """Runs the stages for a few models. Use as a context manager; what was made is there until it's left.

    Args:
        room: Folder of what is made; default: one that is removed.
        in_process: Whether jobs run in this process and not in a worker.
        quiet: Whether no progress is shown.
        keeps: Whether results are kept in the user's cache, where there's one, and taken from it. Not those of files
            whose code runs: it may have written them.
        fresh: Whether nothing that was done before is used, and what's made replaces what the cache has.

    Attributes:
        room: The folder.
        store: Where results are.
    """

    def __init__(
        self,
        room: Path | None = None,
        *,
        in_process: bool = False,
        quiet: bool = True,
        keeps: bool = False,
        fresh: bool = False,
    ) -> None:
        self._stack = contextlib.ExitStack()
        self._room, self._in_process, self._quiet = room, in_process, quiet
        self._keeps, self._fresh = keeps, fresh
        self._here = Path.cwd()

    def __enter__(self) -> Session:
        with contextlib.ExitStack() as stack:
            room = self._room or stack.enter_context(scratch_folder(Path(tempfile.gettempdir()), SCRATCH))
            self.room = room
            cache = user_cache() if self._keeps else None
            store = (
                None if cache is None or not cache.limit else _opened(stack, cache, room / STORE, fresh=self._fresh)
            )
            self.store = store or stack.enter_context(Store(room / STORE))
            for journal in journals(self.store.own) if self._fresh else ():
                Journal.remove(journal)
            self._executor: Executor = self._workers(stack)
            self._stack = stack.pop_all()
        return self

    def _workers(self, stack: contextlib.ExitStack) -> Executor:
        """Where jobs run, which may write to the store's folders."""
        if self._in_process or not POSSIBLE:
            return stack.enter_context(InProcess(jobs(), "" if self._in_process else _NO_WORKERS))
        return stack.enter_context(executor(1, (str(self._here),), folders=self.store.reach))

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    @contextlib.contextmanager
    def shown(self, kind: str) -> Iterator[None]:
        """Show that one thing is being done, and that it was."""
        with ProgressDisplay(quiet=self._quiet) as display, display.stage(kind, 1) as stage:
            yield
            stage.advance()

    def kept(self, work: Callable[[], _Made]) -> _Made:
        """Do work whose results are kept in the user's cache; if they can't be, do it again without.

        Args:
            work: What is done; it makes its own scheduler each time.

        Raises:
            StorageError: if they can't be kept in a folder of this command's own either.
        """
        try:
            return work()
        except (StorageError, OSError) as error:
            if not self.store.shared or (isinstance(error, OSError) and not self.store.lost):
                raise
            _tell_unkept(error)
        self.store = self._stack.enter_context(Store(self.store.own))
        self._executor = self._workers(self._stack)  # what others may write to may be gone
        return work()

    def result(self, task: Task) -> Result:
        """Do one task that depends on no other, and keep what it made.

        Args:
            task: Shown while it runs.
        """
        with ProgressDisplay(quiet=self._quiet) as display:
            return self.results([task], task.kind, display)[task.name]

    def made(self, task: Task) -> Entry:
        """What one task made that depends on no other.

        Args:
            task: Shown while it runs.

        Raises:
            ConrepairError: why it failed, with what's to be done about it.
        """
        from conrepair.application.engine.problems import entry_of

        return entry_of(self.result(task), task.kind)

    def results(self, tasks: Sequence[Task], name: str, display: ProgressDisplay) -> dict[str, Result]:
        """Do tasks, one after the other, and keep what they made.

        Args:
            tasks: Which may depend on each other.
            name: Of all of it, as it's shown.
            display: Shows progress.

        Returns:
            By task.
        """
        from conrepair.application.engine.scheduler import Scheduler

        def work() -> dict[str, Result]:
            scheduler = Scheduler(self.store, self._executor, prepare=preparing(display))
            with display.stage(name, len(tasks)) as stage:
                scheduler.run(tasks, stage)
            return scheduler.results

        return self.kept(work)

    @contextlib.contextmanager
    def scheduler(self) -> Iterator[tuple[Scheduler, ProgressDisplay]]:
        """What runs tasks in the session's store, and shows their progress."""
        from conrepair.application.engine.scheduler import Scheduler

        with ProgressDisplay(quiet=self._quiet) as display:
            yield Scheduler(self.store, self._executor, prepare=preparing(display)), display


def _opened(stack: contextlib.ExitStack, cache: UserCache, own: Path, *, fresh: bool) -> Store | None:
    """The user's cache, kept below its limit when the stack is left; None where it can't be used."""
    try:
        cache.make()
        kept = stack.enter_context(Store(cache.folder, own=own))
        made = stack.enter_context(Store(stack.enter_context(kept.scratch()), own=own)) if fresh else kept
    except (StorageError, OSError) as error:
        _tell_unkept(error)
        return None
    stack.callback(_tidy, kept, made, cache.limit)
    return made


def _tidy(kept: Store, made: Store, limit: int) -> None:
    """Put what was made anew into the cache, and keep that below its limit, where it's still there."""
    with contextlib.suppress(StorageError, OSError):
        if made is not kept:
            adopt(kept, made)
        if kept.grown:
            trim(kept, limit)


def _tell_unkept(error: StorageError | OSError) -> None:
    said = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
    why = said.partition(". ")[0].rstrip(".")  # what follows is for those who can't go on
    complain(f"conrepair: results of this command aren't kept: {why}. {FOLDER} names another folder.")
