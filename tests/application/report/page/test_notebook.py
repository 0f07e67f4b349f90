"""What notebooks show of results, and the example notebook, cell by cell."""

from __future__ import annotations

import ast
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import localizations
import pytest
import told_runs

from conrepair.application.report.page.page import notebook_html
from conrepair.application.report.results import Compared, Executed, Localized, Repaired

NOTEBOOK = Path(__file__).resolve().parents[4] / "examples" / "notebook.ipynb"


class _Piece(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not [name for name, _ in attrs if name.startswith("on") or name in {"src", "href", "id"}]
        self.open.append(tag)
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data if self.open[-1:] != ["style"] else ""


def piece(text: str) -> _Piece:
    found = _Piece(text)
    assert found.open == []  # whatever comes behind it in a notebook isn't in it
    assert not found.tags & {"script", "link", "iframe", "img", "html", "body"}
    return found


def cells() -> list[dict[str, Any]]:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    return list(notebook["cells"])


def test_cells_of_the_example_show_what_they_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    shown = []
    for cell in cells():
        if cell["cell_type"] != "code":
            continue
        assert not cell["outputs"]
        body = ast.parse("".join(cell["source"])).body
        last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), str(NOTEBOOK), "exec"), names)  # noqa: S102 (our own)
        value = eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names) if last else None  # noqa: S307
        if value is not None:
            shown.append(value)
    assert [type(value) for value in shown] == [Compared, Localized, Repaired]
    compared, localized, repaired = (" ".join(piece(value._repr_html_()).text.split()) for value in shown)
    assert compared.startswith("faulty Don't ship converted.onnx:")
    assert "edges has pads [0, 0, 1, 1] in the converted model, [1, 1, 0, 0] in the original" in localized
    assert "ship repaired.onnx in its place" in repaired
    assert "at fault" in capsys.readouterr().out
    assert (tmp_path / "repaired" / "report.html").is_file()


def test_names_of_others_stay_text() -> None:
    text = notebook_html(told_runs.hostile())
    assert "onerror=alert(2)" in piece(text).text
    run = localizations.run_of(localizations.made(3), localizations.about())
    assert piece(run._repr_html_()).text.split()[:3] == ["noise", "Safe", "to"]


def test_what_judges_nothing_has_no_screen() -> None:
    assert not hasattr(Executed, "_repr_html_")
