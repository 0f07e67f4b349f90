"""Names out of files never reach a terminal as commands to it."""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path

import onnx
import pytest
from onnx.parser import parse_model
from rich.table import Table
from rich.text import Text

from conrepair.application.cli import main
from conrepair.ground.runtime.shown.progress import say
from conrepair.ground.runtime.shown.terminal import SafeConsole
from conrepair.ground.runtime.words import complain, harmless

HOSTILE = "net\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\x00"


def is_harmless(text: str) -> bool:
    return all(letter.isprintable() or letter in "\n\t" for letter in text)


def test_text() -> None:
    assert harmless("two\n\tlines é") == "two\n\tlines é"
    assert harmless(HOSTILE) == r"net\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\x00"


def test_results_and_errors(capsys: pytest.CaptureFixture[str]) -> None:
    say(HOSTILE)
    complain(HOSTILE)
    told = capsys.readouterr()
    assert is_harmless(told.out)
    assert is_harmless(told.err)


@pytest.mark.parametrize("styled", [False, True])
def test_consoles_style_text_and_clean_it(styled: bool) -> None:
    file = io.StringIO()
    console = SafeConsole(file=file, force_terminal=styled, width=300, color_system="standard" if styled else None)
    table = Table(title=HOSTILE)
    table.add_row(HOSTILE, Text(HOSTILE, style="bold"))
    console.print(table)
    console.print(HOSTILE, markup=False, style="bold")
    written = file.getvalue()
    assert ("\x1b[1m" in written) is styled
    assert "\x1b]0" not in written
    assert "\x1b[2J" not in written
    assert "\x07" not in written


def hostile_model(folder: Path) -> Path:
    model = parse_model('<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) { y = Relu(x) }')
    model.producer_name = HOSTILE.replace("\x00", "")
    model.graph.node[0].name = model.producer_name
    for value in (model.graph.input[0], model.graph.output[0]):
        value.name += "\x1b[2J"
    model.graph.node[0].input[0] = model.graph.input[0].name
    model.graph.node[0].output[0] = model.graph.output[0].name
    path = folder / "net\x1b[2J.onnx"
    onnx.save(model, path)
    return path


@pytest.mark.parametrize("words", [["inspect"], ["inspect", "-f", "json"], ["execute"], ["compare"], ["nosuchverb"]])
def test_verbs(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(hostile_model(tmp_path))
    with contextlib.suppress(SystemExit):
        main([*words, path, *([path] if words[0] == "compare" else [])])
    told = capsys.readouterr()
    assert told.out + told.err
    assert is_harmless(told.out)
    assert is_harmless(told.err)


def test_a_file_that_isnt_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(tmp_path / "no\x1b[2J.onnx")]) == 3
    assert is_harmless(capsys.readouterr().err)
    assert "\x1b" not in repr(sys.argv)
