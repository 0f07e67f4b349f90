"""Two runs: what got better, worse, is new or gone."""

from __future__ import annotations

import dataclasses
import io
import json
from html.parser import HTMLParser
from pathlib import Path

import localizations
import pytest
import told_runs
from browser import chromium, opened
from rich.console import Console

from conrepair.application.cli import main
from conrepair.application.report.changes.changes import Changes, Sort, changes_between
from conrepair.application.report.changes.console import print_changes
from conrepair.application.report.folder import check_folder, write_folder
from conrepair.application.report.page.page import comparison_html
from conrepair.application.report.result import Problem, Ran, Row
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.runtime.files.whole import put_text
from conrepair.ground.runtime.processes.workers import NO_DEVICE
from conrepair.verdicts.evaluate.verdict import Verdict


def localized(name: str, *places: int, kind: Kind = Kind.HYPERPARAMETERS) -> Row:
    found = localizations.made(4, dict.fromkeys(places, 0.5))
    found = dataclasses.replace(found, faults=tuple(dataclasses.replace(item, kind=kind) for item in found.faults))
    steps = localizations.run_of(found, localizations.about()).rows[0].localized
    return told_runs.row(name, found.verdict, localized=steps)


def sorts(changes: Changes) -> dict[str, Sort]:
    return {row.name.partition("/")[0]: row.sort for row in changes.rows}


def test_verdicts_faults_and_targets() -> None:
    away = Problem(message="no board", kind=NO_DEVICE)
    before = told_runs.audit(
        told_runs.row("broke", Verdict.NOISE),
        told_runs.row("mended", Verdict.FAULTY),
        told_runs.row("stayed", Verdict.EQUIVALENT),
        told_runs.row("dropped", Verdict.EQUIVALENT),
        told_runs.row("fails", Verdict.UNDEPLOYABLE),
        told_runs.row("unseen", Verdict.NOISE),
        localized("more", 1),
        localized("fewer", 1, 2),
        localized("other", 1),
    )
    after = told_runs.audit(
        told_runs.row("broke", Verdict.UNDECIDED),
        told_runs.row("mended", Verdict.NOISE),
        told_runs.row("stayed", Verdict.EQUIVALENT),
        told_runs.row("added", Verdict.FAULTY),
        told_runs.row("fails", problem=Problem(message="refused")),
        told_runs.row("unseen", problem=away),
        localized("more", 1, 2),
        localized("fewer", 2),
        localized("other", 1, kind=Kind.PARAMETERS),
    )
    changes = changes_between(before, after)
    assert sorts(changes) == {
        "broke": Sort.WORSE,
        "fails": Sort.WORSE,
        "more": Sort.WORSE,
        "other": Sort.WORSE,
        "mended": Sort.BETTER,
        "fewer": Sort.BETTER,
        "stayed": Sort.SAME,
        "unseen": Sort.SAME,
        "added": Sort.NEW,
        "dropped": Sort.GONE,
    }
    assert changes.sentence == "4 worse, 2 better, 2 as before, 1 new, 1 gone of 10 targets"
    assert changes.exit_code == 1
    (more,) = [row for row in changes.rows if row.name.startswith("more")]
    assert [(item.sort, item.what) for item in more.details] == [
        (Sort.NEW, "hyperparameters at block/2/conv"),
        (Sort.SAME, "hyperparameters at block/1/conv"),
    ]


def test_layers_that_were_not_looked_at_are_no_news() -> None:
    changes = changes_between(
        told_runs.audit(told_runs.row("net", Verdict.FAULTY)), told_runs.audit(localized("net", 1))
    )
    assert [row.sort for row in changes.rows] == [Sort.SAME]
    assert changes.exit_code == 0


