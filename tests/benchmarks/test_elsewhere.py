"""A process that ends, or doesn't come back, is told, and another one goes on."""

from __future__ import annotations

import os
import time

import pytest

from benchmarks.generate.elsewhere import Elsewhere, EndedError


def test_what_ends_a_process_is_told_and_the_next_goes_on() -> None:
    elsewhere = Elsewhere()
    first = elsewhere.call(None, os.getpid)
    assert first != os.getpid()
    with pytest.raises(EndedError, match="crash"):
        elsewhere.call(None, os.abort)
    with pytest.raises(EndedError, match="hang"):
        elsewhere.call(0.2, time.sleep, 60)
    assert elsewhere.call(None, os.getpid) not in {first, os.getpid()}
