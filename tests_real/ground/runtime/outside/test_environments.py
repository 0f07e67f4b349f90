"""Environments, for real but empty: made whole or not at all, found again, removed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from stand_in_environment import MAKES_IT

from conrepair.ground.runtime.errors import ExitCode, StorageError, ToolEnvironmentError, UsageError
from conrepair.ground.runtime.outside import environments as module
from conrepair.ground.runtime.outside.environments import (
    ENVIRONMENTS,
    Environment,
    MadeEnvironment,
    environment,
    find_environment,
    leftovers,
    make_environment,
    read_pins,
    remove_environment,
    use_environment,
)
from conrepair.ground.runtime.shown.progress import ProgressDisplay

pytestmark = pytest.mark.timeout(300)
QUIET = ProgressDisplay(quiet=True)


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where environments are kept meanwhile."""
    monkeypatch.setattr(module, "environments_folder", lambda: tmp_path / "root")
    return tmp_path / "root"


def wanted(folder: Path, *pins: str, name: str = "small", gigabytes: float = 0.01) -> Environment:
    requirements = folder / "pins.txt"
    requirements.write_text("\n".join(["# a comment", *pins, ""]))
    return Environment(name, "tests", gigabytes, 1, read_pins(requirements))


@pytest.fixture
def fake_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Python that runs the lines of shell that a test writes into it."""
    path = tmp_path / "fake-python"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(path))
    return path


def script(path: Path, *lines: str) -> None:
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))


# --- Making ---


def test_a_real_environment_is_made_once_and_removed(
    tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    item = wanted(tmp_path)
    assert find_environment(item) is None
    made = make_environment(item, ProgressDisplay())
    assert "making environment small" in capsys.readouterr().err
    assert made.folder == root / f"small-{item.key}"
    shown = subprocess.run([str(made.python), "-c", "import sys; print(sys.prefix)"], capture_output=True, text=True)
    assert Path(shown.stdout.strip()) == made.folder
    assert 0.001 < made.gigabytes < 1
    stamp = made.python.lstat().st_mtime_ns
    assert make_environment(item, ProgressDisplay()) == made == find_environment(item)
    assert made.python.lstat().st_mtime_ns == stamp
    assert capsys.readouterr().err == ""
    assert leftovers(item) == []
    assert remove_environment(item, QUIET) == [made.folder]
    assert find_environment(item) is None
    assert remove_environment(item, QUIET) == []


def test_what_was_left_half_made_is_made_again(tmp_path: Path, root: Path, fake_python: Path) -> None:
    script(fake_python, MAKES_IT)
    item = wanted(tmp_path)
    half = root / f"small-{item.key}"
    (half / "bin").mkdir(parents=True)
    (half / "bin" / "python").write_text("half")
    (half / "junk").touch()
    assert find_environment(item) is None
    assert leftovers(item) == [half]
    made = make_environment(item, QUIET)
    assert made.folder == half
    assert not (half / "junk").exists()


def test_an_environment_whose_python_is_gone_is_made_again(tmp_path: Path, fake_python: Path) -> None:
    script(fake_python, MAKES_IT)
    item = wanted(tmp_path)
    made = make_environment(item, QUIET)
    made.python.unlink()
    made.python.symlink_to(tmp_path / "removed-python")
    assert find_environment(item) is None
    assert make_environment(item, QUIET).python.is_file()


def test_other_pins_are_another_environment(tmp_path: Path, fake_python: Path) -> None:
    script(fake_python, MAKES_IT)
    one = make_environment(wanted(tmp_path, "a==1"), QUIET)
    item = wanted(tmp_path, "a==2")
    assert find_environment(item) is None
    assert leftovers(item) == [one.folder]
    assert leftovers(wanted(tmp_path, name="smal")) == [], "not one whose name merely begins alike"
    two = make_environment(item, QUIET)
    assert one.folder != two.folder
    assert remove_environment(item, QUIET) == [two.folder, one.folder]
    assert not one.folder.exists()


def test_the_key_is_of_the_pins_and_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = wanted(tmp_path, "a==1", "B_c==2").key
    assert wanted(tmp_path, "# why", "b-c==2", "a==1").key == key
    assert wanted(tmp_path, "a==1", "B_c==2.0").key != key
    monkeypatch.setattr(sys, "version_info", (3, 12, 1))
    assert wanted(tmp_path, "a==1", "B_c==2").key != key
    with pytest.raises(ValueError, match="isn't name==version"):
        _ = wanted(tmp_path, "a>=1").pins


def test_progress_counts_the_pins(tmp_path: Path, fake_python: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script(fake_python, MAKES_IT)
    make_environment(wanted(tmp_path, "a==1"), ProgressDisplay())
    assert "environment small: 1 of 1" in capsys.readouterr().err


def test_two_at_once_make_it_once(tmp_path: Path, fake_python: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script(fake_python, f'echo x >> "{tmp_path}/tally"', "sleep 1", MAKES_IT)
    item = wanted(tmp_path)
    made: list[MadeEnvironment] = []
    threads = [
        threading.Thread(target=lambda: made.append(make_environment(item, ProgressDisplay()))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made[0] == made[1]
    assert (tmp_path / "tally").read_text() == "x\n"
    assert "waiting for another process" in capsys.readouterr().err


# --- Using ---


def test_what_is_used_stays_until_it_no_longer_is(tmp_path: Path, fake_python: Path) -> None:
    """Two use it side by side; removing waits for both."""
    script(fake_python, MAKES_IT)
    item = wanted(tmp_path)
    made = make_environment(item, QUIET)
    removed: list[list[Path]] = []
    thread = threading.Thread(target=lambda: removed.append(remove_environment(item, QUIET)))
    with use_environment(item) as one:
        with use_environment(item) as two:
            assert one is not None
            assert two is not None
            assert one[0] == two[0] == made
            thread.start()
            thread.join(0.5)
        thread.join(0.5)
        assert thread.is_alive()
        assert find_environment(item) == made
    thread.join(30)
    assert removed == [[made.folder]]
    with use_environment(item) as used:
        assert used is None


def test_using_waits_for_who_removes_it(tmp_path: Path, fake_python: Path) -> None:
    script(fake_python, MAKES_IT)
    item = wanted(tmp_path)
    made = make_environment(item, QUIET)
    seen: list[object] = []

    def use() -> None:
        with use_environment(item) as used:
            seen.append(used)

    thread = threading.Thread(target=use)
    with module._lock(item, QUIET):
        thread.start()
        thread.join(0.5)
        assert thread.is_alive()
        (made.folder / "record.json").unlink()
    thread.join(30)
    assert seen == [None]


def test_what_is_made_while_removing_waits_is_removed(tmp_path: Path, root: Path) -> None:
    item = wanted(tmp_path)
    half = root / f"small-{item.key}"
    removed: list[list[Path]] = []
    thread = threading.Thread(target=lambda: removed.append(remove_environment(item, QUIET)))
    with module._lock(item, QUIET):
        thread.start()
        thread.join(0.5)
        assert thread.is_alive()
        half.mkdir()
    thread.join(30)
    assert removed == [[half]]
    assert not half.exists()


def test_nothing_to_use_or_remove_leaves_no_trace(tmp_path: Path, root: Path) -> None:
    item = wanted(tmp_path)
    with use_environment(item) as used:
        assert used is None
    assert remove_environment(item, QUIET) == []
    assert not root.exists()


# --- Failing ---


def failure(item: Environment) -> str:
    with pytest.raises(ToolEnvironmentError) as caught:
        make_environment(item, QUIET)
    assert caught.value.exit_code == ExitCode.USAGE
    root = module.environments_folder()
    assert not root.exists() or [path for path in root.iterdir() if path.is_dir()] == [], "nothing half-made is left"
    return str(caught.value)


def test_a_package_that_the_index_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    text = failure(wanted(tmp_path, "no-such-package-at-all==1.0"))
    assert text.startswith("environment small could not be made: the package index could not be reached")
    assert "pip config list" in text
    assert "  | ERROR: No matching distribution found for no-such-package-at-all==1.0" in text


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["echo No module named venv", "exit 1"], ["has venv and pip", "  | No module named venv"]),
        (["echo [Errno 28] No space left on device", "exit 1"], ["no space left", "XDG_CACHE_HOME"]),
        ([MAKES_IT, """printf '%s\\n' 'echo boom' 'exit 7' >> "$4/bin/python\""""], ["pip failed", "  | boom"]),
    ],
)  # fmt: skip
def test_steps_that_fail(tmp_path: Path, fake_python: Path, lines: list[str], words: list[str]) -> None:
    script(fake_python, *lines)
    text = failure(wanted(tmp_path))
    assert all(word in text for word in words), text


