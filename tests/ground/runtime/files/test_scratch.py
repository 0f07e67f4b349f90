"""Folders for work in progress: gone afterwards, and swept when their maker was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from conrepair.ground.runtime.files.scratch import kept_folder, scratch_folder, sweep

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
from conrepair.ground.runtime.files.scratch import scratch_folder
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


def test_one_that_can_t_be_rescued_stays(tmp_path: Path) -> None:
    def rescue(folder: Path) -> None:
        raise OSError(folder)

    with scratch_folder(tmp_path, PREFIX, rescue) as folder:
        (folder / "precious").write_text("1")
    with scratch_folder(tmp_path, PREFIX, rescue):
        assert (folder / "precious").read_text() == "1"
    sweep(tmp_path, PREFIX)
    assert names(tmp_path) == []


def test_what_somebody_puts_into_a_folder_that_is_kept_stays(tmp_path: Path) -> None:
    folder = tmp_path / ".unfinished"
    for _ in range(2):
        with kept_folder(folder, PREFIX, lambda _: False, own=["store"]):
            (folder / "store").mkdir()
            (folder / "notes.txt").write_text("mine")
        assert names(folder) == ["notes.txt"]
    (folder / "notes.txt").unlink()
    with kept_folder(folder, PREFIX, lambda _: False, own=["store"]):
        pass
    assert names(tmp_path) == []
