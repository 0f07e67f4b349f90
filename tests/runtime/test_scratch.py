"""Folders for work in progress: gone afterwards, and swept when their maker was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from conrepair.runtime.files import whole_output, write_text
from conrepair.runtime.scratch import scratch_folder, sweep

PREFIX = ".work-"
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def run_and_die(program: str, folder: Path) -> None:
    done = subprocess.run([sys.executable, "-c", program, str(folder)], check=False, env=ENVIRONMENT)
    assert done.returncode == -signal.SIGKILL


def test_it_is_gone_afterwards(tmp_path: Path) -> None:
    with scratch_folder(tmp_path, PREFIX) as one, scratch_folder(tmp_path, PREFIX) as two:
        assert one != two
        (one / "a").write_text("1")
        assert names(tmp_path) == sorted([one.name, two.name])
    assert names(tmp_path) == []
    with pytest.raises(ValueError, match="no"), scratch_folder(tmp_path, PREFIX):
        raise ValueError("no")
    assert names(tmp_path) == []


def test_only_those_of_the_dead_are_swept(tmp_path: Path) -> None:
    run_and_die(
        """
import os, signal, sys
from pathlib import Path
from conrepair.runtime.scratch import scratch_folder
with scratch_folder(Path(sys.argv[1]), ".work-") as folder:
    (folder / "half").write_text("1")
    os.kill(os.getpid(), signal.SIGKILL)
""",
        tmp_path,
    )
    (tmp_path / "work-of-a-user").mkdir()
    assert len(names(tmp_path)) == 2, "the killed process could not tidy up"
    with scratch_folder(tmp_path, PREFIX) as mine:
        sweep(tmp_path, PREFIX)
        assert names(tmp_path) == [mine.name, "work-of-a-user"]
    assert names(tmp_path) == ["work-of-a-user"]


def test_one_that_is_being_made_is_not_lost_to_a_sweep(tmp_path: Path) -> None:
    """Sweeping all the time, from another thread, doesn't take a folder away from its maker."""
    stop = threading.Event()

    def sweep_on() -> None:
        while not stop.is_set():
            sweep(tmp_path, PREFIX)

    sweeper = threading.Thread(target=sweep_on)
    sweeper.start()
    try:
        for _ in range(200):
            with scratch_folder(tmp_path, PREFIX) as folder:
                (folder / "a").write_text("1")
                assert (folder / "a").read_text() == "1"
    finally:
        stop.set()
        sweeper.join()


def test_an_output_that_a_killed_run_took_away_comes_back(tmp_path: Path) -> None:
    """Killed between the two renames: the earlier output is beside, the new one not yet there."""
    output = tmp_path / "output"
    write_text(output, "earlier")
    run_and_die(
        """
import os, signal, sys
from pathlib import Path
from conrepair.runtime.files import write_text
Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
write_text(Path(sys.argv[1]) / "output", "later")
""",
        tmp_path,
    )
    assert not output.exists()
    with pytest.raises(RuntimeError, match="interrupted"), whole_output(tmp_path / "other"):
        raise RuntimeError("interrupted")
    assert names(tmp_path) == ["output"]
    assert output.read_text() == "earlier"
    write_text(output, "later")
    assert names(tmp_path) == ["output"]


def test_two_that_write_the_same_folder_both_succeed(tmp_path: Path) -> None:
    """What stands there afterwards is one of theirs, whole."""
    output = tmp_path / "output"
    errors: list[BaseException] = []

    def write(text: str) -> None:
        try:
            for _ in range(100):
                with whole_output(output) as folder:
                    folder.mkdir()
                    for name in "ab":
                        (folder / name).write_text(text)
        except BaseException as error:  # noqa: BLE001 (reported below, in the thread of the test)
            errors.append(error)

    writers = [threading.Thread(target=write, args=(text,)) for text in ("one", "two")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert errors == []
    assert names(tmp_path) == ["output"]
    assert (output / "a").read_text() == (output / "b").read_text()