def test_only_the_last_lines_are_shown(tmp_path: Path, fake_python: Path) -> None:
    script(fake_python, "seq 1000", "exit 1")
    text = failure(wanted(tmp_path))
    assert text.endswith("  | 999\n  | 1000")
    assert "  | 900\n" not in text


def test_too_little_space_is_said_at_once(tmp_path: Path) -> None:
    text = failure(wanted(tmp_path, gigabytes=1e9))
    assert text.startswith("environment small needs about 1e+09 GB below")


def test_another_python_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PINNED_PYTHON", (3, 99))
    assert "pinned for Python 3.99, and this is 3.11" in failure(wanted(tmp_path))


def test_a_cache_folder_that_cannot_be_made(tmp_path: Path, root: Path) -> None:
    root.touch()
    with pytest.raises(StorageError, match="can't be made"):
        make_environment(wanted(tmp_path), QUIET)


def test_an_interruption_leaves_nothing(tmp_path: Path, fake_python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pid_file = tmp_path / "pid"
    script(fake_python, f'echo $$ > "{pid_file}"', 'mkdir -p "$4"', "echo started", "exec sleep 60")

    def interrupted(wanted: Environment, command: list[str], watch: Any, lock: int) -> None:
        def stop(line: str) -> None:
            raise KeyboardInterrupt

        call(wanted, command, stop, lock)

    call = module._call
    monkeypatch.setattr(module, "_call", interrupted)
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        make_environment(wanted(tmp_path), QUIET)
    assert time.monotonic() - started < 30
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)
    assert [path for path in (tmp_path / "root").iterdir() if path.is_dir()] == []


# --- The environments there are ---


@pytest.mark.parametrize("item", ENVIRONMENTS.values(), ids=str)
def test_the_shipped_pins(item: Environment) -> None:
    assert len(item.pins) > 50
    assert not any("+" in version for version in item.pins.values()), "local builds are on nobody's index"
    assert "pip" not in item.pins
    assert {"litert-torch": "0.10.0", "onnx2tf": "1.29.24"}[item.name] == item.pins[item.name]


def test_an_unknown_environment() -> None:
    with pytest.raises(UsageError, match="no environment 'nope'; there are: litert-torch, onnx2tf"):
        environment("nope")
    assert environment("onnx2tf") is ENVIRONMENTS["onnx2tf"]
