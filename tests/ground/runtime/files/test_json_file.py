"""JSON of people is bounded, and no pipe is waited for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from conrepair.ground.runtime.files import json_file
from conrepair.ground.runtime.files.json_file import read_json_text, value_of


@pytest.mark.parametrize("depth", [201, 1000, 100_000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")])
def test_deep_values_are_refused(depth: int, opening: str, closing: str) -> None:
    with pytest.raises(ValueError, match="more than 200 deep"):
        value_of(opening * depth + "1" + closing * depth)


def test_values_as_deep_as_people_write_them_are_read() -> None:
    value = value_of("[" * 200 + "]" * 200)
    for _ in range(199):
        (value,) = value
    assert value == []


@pytest.mark.parametrize("text", ["", "{", "1" * 5000, '{"a" 1}'])
def test_what_is_no_json_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        value_of(text)


@pytest.mark.parametrize("text", [r'"\ud800"', r'{"a\uDC00": 1}', r'["\udc00\ud800"]'])
def test_half_a_surrogate_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="surrogates not allowed"):
        value_of(text)


def test_whole_surrogates_are_read() -> None:
    assert value_of(r'"\ud83d\ude00 \\ud800"') == "\U0001f600 \\ud800"


def test_a_pipe_is_read_as_a_file(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.write(write, b'{"a": 1}')
    os.close(write)
    assert value_of(read_json_text(Path(f"/dev/fd/{read}"))) == {"a": 1}
    os.close(read)


def test_a_pipe_without_a_writer_is_empty(tmp_path: Path) -> None:
    pipe = tmp_path / "config.json"
    os.mkfifo(pipe)
    assert read_json_text(pipe) == ""


def test_what_has_no_end_is_refused() -> None:
    with pytest.raises(OSError, match="/dev/zero is no file, but a device"):
        read_json_text(Path("/dev/zero"))


def test_a_pipe_that_has_no_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_file, "_MOST", 1 << 10)
    read, write = os.pipe()
    os.write(write, bytes(2 << 10))
    with pytest.raises(ValueError, match="more than 0 MiB"):
        read_json_text(Path(f"/dev/fd/{read}"))
    os.close(read)
    os.close(write)


def test_more_values_than_memory_has_room_for_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list takes three bytes of a file, and thirty times as much of memory."""
    monkeypatch.setattr(json_file, "_VALUES", 1000)
    assert len(value_of(f"[{','.join(['[]'] * 400)}]")) == 400
    assert value_of(f'"{"a" * 5000}"') == "a" * 5000
    for text in (f"[{','.join(['[]'] * 600)}]", f"[{','.join(['1'] * 1200)}]"):
        with pytest.raises(ValueError, match="million values"):
            value_of(text)
