"""Whether two failures are the same one."""

from __future__ import annotations

import re

from conrepair.ground.runtime.processes.workers import ENDED, Failure

_WORD = re.compile(r"[A-Za-z][A-Za-z_]+")
_ALIKE = 0.5  # share of the words that both say; names and numbers differ from piece to piece


def same_failure(one: Failure, two: Failure) -> bool:
    """Whether a piece of a graph fails as the whole does.

    Args:
        one: How a job failed.
        two: How another one failed.
    """
    if (one.kind, one.error_type) != (two.kind, two.error_type):
        return False
    if one.kind in ENDED:
        return True
    first, second = (set(_WORD.findall(item.message)) for item in (one, two))
    return len(first & second) >= _ALIKE * len(first | second)
