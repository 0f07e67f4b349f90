"""`conrepair repair`, and the stage of an audit, killed, interrupted, or without room at any moment.

The originals stay as they are, no half-written model is left, and the next start goes on.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import killing
import numpy as np
import onnx
import pytest
from crossed import slower
from documents import repair_in
from localized import WEIGHTS, Variant
from told_runs import OF_EVERY_RUN

from conrepair.ground.runtime.files.whole import sha256_of

_ORIGINALS = ("source.onnx", "target.onnx")
_FAULTY = {"inner": 1.7, "dense": -0.6, "bias": 3.0}
_WORDS = ("repair", *_ORIGINALS, "-o", "out", "-q", "--advice", "0", "--samples", "16")


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """A target whose faults hide one another, so that several candidates are judged."""
    return pair(tmp_path / "room")


def pair(folder: Path) -> Path:
    folder.mkdir()
    Variant().write(folder / "source.onnx")
    wrong = {name: WEIGHTS[name] * np.float32(factor) for name, factor in _FAULTY.items()}
    Variant(weights=wrong).write(folder / "target.onnx")
    return folder


def originals(room: Path) -> list[str]:
    return [sha256_of(room / name) for name in _ORIGINALS]


def check_what_is_left(room: Path, before: list[str]) -> str:
    """Whether `out` is there, and then whole; nothing else is visible, and the originals are what they were."""
    assert originals(room) == before
    assert {path.name for path in room.iterdir() if not path.name.startswith(".")} <= {*_ORIGINALS, "out"}
    if not (room / "out").exists():
        return "nothing"
    if repair_in(room / "out")["model"] is None:
        assert {path.name for path in (room / "out").iterdir()} == OF_EVERY_RUN
        return "what is known"
    check_result(room / "out")
    return "the whole result"


def check_result(out: Path, of: Path | None = None) -> dict[str, Any]:
    """A whole result: its model loads, and is the one that the document (of an audit: in `of`) speaks of."""
    document = repair_in(of or out)
    names = {"patch.json", "patch.npz", "repaired.onnx"}
    assert {path.name for path in out.iterdir()} - OF_EVERY_RUN == names  # an audit has these once, for all of it
    assert sha256_of(out / "repaired.onnx") == document["model"]["sha256"]
    onnx.checker.check_model(str(out / "repaired.onnx"), full_check=True)
    return document


def finished(room: Path, before: list[str]) -> dict[str, Any]:
    """Start the same command once more, and let it end."""
    output = killing.finish(process := killing.start(room, *_WORDS))
    assert process.returncode == 0, output
    assert check_what_is_left(room, before) == "the whole result"
    assert sorted(path.name for path in room.iterdir()) == ["out", *_ORIGINALS]
    return check_result(room / "out")


def edits(document: dict[str, Any]) -> Any:
    return document["mended"], sorted(document["edits"]), document["model"]["sha256"]


def moment(room: Path, what: str) -> bool:
    """Whether a search has begun, or has judged something."""
    unfinished = room / ".out.conrepair-unfinished"
    return any(unfinished.glob(f"store/.work/.journal-*/{what}"))


def test_killed_in_mid_search_it_goes_on(room: Path) -> None:
    before = originals(room)
    process = killing.start(room, *_WORDS)
    killing.wait_until(lambda: moment(room, ""))
    killing.kill(process, everybody=False)
    assert check_what_is_left(room, before) == "nothing"
    store = room / ".out.conrepair-unfinished" / "store"
    seen = killing.entries(store)
    assert any(name.startswith("look") for name in seen)
    assert killing.damaged(store) == []
    assert finished(room, before)["mended"]


@pytest.mark.slow
def test_interrupted_it_writes_the_best_or_nothing(room: Path) -> None:
    before = originals(room)
    process = killing.start(room, *_WORDS)
    killing.wait_until(lambda: moment(room, ""))
    os.kill(process.pid, signal.SIGINT)
    output = killing.finish(process)
    assert process.returncode == 130, output
    assert "Ctrl-C again" in output
    killing.wait_until(lambda: not killing.living(process.pid), 15)
    check_what_is_left(room, before)
    assert finished(room, before)["mended"]


def test_interrupted_before_the_search_it_leaves_nothing(room: Path) -> None:
    before = originals(room)
    process = killing.start(room, *_WORDS)
    killing.wait_until(lambda: (room / ".out.conrepair-unfinished").exists())
    os.kill(process.pid, signal.SIGINT)
    output = killing.finish(process)
    # A shell sees 130 in both: where Ctrl-C comes while Python executes a string, as dataclasses do, Python ends
    # itself by the signal, whoever has handled the exception.
    assert process.returncode in {130, -signal.SIGINT}, output
    assert "interrupted" in output
    assert originals(room) == before
    assert sorted(path.name for path in room.iterdir()) == [*_ORIGINALS]


def test_without_room_for_a_file_it_says_so_and_leaves_nothing(room: Path) -> None:
    """Files may grow to 2 KiB: less than the target has."""
    before = originals(room)
    assert (room / "target.onnx").stat().st_size > 2048
    limit = 2048

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    process = subprocess.run(
        [sys.executable, "-m", "conrepair", *_WORDS],
        cwd=room,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limited,
    )
    assert process.returncode not in {0, 1, 130}, process.stdout
    assert "no space left" in process.stderr
    assert "Traceback" not in process.stderr
    assert check_what_is_left(room, before) == "nothing"
    assert finished(room, before)["mended"]


@pytest.mark.parametrize("seconds", ["1e-06", *slower("0.5")])
def test_without_time_it_ends_with_what_it_has(room: Path, seconds: str) -> None:
    before = originals(room)
    output = killing.finish(process := killing.start(room, *_WORDS, "--seconds", seconds))
    assert process.returncode in {0, 1}, output
    left = check_what_is_left(room, before)
    if seconds == "1e-06":
        assert (left, process.returncode) == ("what is known", 1)
        assert "the time was up" in output
    assert killing.leftovers(room) == []


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_killed_at_random_moments(tmp_path: Path) -> None:
    whole = pair(tmp_path / "whole")
    started = time.monotonic()
    expected = edits(finished(whole, originals(whole)))
    duration = time.monotonic() - started
    generator = random.Random(5)
    kills: list[str] = []
    number = 0
    while len(kills) < 20:
        room = pair(tmp_path / f"killed-{number}")
        number += 1
        before = originals(room)
        for _ in range(4):
            process = killing.start(room, *_WORDS)
            try:
                process.wait(timeout=duration * generator.uniform(0.05, 1.0))
            except subprocess.TimeoutExpired:
                killing.kill(process, everybody=bool(generator.getrandbits(1)))
                kills.append(check_what_is_left(room, before))
                continue
            killing.finish(process)
            break
        assert edits(finished(room, before)) == expected
    sys.stderr.write(f"\n{len(kills)} kills left: {sorted(set(kills))}, {kills.count('nothing')} times nothing\n")


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_an_audit_killed_while_it_repairs(tmp_path: Path) -> None:
    def config(folder: Path) -> Path:
        pair(folder)
        models = [{"name": "source", "path": "source.onnx"}]
        models.append({"name": "target", "path": "target.onnx", "compare_with": "source"})
        value = {
            "models": models,
            "dataset": {"synthetic": {"samples": 16}},
            "stages": {"localize": True, "repair": True},
            "repair": {"advice_seconds": 0},
        }
        (folder / "config.json").write_text(json.dumps(value))
        return folder / "config.json"

    def result(folder: Path) -> Any:
        whole = folder / "generated" / "audit"
        (patch,) = (whole / "repair").rglob("patch.json")
        return edits(check_result(patch.parent, whole))

    def begun(folder: Path) -> Callable[[], bool]:
        return lambda: any((folder / "generated" / "store" / ".work").glob(".journal-*"))

    whole = config(tmp_path / "whole")
    process = killing.start(whole)
    killing.wait_until(begun(whole.parent))
    began = time.monotonic()
    killing.finish(process)
    duration = time.monotonic() - began
    expected = result(whole.parent)
    generator = random.Random(6)
    kills = 0
    for number in range(3):
        path = config(tmp_path / f"killed-{number}")
        before = originals(path.parent)
        store = path.parent / "generated" / "store"
        process = killing.start(path)
        killing.wait_until(begun(path.parent))
        time.sleep(duration * generator.uniform(0, 0.8))
        if process.poll() is None:
            killing.kill(process, everybody=bool(generator.getrandbits(1)))
            kills += 1
        assert killing.damaged(store) == []
        assert originals(path.parent) == before
        output = killing.finish(again := killing.start(path))
        assert again.returncode in {0, 1}, output
        assert originals(path.parent) == before
        assert result(path.parent) == expected
        assert killing.leftovers(path.parent / "generated") == []
    assert kills
