"""Environments that jobs need, on a worker's machine: made there once, whoever asks for them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable

from conrepair.runtime.errors import ToolEnvironmentError
from conrepair.runtime.outside.environments import find_environment, make_environment
from conrepair.runtime.outside.releases import environments_of
from conrepair.runtime.progress import ProgressDisplay

__all__ = ["lacking"]

_REMEMBERED_SECONDS = 600.0  # for which what couldn't be made isn't tried again: pip takes its time without a network

_making = threading.Lock()
_unmade: dict[str, tuple[float, str]] = {}


def lacking(needs: Iterable[str]) -> str:
    """Make the environments that a job needs and that aren't there yet.

    Args:
        needs: Of the job.

    Returns:
        Why there's one that can't be made, in words; "" where all are there.

    Raises:
        StorageError: if the user's cache folder can't be made.
    """
    for wanted in environments_of(needs):
        if find_environment(wanted) is not None:
            continue
        with _making:  # processes wait for one another, too
            when, words = _unmade.get(wanted.key, (0.0, ""))
            if words and time.monotonic() - when < _REMEMBERED_SECONDS:
                return words
            try:
                with ProgressDisplay(quiet=True) as display:
                    make_environment(wanted, display)
            except ToolEnvironmentError as error:
                _unmade[wanted.key] = time.monotonic(), str(error)
                return str(error)
    return ""
