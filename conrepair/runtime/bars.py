"""Bars of progress on a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn
from rich.progress import TimeElapsedColumn as Elapsed
from rich.text import Text

from conrepair.runtime.standing import elsewhere
from conrepair.runtime.words import harmless


class Bars(Progress):
    """With a line of the machines that do the jobs, where others do.

    Args:
        console: Of the terminal.
    """

    def __init__(self, console: Console) -> None:
        super().__init__(
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

    def get_renderables(self) -> Iterable[RenderableType]:
        """What is shown."""
        yield from super().get_renderables()
        if (machines := elsewhere()) is not None:
            yield Text(harmless(machines.words), style="dim")
