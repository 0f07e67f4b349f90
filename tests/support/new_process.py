"""Do in a new process what forks: a copy of a process of tests has locks that its libraries' threads held."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from typing import Any

__all__ = ["in_new_process"]


def in_new_process(done: Callable[..., None], *arguments: Any) -> None:
    """Call a function of a module in a process that has nothing of this one, as a worker has.

    Raises:
        AssertionError: It raised something, crashed or took two minutes.
    """
    process = multiprocessing.get_context("spawn").Process(target=done, args=arguments)
    process.start()
    process.join(120)
    if process.exitcode is None:
        process.kill()
        process.join()
        raise AssertionError("it doesn't end")
    assert process.exitcode == 0
