"""Notes reach whoever collects them, and the log."""

from __future__ import annotations

import pytest

from conrepair.ground.runtime.notes import collected_notes, note


def test_notes_are_collected_in_order(caplog: pytest.LogCaptureFixture) -> None:
    note("before")
    with collected_notes() as notes:
        note("one")
        note("100 %s of it")
    note("after")
    assert notes == ["one", "100 %s of it"]
    assert [record.getMessage() for record in caplog.records] == ["before", "one", "100 %s of it", "after"]
