"""What no machine here is: a system without Unix's modules and processes (Windows), or Linux's calls (macOS)."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest
from two_files import run, save_pair

from conrepair.ground.runtime.files import locks
from conrepair.ground.runtime.files.scratch import locked, scratch_folder, sweep
from conrepair.ground.runtime.processes import confinement, landlock, seccomp
from conrepair.ground.runtime.processes.reach import CONFINED, GPU, NETWORK

ROOT = Path(__file__).parents[3]
CONREPAIR = [sys.executable, "-m", "conrepair"]
WITHOUT_UNIX = """
import filelock  # with this system's locks, in place of that system's
import os, select, signal, sys
for name in ("fcntl", "resource", "termios", "pwd", "grp"):
    sys.modules[name] = None
for module, names in {
    os: ("fork", "setsid", "killpg", "sched_getaffinity", "pread", "setpgid"),
    signal: ("setitimer", "SIGALRM", "SIGKILL", "SIGBUS", "SIGHUP", "SIGCHLD", "set_wakeup_fd"),
    select: ("poll",),
}.items():
    for name in names:
        delattr(module, name)
"""


@pytest.fixture
def elsewhere(tmp_path: Path) -> dict[str, str]:
    folder = tmp_path / "start-up"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(WITHOUT_UNIX)
    (tmp_path / "temporary").mkdir()  # with other locks than ours, it would sweep what other processes have in use
    return {
        "PYTHONPATH": f"{folder}:{ROOT}",
        "CONREPAIR_CACHE": str(tmp_path / "cache"),
        "TMPDIR": str(tmp_path / "temporary"),
    }


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        (0, ["inspect", "source.onnx"]),
        (1, ["compare", "source.onnx", "target.onnx"]),
        (0, ["repair", "source.onnx", "target.onnx", "-o", "repaired", "--timeout", "300"]),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_two_files_are_looked_at_in_one_process_and_that_is_said(
    code: int, arguments: list[str], tmp_path: Path, elsewhere: dict[str, str]
) -> None:
    save_pair(tmp_path)
    for known in (False, True):  # what the first one left is taken up, or swept, by the second
        result = run(CONREPAIR, [*arguments, "-q"], tmp_path, elsewhere)
        assert result.returncode == code, (result.stdout, result.stderr)
        assert ("no worker processes" in result.stderr) == (arguments[0] != "inspect" and not known)
        assert "fcntl" not in result.stderr
        assert "Traceback" not in result.stderr


def test_what_needs_processes_says_so(tmp_path: Path, elsewhere: dict[str, str]) -> None:
    result = run(CONREPAIR, ["generate", "-o", "out", "--nodes", "1", "-n", "1", "-q"], tmp_path, elsewhere)
    assert result.returncode == 2, (result.stdout, result.stderr)
    assert "run them on Linux or macOS" in result.stderr


@pytest.mark.parametrize("reach", [CONFINED, GPU, NETWORK])
def test_nothing_of_linux_is_called_where_there_is_none(reach: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def called(*_: object) -> None:
        raise AssertionError("a library of C was asked for calls of Linux")

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(ctypes, "CDLL", called)
    assert (landlock.version(), seccomp.available()) == (0, False)
    assert not any(confinement.confine([], reach).values())
    assert not confinement.within_reach(reach).full


def test_locks_that_are_never_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of filelock, in place of Unix's: a folder in use is left alone, others are swept."""
    monkeypatch.setattr(locks, "fcntl", None)
    with scratch_folder(tmp_path, "work-") as used:
        other = tmp_path / "work-other"
        other.mkdir()
        with pytest.raises(BlockingIOError), locked(used, wait=False):
            pass
        sweep(tmp_path, "work-")
        assert used.is_dir()
        assert not other.exists()
        descriptor = locks.opened_for_lock(used)
        assert locks.lock(descriptor, shared=True)
        assert not locks.lock(descriptor, wait=False)
        os.close(descriptor)
    assert not list(tmp_path.iterdir())


def test_a_lock_of_another_process_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "work-other"
    folder.mkdir()
    code = (
        "import sys, pathlib; from conrepair.ground.runtime.files import locks; locks.fcntl = None; "
        "d = locks.opened_for_lock(pathlib.Path(sys.argv[1])); print(locks.lock(d), flush=True); sys.stdin.read()"
    )
    monkeypatch.setattr(locks, "fcntl", None)
    command = [sys.executable, "-c", code, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        sweep(tmp_path, "work-")
        assert folder.is_dir()
        assert holder.stdin is not None
        holder.stdin.close()
        holder.wait()
    sweep(tmp_path, "work-")
    assert not folder.exists()
