"""Progress on standard error, quiet when nobody watches, and in the log `conrepair`, for programs."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

from conrepair.ground.runtime.shown.heartbeat import at_work
from conrepair.ground.runtime.shown.standing import StageStanding, Standing, duration, elsewhere
from conrepair.ground.runtime.words import harmless

if TYPE_CHECKING:  # workers, which show nothing, needn't load rich
    from rich.console import Console, RenderableType
    from rich.progress import Progress

_LOG = logging.getLogger("conrepair")
_LINE_SECONDS, _PAGE_SECONDS = 30.0, 5.0  # between what's said of other machines, and between two states of a page


def output_console() -> Console:
    """The console of results (standard output); honours NO_COLOR."""
    from conrepair.ground.runtime.shown.terminal import FILE_WIDTH, SafeConsole

    return SafeConsole(highlight=False, width=None if sys.stdout.isatty() else FILE_WIDTH)


def error_console() -> Console:
    """The console of progress and errors (standard error); honours NO_COLOR."""
    from conrepair.ground.runtime.shown.terminal import FILE_WIDTH, SafeConsole

    return SafeConsole(stderr=True, highlight=False, width=None if sys.stderr.isatty() else FILE_WIDTH)


def say(text: str) -> None:
    """Write one result to standard output."""
    sys.stdout.write(f"{harmless(text)}\n")


def _bars(console: Console) -> Progress:
    """Bars on a terminal, with a line of the machines that do the jobs, where others do."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn
    from rich.progress import TimeElapsedColumn as Elapsed
    from rich.text import Text

    class Bars(Progress):
        def get_renderables(self) -> Iterable[RenderableType]:
            yield from super().get_renderables()
            if (machines := elsewhere()) is not None:
                yield Text(harmless(machines.words), style="dim")

    return Bars(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        Elapsed(),
        TextColumn("{task.fields[left]}", style="dim", markup=False),
        TextColumn("{task.fields[detail]}", style="dim", markup=False),
        console=console,
        transient=True,
    )


class _NoBars:
    """Shows nothing, where nobody watches."""

    def start(self) -> None:
        """Begin."""

    def stop(self) -> None:
        """End."""

    def add_task(self, *_: Any, **__: Any) -> Any:
        """A bar, of which `update` wants to know."""

    def update(self, *_: Any, **__: Any) -> None:
        """The progress of a bar."""


class ProgressDisplay:
    """One bar a stage. When standard error is not a terminal, one line a finished stage (or step of one) instead.

    Where other machines do the jobs, it says from time to time how far they are, and tells a page.

    Args:
        quiet: Whether nothing is shown.
        page: Told how far it is, where other machines do the jobs.
    """

    def __init__(self, *, quiet: bool = False, page: Callable[[Standing], None] | None = None) -> None:
        self._console = None if quiet else error_console()
        self._lines = self._console is not None and not self._console.is_terminal
        self._page, self._stages = page, list[Stage]()
        self._said = self._paged = time.monotonic()
        self._progress: Progress | _NoBars = _NoBars()
        if self._console is not None and not self._lines:
            self._progress = _bars(self._console)
        self._transfers: dict[str, Any] = {}
        self._depth = 0

    def __enter__(self) -> ProgressDisplay:
        self._progress.start()
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def note(self, text: str) -> None:
        """Say something that is worth a line of its own, unless nobody wants to hear."""
        _LOG.info("%s", text)
        self._say(text)

    def _say(self, line: str) -> None:
        if self._console is not None:
            self._console.print(line)

    def transfer(self, name: str, done: int, total: int) -> None:
        """Show a download as a bar of its own, in KiB; it goes when it's complete.

        Args:
            name: Of what is fetched.
            done: Bytes so far.
            total: Bytes in all, 0 when unknown.
        """
        if name not in self._transfers:
            if self._lines:
                self._say(f"fetch {name}")
            self._transfers[name] = self._progress.add_task(f"fetch {name} (KiB)", detail="", left="")
        self._progress.update(
            self._transfers[name], completed=done >> 10, total=total >> 10 or None, visible=done != total
        )

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """Stages in the block are parts of one that already has its line; they don't get their own."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    @contextlib.contextmanager
    def stage(self, name: str, total: int, *, long: bool = False, done: int = 0) -> Iterator[Stage]:
        """Show a stage of `total` steps while the block runs.

        Args:
            name: Of the stage.
            total: Number of steps.
            long: Whether a step takes so long that it's worth a line of its own.
            done: Steps that need not be done any more.
        """
        lines = self._lines and total > 0 and not self._depth

        def tell(detail: str) -> None:
            if lines and long:
                self._say(f"{name}: {stage.done} of {total}, {detail}")
            self._tell_elsewhere(stage)

        task = self._progress.add_task(name, total=total, completed=done, detail="", left="")
        stage = Stage(self._progress, task, tell, name if total else "", total, done)
        self._stages += [stage] if total else []
        try:
            with at_work(name):
                self._tell_elsewhere(stage)
                yield stage
        finally:
            self._progress.update(task, visible=False)
        if lines and not long:
            self._say(f"{name}: {stage.done} of {total}")

    def _tell_elsewhere(self, stage: Stage) -> None:
        """Say how far other machines are, unless that was said a moment ago."""
        if (machines := elsewhere()) is None:
            return
        now = time.monotonic()
        if self._lines and now - self._said > _LINE_SECONDS:
            self._said, at = now, stage.standing
            left = "" if at.left is None else f", about {duration(at.left)} left"
            self._say(f"{at.name}: {at.done} of {at.total}{left}; {machines.words}")
        if self._page is not None and now - self._paged > _PAGE_SECONDS:
            self._page(Standing(tuple(item.standing for item in self._stages), machines))
            self._paged = time.monotonic()


class Stage:
    """The bar of one stage."""

    def __init__(
        self, progress: Progress | _NoBars, task: Any, tell: Callable[[str], None], name: str, total: int, done: int
    ) -> None:
        """Begin.

        Args:
            progress: That has the bar.
            task: The bar.
            tell: Called with what was finished.
            name: In the log; "" for a stage with nothing to do.
            total: Steps in all.
            done: Steps that need not be done any more.
        """
        self._progress, self._task, self._tell, self._name = progress, task, tell, name
        self._shown = ""
        self._total, self._before, self._begun, self._ended = total, done, time.monotonic(), 0.0
        self.done = done

    @property
    def standing(self) -> StageStanding:
        """The progress of the bar."""
        over, did, todo = self.done >= self._total, self.done - self._before, self._total - self.done
        seconds = (self._ended if over and self._ended else time.monotonic()) - self._begun
        return StageStanding(self._name, self.done, self._total, seconds, seconds / did * todo if did else None)

    def advance(self, detail: str = "", steps: int = 1) -> None:
        """Count finished steps; `detail` says what is being done."""
        self.done += steps
        self._ended = time.monotonic()
        left = self.standing.left
        told = f"{duration(left)} left" if left else ""
        self._progress.update(self._task, advance=steps, detail=detail, left=told)
        self._tell(detail)
        if self._name:
            _LOG.info("%s: %d done%s", self._name, self.done, f", {detail}" if detail else "")

    def show(self, detail: str) -> None:
        """Show a task without counting."""
        if self._name and detail != self._shown:
            self._shown = detail
            _LOG.info("%s: %s", self._name, detail)
        self._progress.update(self._task, detail=detail)


UNSHOWN = Stage(_NoBars(), None, lambda _: None, "", 0, 0)
"""Progress that nobody is shown."""
