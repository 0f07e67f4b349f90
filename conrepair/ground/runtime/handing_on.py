"""What a job leaves in its process for the next one there, so that it needn't be computed twice.

It's a saving and nothing else: a job that finds nothing comes to the same result.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

_here = threading.local()


def leave(job: str, value: Any) -> None:
    """Leave something for the next job in this process, if that's of this name; for others it's dropped.

    Args:
        job: Its name.
        value: Anything; its files may be removed once this job has ended.
    """
    _here.left = job, value


def take() -> Any:
    """What was left for the job that runs now, once; None where nothing was."""
    value, _here.given = getattr(_here, "given", None), None
    return value


def forget() -> None:
    """Drop what was left."""
    _here.left = _here.given = None


@contextlib.contextmanager
def handed_on(job: str) -> Iterator[None]:
    """Run a job in the block: it may take what the one before left, which is gone behind it.

    Args:
        job: Its name.
    """
    left = getattr(_here, "left", None)
    forget()
    _here.given = left[1] if left is not None and left[0] == job else None
    del left
    try:
        yield
    finally:
        _here.given = None
