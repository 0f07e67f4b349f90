"""Run one case as a command line, and say what is wrong with how it ended."""

from __future__ import annotations

import contextlib
import io
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks.fuzz.cases import prepare
from conrepair.application.cli import main
from conrepair.application.engine import place, session
from conrepair.application.engine.job_table import JOBS
from conrepair.ground.runtime.files.whole import sha256_of
from conrepair.ground.runtime.processes.workers import Workers

__all__ = ["Ended", "carry_out", "warm"]

_TRACES = re.compile(r"Traceback \(most recent call last\)|this is a fault of conrepair")
_WORDS = 4000


@dataclass(frozen=True)
class Ended:
    """How a case ended.

    Attributes:
        name: Of the case.
        code: The exit code.
        seconds: That it took.
        wrong: What is wrong with it: "traceback", "exit code", "changed", "no words", or "".
        words: What was run, and what it said, where something is wrong.
    """

    name: str
    code: int
    seconds: float
    wrong: str = ""
    words: str = ""


class _Kept(Workers):
    """Workers that the end of a command leaves as they are."""

    def __exit__(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def warm(room: Path, cases: Path) -> Iterator[None]:
    """Let all commands in the block use one worker, and one folder for what they make.

    Args:
        room: For that folder.
        cases: Where their current folders are, which they may write to.
    """
    made = room / "session"
    made.mkdir(parents=True)
    kept = _Kept(1, jobs=JOBS, folders=(made, cases))

    def workers(*_: Any, **__: Any) -> Workers:
        return kept

    @contextlib.contextmanager
    def folder(*_: Any) -> Iterator[Path]:
        yield made

    try:
        with (
            mock.patch.object(place, "Workers", workers),
            mock.patch.object(session, "scratch_folder", folder),
        ):
            yield
    finally:
        Workers.__exit__(kept, None, None, None)


def carry_out(name: str, seed: int, seeds: Path, room: Path) -> Ended:
    """Run a case in a folder, which is gone then.

    Args:
        name: "SORT:NUMBER".
        seed: Of all cases.
        seeds: The whole files; nothing may change them.
        room: The current folder of the command; empty.
    """
    room.mkdir(parents=True)
    prepared = prepare(name, seed, seeds, room)
    given = _contents(room)
    out, err = _Captured(), _Captured()
    started = time.perf_counter()
    with contextlib.chdir(room), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(prepared.words)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    seconds = time.perf_counter() - started
    told = err.text() + out.text()
    wrong = ""
    if _TRACES.search(told):
        wrong = "traceback"
    elif code not in prepared.codes:
        wrong = "exit code"
    elif code > 1 and not told.strip():
        wrong = "no words"
    elif any(_hash(room / path) != sha for path, sha in given.items()):
        wrong = "changed"
    shutil.rmtree(room)
    words = f"{prepared.words}\n{told[: _WORDS // 2]}\n...\n{told[-_WORDS:]}" if wrong else ""
    return Ended(name, code, seconds, wrong, words.encode(errors="backslashreplace").decode())


class _Captured(io.TextIOWrapper):
    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)

    def text(self) -> str:
        self.flush()
        return self.buffer.getvalue().decode()  # type: ignore[attr-defined,no-any-return]


def _contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): _hash(path)
        for path in folder.rglob("*")
        if path.is_symlink() or path.is_file()
    }


def _hash(path: Path) -> str:
    if path.is_symlink():
        return f"to {path.readlink()}"
    return sha256_of(path) if path.is_file() else "gone"
