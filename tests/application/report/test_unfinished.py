from __future__ import annotations

from pathlib import Path

import pytest

from conrepair.application.report.unfinished import unfinished_page
from conrepair.ground.runtime.shown.standing import Elsewhere, Machine, StageStanding, Standing
from conrepair_lab.report.fuzz.folder import findings_page
from conrepair_lab.report.fuzz.summary import Summary

STANDING = Standing(
    (StageStanding("execute", 3, 40, 12.0, 148.0), StageStanding("localize", 0, 7, 0.0, None)),
    Elsewhere((Machine("<b>", {"execute": 3}, 1),), 1, 2, {"sent": 1 << 20}, "http://127.0.0.1:8787/status"),
)
SAID = (
    "<td>execute</td><td>3</td><td>40</td><td>12 s</td><td>2.5 min</td>",
    "&lt;b&gt;",
    "sent 1.0 MiB",
    "8787/status",
)


def test_the_page_is_there_until_the_run_is(tmp_path: Path) -> None:
    page = tmp_path / "many.unfinished.html"
    with unfinished_page(tmp_path / "many") as tell:
        assert not page.exists()
        tell(STANDING)
        text = page.read_text()
        tell(STANDING)
    assert all(words in text for words in SAID)
    assert "<b>" not in text
    assert list(tmp_path.iterdir()) == []


def test_it_stays_where_the_run_failed(tmp_path: Path) -> None:
    def fails() -> None:
        with unfinished_page(tmp_path / "many") as tell:
            tell(STANDING)
            raise ValueError("of the run")

    with pytest.raises(ValueError, match="of the run"):
        fails()
    assert (tmp_path / "many.unfinished.html").exists()


def test_a_campaign_s_page_has_it_too() -> None:
    summary = Summary((), {}, {}, {}, {}, {}, seed=3, over=False)
    assert all(words in findings_page(summary, live=True, standing=STANDING) for words in SAID)
    assert "Workers" not in findings_page(summary, live=True)
