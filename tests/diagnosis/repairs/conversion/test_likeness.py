"""A piece's failure is the whole's, or another one."""

from __future__ import annotations

import pytest

from conrepair.diagnosis.repairs.conversion.likeness import same_failure
from conrepair.ground.runtime.processes.workers import Failure


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        (Failure("exception", "KeyError", "'axis'"), Failure("exception", "KeyError", "'axis'"), True),
        (Failure("exception", "KeyError", "'axis'"), Failure("exception", "KeyError", "'HardSwish'"), False),
        (Failure("exception", "KeyError", "'axis'"), Failure("exception", "IndexError", "'axis'"), False),
        (
            Failure("exception", "ValueError", "Layer a_1 weight shape (1, 10) is not compatible with (16, 10)"),
            Failure("exception", "ValueError", "Layer dense weight shape (1, 6) is not compatible with (8, 6)"),
            True,
        ),
        (Failure("crash", "SIGSEGV", "the worker died"), Failure("crash", "SIGSEGV", "otherwise said"), True),
        (Failure("crash", "SIGSEGV", "died"), Failure("crash", "SIGABRT", "died"), False),
        (Failure("timeout", "Timeout", "after 9 s"), Failure("timeout", "Timeout", "after 30 s"), True),
    ],
)
def test_same(one: Failure, two: Failure, same: bool) -> None:
    assert same_failure(one, two) is same
    assert same_failure(two, one) is same
