"""Scripts in processes of their own: values, failures, deaths, output."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import worker_jobs
from job_tables import jobs_of

from conrepair.ground.runtime.errors import ConversionError, ToolCrashError, ToolEnvironmentError
from conrepair.ground.runtime.files.whole import write_json
from conrepair.ground.runtime.outside import environments
from conrepair.ground.runtime.outside.environments import (
    ENVIRONMENTS,
    Environment,
    find_environment,
    make_environment,
    remove_environment,
)
from conrepair.ground.runtime.outside.scripts import run_script
from conrepair.ground.runtime.processes.workers import Failure, Job, Success, Workers
from conrepair.ground.runtime.shown.progress import ProgressDisplay

JOBS = jobs_of(worker_jobs)
pytestmark = pytest.mark.timeout(120)


def write(folder: Path, *lines: str, first: str = "import os, sys, time, signal") -> Path:
    body = "\n".join(f"    {line}" for line in lines)
    path = folder / "script.py"
    path.write_text(f"{first}\n\n\ndef main(arguments):\n{body}\n")
    return path


def run(folder: Path, *lines: str, **options: Any) -> dict[str, Any]:
    scratch = folder / "scratch"
    scratch.mkdir()
    return run_script(write(folder, *lines), {"number": 3, "text": "ü"}, scratch, what="the tool", **options)


# --- Answers ---


def test_values_go_in_and_come_out(tmp_path: Path) -> None:
    value = run(tmp_path, "return {'given': arguments, 'here': os.getcwd(), 'files': os.listdir()}")
    assert value == {"given": {"number": 3, "text": "ü"}, "here": str(tmp_path / "scratch" / "room"), "files": []}


def test_environment_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEPT", "yes")
    value = run(tmp_path, "return dict(os.environ)", variables={"KERAS_BACKEND": "torch"})
    assert (value["KEPT"], value["KERAS_BACKEND"]) == ("yes", "torch")
    assert "KERAS_BACKEND" not in os.environ


def test_our_own_python_finds_the_modules_that_we_find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "a_users_own.py").write_text("ANSWER = 42\n")
    monkeypatch.syspath_prepend(tmp_path / "modules")
    lines = "import a_users_own, conrepair.ground.runtime.outside.scripts", "return {'answer': a_users_own.ANSWER}"
    assert run(tmp_path, *lines) == {"answer": 42}


def test_classes_of_a_script_know_their_module(tmp_path: Path) -> None:
    lines = "import inspect", "class Net:", "    pass", "return {'found': 'class Net' in inspect.getsource(Net)}"
    assert run(tmp_path, *lines) == {"found": True}


def test_a_crash_behind_the_result_doesnt_matter(tmp_path: Path) -> None:
    lines = "import atexit", "atexit.register(os.abort)", "return {'done': True}"
    assert run(tmp_path, *lines) == {"done": True}


# --- Failures ---


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("raise ValueError('axis 3 is out of range')", "the tool: ValueError: axis 3 is out of range"),
        ("sys.exit(1)", r"the tool: the tool gave up \(exit code 1\)"),
        ("sys.exit('no such operator')", r"the tool: the tool gave up \(exit code no such operator\)"),
        ("import no_such_module", "the tool: ModuleNotFoundError: No module named 'no_such_module'"),
        ("return {'value': float('nan')}", "the tool: ValueError: Out of range float values"),
        (
            "from conrepair.ground.runtime.errors import ModelLoadError as E; raise E('It is damaged.')",
            r"^the tool: It is",
        ),
    ],
)
def test_what_a_script_raises(tmp_path: Path, line: str, words: str) -> None:
    with pytest.raises(ConversionError, match=words) as caught:
        run(tmp_path, line)
    assert not isinstance(caught.value, ToolCrashError)


@pytest.mark.parametrize("line", ["raise MemoryError('3 TiB')", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_running_out_of_memory(tmp_path: Path, line: str) -> None:
    with pytest.raises(MemoryError):
        run(tmp_path, line)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", r"the process of the tool died \(SIGSEGV\)"),
        ("os.abort()", r"the process of the tool died \(SIGABRT\)"),
        ("os._exit(3)", "the process of the tool ended with exit code 3 before it was done"),
        ("os._exit(0)", "the process of the tool ended with exit code 0 before it was done"),
    ],
)
def test_deaths(tmp_path: Path, line: str, words: str) -> None:
    with pytest.raises(ToolCrashError, match=words):
        run(tmp_path, line)


# --- Environments ---


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    """An empty environment, made for real."""
    folder = tmp_path_factory.mktemp("environments")
    item = Environment("small", "tests", 0.01, 1, {})
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ENVIRONMENTS, "small", item)
        patch.setattr(environments, "environments_folder", lambda: folder / "root")
        make_environment(item, ProgressDisplay(quiet=True))
        yield item


def test_a_script_in_an_environment(tmp_path: Path, small: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    lines = (
        "import importlib.util, shutil",
        "found = {name: bool(importlib.util.find_spec(name)) for name in ('conrepair', 'numpy', 'json')}",
        "return {'found': found, 'path': sys.path, 'prefix': sys.prefix, 'pip': shutil.which('pip')}",
    )
    value = run(tmp_path, *lines, environment_name="small")
    assert value["found"] == {"conrepair": False, "numpy": False, "json": True}
    assert str(tmp_path) not in value["path"], "neither PYTHONPATH nor the script's folder"
    assert f"small-{small.key}" in value["prefix"]
    assert f"small-{small.key}" in value["pip"], "its own programs come first"


def test_an_environment_that_isnt_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "environments_folder", lambda: tmp_path)
    with pytest.raises(ToolEnvironmentError, match="Run `conrepair environments make onnx2tf`"):
        run(tmp_path, "return {}", environment_name="onnx2tf")


def test_an_environment_isnt_removed_under_a_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script's own process holds the lock, so that it stays held if we are killed."""
    item = Environment("used", "tests", 0.01, 1, {})
    monkeypatch.setitem(ENVIRONMENTS, "used", item)
    monkeypatch.setattr(environments, "environments_folder", lambda: tmp_path / "root")
    folder = tmp_path / "root" / f"used-{item.key}"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(sys.executable)
    write_json(folder / "record.json", {"gigabytes": 0, "seconds": 0})
    started, go_on = tmp_path / "started", tmp_path / "go-on"
    lines = (
        f"open({str(started)!r}, 'w').close()",
        f"while not os.path.exists({str(go_on)!r}): time.sleep(0.02)",
        "links = [os.path.realpath(f'/proc/self/fd/{name}') for name in os.listdir('/proc/self/fd')]",
        "return {'there': os.path.exists(sys.executable), 'locks': sum(x.endswith('/.used.lock') for x in links)}",
    )
    values: list[dict[str, Any]] = []
    using = threading.Thread(target=lambda: values.append(run(tmp_path, *lines, environment_name="used")))
    removing = threading.Thread(target=remove_environment, args=(item, ProgressDisplay(quiet=True)))
    using.start()
    while not started.exists():
        assert using.is_alive()
        time.sleep(0.02)
    removing.start()
    removing.join(0.5)
    assert removing.is_alive()
    assert find_environment(item) is not None
    go_on.touch()
    using.join(30)
    removing.join(30)
    assert values == [{"there": True, "locks": 1}]
    assert not folder.exists()


