"""What people name is opened only where it's a file, of a size that was asked before it's read."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

from conrepair.ground.runtime.errors import ExitCode
from conrepair.ground.runtime.files.ordinary_file import NotOrdinaryError, open_ordinary, read_ordinary
from conrepair.ground.runtime.files.whole import sha256_of

_HUGE = 200 * 10**9


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def _endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


_ODD = {"a pipe": _pipe, "a socket": _socket, "a device": _endless}


@pytest.mark.parametrize(("kind", "make"), _ODD.items(), ids=_ODD)
def test_what_has_no_end_is_refused_before_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, make: Callable[[Path], None]
) -> None:
    monkeypatch.chdir(tmp_path)  # a socket's path is short
    path = Path("odd")
    make(path)
    monkeypatch.setattr(os, "open", lambda *_: pytest.fail("it was opened"))
    with pytest.raises(NotOrdinaryError, match=f"odd is no file, but {kind}") as refused:
        open_ordinary(path)
    assert refused.value.exit_code is ExitCode.USAGE


def test_a_file_that_was_replaced_by_a_pipe_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, pipe = tmp_path / "file", tmp_path / "pipe"
    path.write_bytes(b"ordinary")
    os.mkfifo(pipe)
    opened = os.open
    monkeypatch.setattr(os, "open", lambda _, flags: opened(pipe, flags))
    with pytest.raises(NotOrdinaryError, match="is no file, but a pipe"):
        open_ordinary(path)


def test_a_size_is_asked_before_bytes_are_read(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    path.touch()
    os.truncate(path, _HUGE)
    with pytest.raises(NotOrdinaryError, match=r"200,000,000,000 bytes, and 1,048,576 are the most"):
        read_ordinary(path, 1 << 20)


def test_links_to_files_are_files(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"content")
    (tmp_path / "link").symlink_to(path)
    assert read_ordinary(tmp_path / "link", 7) == b"content"


def test_no_more_is_read_than_a_file_says_that_it_has() -> None:
    # It's made up as it's read, says that it has nothing, and others like it have no end.
    assert Path("/proc/self/maps").read_bytes()
    assert read_ordinary("/proc/self/maps", 1 << 30) == b""


def test_a_hash_waits_for_no_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NotOrdinaryError):
        sha256_of(tmp_path / "pipe")
    before = sha256_of(tmp_path)
    (tmp_path / "endless").symlink_to("/dev/zero")
    assert sha256_of(tmp_path) == before


def test_an_interrupt_at_any_step_of_opening_is_an_interrupt(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"ordinary")
    steps = 0

    def interrupted_at(last: int) -> bool:
        nonlocal steps
        steps = 0

        def step(frame: FrameType, event: str, _: object) -> object:
            nonlocal steps
            frame.f_trace_opcodes = True
            steps += event == "opcode"
            if steps == last:
                sys.settrace(None)
                raise KeyboardInterrupt
            return step

        before = sys.gettrace()
        sys.settrace(step)
        try:
            open_ordinary(path).close()
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(before)
        return False

    at = 1
    while interrupted_at(at):
        at += 1
    assert at > steps > 50
