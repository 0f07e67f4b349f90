"""What a command is told where the system lets it down: a sentence and an exit code, and no traceback."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from onnx.parser import parse_model

from conrepair.application.cli import main
from conrepair.application.cli.main import command_line
from conrepair.application.cli.shared import time_limit
from conrepair.application.cli.surroundings import check_surroundings, refused_by_system
from conrepair.ground.runtime.errors import UsageError


def run(words: list[str], shell: str = "") -> subprocess.CompletedProcess[str]:
    command = ["bash", "-c", f'{shell} exec "$@"', "bash", sys.executable, "-P", "-m", "conrepair", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("words", [["converters"], ["--help"]])
def test_a_standard_output_that_is_full(words: list[str]) -> None:
    done = run(words, "exec >/dev/full;")
    assert done.returncode == 4
    assert done.stderr.startswith("conrepair: standard output can't be written (No space left on device)")


@pytest.mark.parametrize("shell", ["exec >&-;", "exec 2>&-;", "exec 2>/dev/full;"])
def test_streams_that_are_closed(shell: str) -> None:
    done = run(["converters"], shell)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_current_folder_that_was_removed(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    done = run(["converters"], f"cd {tmp_path}/gone; rmdir {tmp_path}/gone;")
    assert done.returncode == 2
    assert (
        done.stderr
        == "conrepair: The current folder isn't there any more. Go to one that is (cd), and call it again.\n"
    )


def test_few_files_that_may_be_open() -> None:
    done = run(["converters"], "ulimit -n 12;")
    assert done.returncode == 2
    assert "12 files may be open at a time, and 64 are needed" in done.stderr


def test_a_soft_limit_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, tuple[int, int]]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (20, 4096))
    monkeypatch.setattr(resource, "setrlimit", lambda *limits: asked.append(limits))
    check_surroundings()
    assert asked == [(resource.RLIMIT_NOFILE, (4096, 4096))]
    monkeypatch.setattr(resource, "getrlimit", lambda _: (20, 20))
    with pytest.raises(UsageError, match="20 files"):
        check_surroundings()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.EMFILE, "Too many open files"), "ulimit -n"),
        (OSError(errno.ENOSPC, "No space left on device"), "no space left"),
        (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), "ulimit -u"),
        (RuntimeError("can't start new thread"), "ulimit -u"),
        (MemoryError(), "Memory ran out"),
    ],
)
def test_what_the_system_refuses_is_said(error: Exception, words: str) -> None:
    assert words in str(refused_by_system(error))


def test_faults_of_ours_stay_faults() -> None:
    assert refused_by_system(KeyError("x")) is None
    assert refused_by_system(FileNotFoundError(errno.ENOENT, "No such file", "x")) is None


@pytest.mark.parametrize(
    ("words", "limit", "searches"),
    [
        ("compare a b", None, ()),
        ("compare a b --timeout 60", 60, ()),
        ("repair a b --timeout 60", 60, (15, 15)),
        ("repair a b --timeout 60 --seconds 100", 160, (100, 15)),
        ("repair a b --seconds 100 --advice 5", None, (100, 5)),
        ("convert a --to onnx -o b --timeout 5 --seconds 200", 205, (200,)),
        ("generate -o a --timeout 30", 30, (None,)),
        ("generate -o a --timeout 30 --seconds 10", 40, (10,)),
        ("architectures --timeout 30 --each 10", 30, ()),
    ],
)
def test_one_limit_for_all_of_a_command(words: str, limit: float | None, searches: tuple[float, ...]) -> None:
    options, _ = command_line().parse_known_args(words.split())
    assert time_limit(options) == limit
    assert tuple(getattr(options, name) for name in ("seconds", "advice") if hasattr(options, name)) == searches


def test_every_verb_that_has_a_limit_has_this_one() -> None:
    (verbs,) = (action for action in command_line()._actions if action.dest == "==SUPPRESS==" and action.choices)
    limited = {name for name, verb in verbs.choices.items() if "--timeout" in verb._option_string_actions}  # type: ignore[union-attr]
    assert limited >= {"compare", "localize", "repair", "convert", "inspect", "execute", "build", "generate"}
    for name in limited:
        action = verbs.choices[name]._option_string_actions["--timeout"]  # type: ignore[index,union-attr]
        assert "Stop after S seconds" in action.help


def test_weights_that_are_nearly_all_hole_take_no_longer_than_is_allowed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = parse_model('<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) { y = Add(x, w) }')
    weights = model.graph.initializer.add(name="w", data_type=1, dims=[2], data_location=1)
    for key, value in (("location", "w.bin"), ("length", "8")):
        entry = weights.external_data.add()
        entry.key, entry.value = key, value
    onnx.save(model, tmp_path / "net.onnx")
    (tmp_path / "w.bin").touch()
    os.truncate(tmp_path / "w.bin", 200 * 10**9)
    assert main(["inspect", str(tmp_path / "net.onnx"), "--timeout", "0.5", "-q"]) == 4
    assert "didn't end in 0.5 s (--timeout), and was stopped at the hash of w.bin" in capsys.readouterr().err


HELD = """
import sys, conrepair.ground.runtime.processes.deadline as deadline
from conrepair.application.cli import main
from conrepair.application.cli.commands import inspect as inspect_command
deadline._GRACE_SECONDS = 0.2
inspect_command.inspect = lambda options: sum(range(10**15))
sys.argv += ["inspect", sys.argv[0], "--timeout", "0.2"]
sys.exit(main())
"""


CALLED = """
import sys, conrepair.ground.runtime.processes.deadline as deadline
from conrepair.application.cli import main
from conrepair.application.cli.commands import inspect as inspect_command
deadline._GRACE_SECONDS = 0.0
inspect_command.inspect = lambda options: sum(range(10**8))
print("goes on after", main(["inspect", sys.argv[0], "--timeout", "0.01"]))
"""


def test_a_process_that_only_calls_a_command_is_not_ended(tmp_path: Path) -> None:
    script = tmp_path / "held.onnx"
    script.write_text(CALLED)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "goes on after 4\n")
    assert "didn't end in 0.01 s (--timeout)" in done.stderr


def test_a_library_that_lets_nothing_interrupt_it(tmp_path: Path) -> None:
    script = tmp_path / "held.onnx"
    script.write_text(HELD)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert "didn't end in 0.2 s (--timeout)" in done.stderr
    assert "a library that doesn't let itself be interrupted" in done.stderr