# --- In a worker ---


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    with Workers(1, jobs=JOBS) as workers:
        yield workers


def job(folder: Path, *lines: str, timeout: float = 60.0) -> Job:
    script = write(folder, *lines)
    (folder / "job").mkdir()
    return Job("script", {"script": str(script)}, folder / "job", timeout=timeout)


@pytest.mark.workers
def test_output_is_the_worker_s(workers: Workers, tmp_path: Path) -> None:
    outcome = workers.call(job(tmp_path, "print('layer 7')", "os.write(2, b'stride 0\\n')", "sys.exit(1)"))
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.error_type) == ("refused", "ToolError")
    assert outcome.repeatable
    assert "layer 7" in outcome.last_words
    assert "stride 0" in outcome.last_words


@pytest.mark.workers
@pytest.mark.parametrize(("number", "kind"), [("SIGSEGV", "crash"), ("SIGKILL", "memory")])
def test_a_death_is_not_stored_and_costs_no_worker(workers: Workers, tmp_path: Path, number: str, kind: str) -> None:
    outcome = workers.call(job(tmp_path, "print('layer 7', flush=True)", f"os.kill(os.getpid(), signal.{number})"))
    assert isinstance(outcome, Failure)
    assert outcome.kind == kind
    assert not outcome.repeatable
    assert "layer 7" in outcome.last_words
    assert isinstance(workers.call(Job("echo", {}, tmp_path / "job")), Success)


@pytest.mark.workers
def test_the_process_ends_with_its_worker(tmp_path: Path) -> None:
    """A worker that runs out of time is killed, and can't end the process itself."""
    pid_file = tmp_path / "pid"
    lines = f"open({str(pid_file)!r}, 'w').write(str(os.getpid()))", "time.sleep(100)"
    with Workers(1, jobs=JOBS) as workers:
        outcome = workers.call(job(tmp_path, *lines, timeout=5.0))
    assert isinstance(outcome, Failure)
    assert outcome.kind == "timeout"
    pid = int(pid_file.read_text())
    ends = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists() and time.monotonic() < ends:
        time.sleep(0.05)
    assert not Path(f"/proc/{pid}").exists()
