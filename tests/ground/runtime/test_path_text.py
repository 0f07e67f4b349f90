"""Text that can't be a path is refused before the system sees it; long names are cut in one way."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest

from conrepair.ground.runtime.errors import UsageError
from conrepair.ground.runtime.path_text import checked_path, fitting_name, in_utf8, path_problem


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a\0b", "null character"),
        ("a\ud800b", "isn't UTF-8"),
        (os.fsdecode(b"caf\xe9.onnx"), "isn't UTF-8"),
        ("x" * 256, "has 256 bytes, and 255"),
        ("a/" + "é" * 128 + "/b", "has 256 bytes"),
        ("d/" * 2100, "has 4200 bytes, and 4095"),
    ],
)
def test_what_can_be_no_path_is_said(text: str, why: str) -> None:
    problem = path_problem(text)
    assert why in problem
    assert len(problem) < 200
    problem.encode()  # can be printed anywhere
    assert "\0" not in problem
    with pytest.raises(UsageError, match=r"path|UTF-8"):
        checked_path(text)


@pytest.mark.parametrize("text", ["", "a", "/x/é.onnx", "x" * 255, "a b\n", "d/" * 2000])
def test_what_can_be_a_path_is_let_through(text: str) -> None:
    assert path_problem(text) == ""
    assert checked_path(text) == Path(text)


def test_outputs_leave_room_for_what_is_named_after_them() -> None:
    assert path_problem("x" * 200, output=True) == ""
    assert "200 are the most" in path_problem("x" * 201, output=True)
    assert "3495 are the most" in path_problem("d/" * 1800, output=True)


def test_short_names_stay() -> None:
    assert fitting_name("resnet.onnx") == "resnet.onnx"
    assert fitting_name("x" * 200) == "x" * 200


@pytest.mark.parametrize("letter", ["x", "é", "😀"])
def test_long_names_fit_and_stay_apart(letter: str, tmp_path: Path) -> None:
    one, two = (fitting_name(f"head{letter * 300}{end}") for end in ("one", "two"))
    assert one != two
    assert one.startswith("head")
    assert one.endswith("one")
    assert len(os.fsencode(one)) <= 200
    (tmp_path / f"{one}.data").touch()
    assert fitting_name(f"head{letter * 300}one") == one


def test_bytes_that_are_not_utf_8_are_shown_as_escapes() -> None:
    assert in_utf8(os.fsdecode(b"caf\xe9.jpg")) == r"caf\xe9.jpg"
    assert in_utf8("café.jpg") == "café.jpg"


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            ".",
            "..",
            "../a",
            "/a",
            "a/b",
            "a\\b",
            "a:b",
            "a\0b",
            "a\nb",
            "a\x1bb",
            "a\u202eb",
            "a\ud800b",
            ".hidden",
        ),
        *(".hidden", "a.", "a ", " a", "CON", "con.txt", "nul.", "Com1", "lpt\u00b9.log", "?*", 'a"b', "\u2028"),
    ],
)
def test_what_no_file_can_be_called_everywhere_is_replaced(text: str) -> None:
    name = fitting_name(text)
    assert PureWindowsPath(name).parts == PurePosixPath(name).parts == (name,)
    assert name.isprintable()
    assert not re.match(r"(con|nul|com1|lpt.)(\.|$)", name, re.IGNORECASE)
    assert not name.startswith(".")
    assert not name.endswith((".", " "))
    assert fitting_name(name) == name != text
