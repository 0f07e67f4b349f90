"""Notes for a person about a result that is used nevertheless."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

_LOGGER = logging.getLogger("conrepair.notes")


def note(text: str) -> None:
    """Give a note to whoever collects them; it's logged, too."""
    _LOGGER.warning(text)


@contextlib.contextmanager
def collected_notes() -> Iterator[list[str]]:
    """Yield a list that receives what `note` is given meanwhile in this process."""
    handler = _Collector()
    _LOGGER.addHandler(handler)
    try:
        yield handler.notes
    finally:
        _LOGGER.removeHandler(handler)


class _Collector(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.notes.append(record.getMessage())