@pytest.mark.parametrize(
    ("before", "after", "sort"),
    [((3, 1000), (9, 1000), Sort.SAME), ((3, 1000), (40, 1000), Sort.BETTER), ((40, 1000), (3, 1000), Sort.WORSE)],
)
def test_a_figure_is_another_one_beyond_chance(before: tuple[int, int], after: tuple[int, int], sort: Sort) -> None:
    rows = [told_runs.row("net", Verdict.NOISE, ran=Ran(accuracy=right)) for right in (before, after)]
    (change,) = changes_between(*map(told_runs.audit, rows)).rows
    assert change.sort is sort
    assert [(item.what, item.sort) for item in change.details] == [("right predictions", sort)]


def test_one_target_is_held_against_one_whatever_it_is_called() -> None:
    found = [localizations.made(3, {1: 0.5}), localizations.made(3)]
    runs = [
        localizations.run_of(item, localizations.about(target=f"/x/{name}.onnx"))
        for item, name in zip(found, ("old", "new"), strict=True)
    ]
    renamed = dataclasses.replace(runs[1], rows=(dataclasses.replace(runs[1].rows[0], model="new.onnx-1"),))
    (change,) = changes_between(runs[0], renamed).rows
    assert (change.sort, change.before, change.after) == (Sort.BETTER, "faulty", "noise")


class _Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert not [name for name, _ in attrs if name.startswith("on") or name == "src"]


def test_names_of_others_stay_text() -> None:
    hostile = told_runs.hostile()
    right = dataclasses.replace(
        hostile, rows=(dataclasses.replace(hostile.rows[0], localized=localized("x").localized),)
    )
    changes = changes_between(right, hostile)
    text = comparison_html(changes)
    assert not _Tags(text).tags & {"script", "img", "link"}
    assert "default-src &#39;none&#39;" in text
    stream = io.StringIO()
    print_changes(changes, Console(file=stream, width=100), Path("/x/comparison.html"))
    assert "\x1b" not in stream.getvalue()
    assert max(map(len, stream.getvalue().splitlines())) <= 100


def test_the_page_asks_for_nothing_and_everyone_can_use_it(tmp_path: Path) -> None:
    runs = told_runs.audit(localized("net", 1), told_runs.row("same", Verdict.NOISE)), told_runs.hostile()
    path = tmp_path / "comparison.html"
    put_text(path, comparison_html(changes_between(*runs)))
    with chromium() as browser:
        for scheme in ("light", "dark"):
            with opened(browser, path, scheme=scheme) as seen:
                assert seen.violations() == []
                assert (seen.errors, seen.requests) == ([], [path.as_uri()])


def test_two_folders_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, run in (
        ("a", told_runs.audit(localized("net", 1), folder=tmp_path / "a")),
        ("b", told_runs.audit(localized("net", 1, 2), folder=tmp_path / "b")),
    ):
        write_folder(run, lambda _, run=run: run)  # type: ignore[misc]
        assert (tmp_path / name / "report.html").is_file()
    folders = [str(tmp_path / "a"), str(tmp_path / "b")]
    assert main(["report", *folders]) == 1
    shown = capsys.readouterr().out
    assert "new hyperparameters at block/2/conv" in shown
    assert "1 worse of 1 target" in shown
    assert "block/2/conv" in (tmp_path / "b" / "comparison.html").read_text(encoding="utf-8")
    check_folder(tmp_path / "b", "audit")  # it's part of the run, which may be replaced
    written = json.loads((tmp_path / "b" / "comparison.json").read_text(encoding="utf-8"))
    assert written["rows"][0]["details"][0]["sort"] == "new"
    assert main(["report", *reversed(folders), "-o", str(tmp_path / "c"), "-f", "json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((tmp_path / "c" / "comparison.json").read_text(encoding="utf-8"))
    assert [row["sort"] for row in printed["rows"]] == ["better"]
    spelled = str(tmp_path / "a" / ".." / "a")
    assert main(["report", *folders, "-o", spelled]) == 1
    check_folder(tmp_path / "a", "audit")  # whichever of the two runs it is, and however it's spelled
    capsys.readouterr()
    assert main(["report", *folders, folders[0]]) == 2
    assert "3 runs are named" in capsys.readouterr().err
