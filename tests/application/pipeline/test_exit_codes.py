"""The process ends with an exit code of its own, whatever another process or a file says."""

from __future__ import annotations

import pytest

from conrepair.application.engine.problems import problem_of_failure
from conrepair.ground.runtime.errors import ExitCode, known_code
from conrepair.ground.runtime.processes.workers import Failure


@pytest.mark.parametrize(("value", "code"), [(0, 0), (2, 2), (130, 130), (99, 4), (251, 4), (-1, 4), (2**70, 4)])
def test_codes_that_there_are_not_are_those_of_a_failure(value: int, code: int) -> None:
    assert known_code(value) is ExitCode(code)
    failure = Failure("exception", "ValueError", "it lies", exit_code=value)
    assert problem_of_failure(failure).as_error().exit_code == code
