"""The page of an audit in a browser: its matrix, its causes, its files, by mouse, by keyboard and on paper."""

from __future__ import annotations

import dataclasses
import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import localizations
import pytest
from browser import chromium, opened
from pages import HOSTILE

from conrepair.application.config.load import parse_config
from conrepair.application.pipeline.audit import run_and_write
from conrepair.application.report.page.page import page_html
from conrepair.application.report.result import RepairedTarget
from conrepair.verdicts.evaluate.verdict import Verdict

_TARGETS = 15
_PAGES = 6


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of an audit: two copies of a file with wrong pads, a conversion that is right, on two backends."""
    base = tmp_path_factory.mktemp("audit")
    localizations.wrong_pads(base)
    shutil.copy2(base / "target.onnx", base / "other.onnx")
    config = {
        "output": "generated",
        "dataset": {"synthetic": {"samples": 6}},
        "stages": {"localize": True, "repair": True},
        "localize": {"samples": 2},
        "repair": {"advice_seconds": 0, "unseen": 4},
        "limits": {"timed": False},
        "backends": ["libraries", "onnxruntime"],
        "models": [
            {"name": "net", "path": "source.onnx", "conversions": [{"via": ["onnx2torch"]}]},
            {"name": "padded", "path": "target.onnx", "compare_with": "net"},
            {"name": "again", "path": "other.onnx", "compare_with": "net"},
        ],
    }
    result = run_and_write(parse_config(config, "test"), base, quiet=True)
    assert result.exit_code == 0, "what a repair made right everywhere is right"
    return result.folder


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of 15 targets of one source that aren't right, two of them with names that look like markup."""
    run = localizations.run_of(localizations.made(12, {7: 0.5}), localizations.about())
    (row,) = run.rows
    row = dataclasses.replace(row, reference="net", verdict=Verdict.FAULTY, reason="relative error 0.5")
    names = [f"net_{place}" for place in range(_TARGETS - 2)] + [HOSTILE[:200], f"x{HOSTILE[:200]}"]
    rows = [dataclasses.replace(row, model=name, conversion="a+b") for name in names]
    rows[3:7] = [dataclasses.replace(item, repaired=RepairedTarget(verdict=Verdict.NOISE)) for item in rows[3:7]]
    path = tmp_path_factory.mktemp("wrong") / "report.html"
    path.write_text(page_html(dataclasses.replace(run, kind="audit", rows=tuple(rows))), encoding="utf-8")
    return path


@pytest.mark.parametrize(("scheme", "width"), itertools.product(("light", "dark"), (1400, 400)))
def test_the_matrix_comes_first_and_nothing_keeps_people_out(
    browser: Any, folder: Path, wrong: Path, scheme: Any, width: int
) -> None:
    for path in (folder / "report.html", wrong):
        with opened(browser, path, scheme=scheme, size=(width, 900)) as seen:
            headings = seen.page.locator("main h2").all_text_contents()
            assert headings[:2] == ["Models, conversions and where they ran", "What is wrong, by cause"]
            assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
            assert seen.requests == [path.as_uri()]
            assert seen.violations() == []
            assert seen.errors == []


def test_a_repaired_target_is_green_wherever_it_ran(browser: Any, folder: Path) -> None:
    with opened(browser, folder / "report.html") as seen:
        line = seen.page.locator(".matrix tbody tr").filter(has_text="padded")
        assert line.locator("td.cell.right .badge").all_text_contents() == ["repaired", "repaired"]
        assert "before: error" in str(line.text_content())
        assert str(seen.page.locator("h1").text_content()).startswith("repaired Safe to ship")
        assert "4 of them after a repair" in str(seen.page.locator("h1").text_content())
        assert "net, padded, again" in seen.page.title()


def test_one_cause_has_its_targets_and_links_to_files_that_are_there(browser: Any, folder: Path) -> None:
    with opened(browser, folder / "report.html") as seen:
        (cause,) = seen.page.locator(".causes > ol > li").all()
        assert "2 targets, all repaired" in str(cause.locator("h3").text_content())
        assert cause.locator("ul li > a").all_text_contents() == ["padded (target.onnx)", "again (other.onnx)"]
        assert cause.locator("code").count() > 0, "names are code"
        links = [str(link.get_attribute("href")) for link in seen.page.locator(".files a").all()]
        assert "repair/padded/source/repaired.onnx" in links
        assert "repair/padded/source/patch.json" in links
        assert {"result.json", "comparisons.csv", "summary.md"} <= set(links)
        assert [link for link in links if not (folder / unquote(link)).is_file()] == []


def test_the_matrix_is_sorted_and_filtered_by_verdict(browser: Any, wrong: Path) -> None:
    with opened(browser, wrong) as seen:
        rows = seen.page.locator(".matrix tbody tr:visible")
        seen.page.locator(".matrix thead").get_by_role("button", name="own library").click()
        assert rows.first.locator(".badge").text_content() == "repaired"
        seen.page.locator(".matrix thead").get_by_role("button", name="own library").click()
        assert rows.first.locator(".badge").text_content() == "faulty"
        repaired = seen.page.get_by_role("button", name="repaired 4")
        repaired.focus()
        seen.page.keyboard.press("Enter")
        assert repaired.get_attribute("aria-pressed") == "true"
        assert rows.count() == seen.page.locator("details.row:visible").count() == 4
        assert "4 of 15" in str(seen.page.locator(".matrix .count").text_content())
        seen.page.locator(".matrix .filter").fill("net_4")
        assert rows.count() == 1
        repaired.click()
        seen.page.locator(".matrix .filter").fill("")
        assert rows.count() == _TARGETS
        assert seen.errors == []


def test_on_paper_only_what_is_wrong_is_unfolded(browser: Any, wrong: Path) -> None:
    with opened(browser, wrong) as seen:
        assert seen.page.pdf(format="A4").count(b"/Type /Page\n") <= _PAGES
        seen.page.emulate_media(media="print")
        seen.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert seen.page.locator("details.row.fails:not([open])").count() == 0
        assert seen.page.locator("details.row[open]:not(.fails)").count() == 0
        assert seen.page.locator("details.row:not(.fails)").count() == 4
        seen.page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert seen.page.locator("details.row[open]").count() == 0


def test_the_keyboard_reaches_matrix_and_causes(browser: Any, wrong: Path) -> None:
    with opened(browser, wrong) as seen:
        reached = []
        for _ in range(60):
            seen.page.keyboard.press("Tab")
            reached.append(
                seen.page.evaluate(
                    "(() => { const e = document.activeElement, at = e.closest('.matrix, .causes');"
                    " return at && at.className + ' ' + e.tagName.toLowerCase(); })()"
                )
            )
        assert {"matrix button", "matrix input", "matrix a", "causes summary"} <= set(reached)
        link = seen.page.locator(".matrix tbody a").first
        link.focus()
        seen.page.keyboard.press("Enter")
        seen.page.wait_for_function("document.querySelector('details.row').open")
        assert seen.errors == []
