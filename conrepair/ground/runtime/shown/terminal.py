"""Where styled text leaves for a terminal: names come from files, and none moves its cursor or renames its window."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.segment import Segment

from conrepair.ground.runtime.words import harmless

FILE_WIDTH = 160
"""Columns, when nobody's terminal says how many there are."""


class SafeConsole(Console):
    """A console that styles text, and shows control characters in the text itself as escapes.

    Nothing in a text is markup or an emoji: styles come with `rich.text.Text`. So a name like `[/x]` is a name.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, **options)

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        clean = (item if item.control else Segment(harmless(item.text), item.style) for item in buffer)
        return super()._render_buffer(clean)
