"""What a worker is kept from, tried out in real ones."""

from __future__ import annotations

import os
import pickle
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import reaching_jobs
from job_tables import jobs_of

from conrepair.ground.runtime.processes.confinement import CONFINED, NETWORK, OPEN, Hold, within_reach
from conrepair.ground.runtime.processes.workers import Failure, Job, Success, Workers

JOBS = jobs_of(reaching_jobs)
pytestmark = [pytest.mark.timeout(60), pytest.mark.workers]
HERE = within_reach(CONFINED)
needs_files = pytest.mark.skipif(not HERE.files, reason="this kernel has no Landlock")
needs_network = pytest.mark.skipif(not HERE.network, reason="this kernel filters no calls (seccomp)")
needs_others = pytest.mark.skipif(not HERE.others, reason="this kernel's Landlock is older than version 6")


@pytest.fixture(scope="module", params=[None, {}], ids=["fresh", "forked"])
def imports(request: pytest.FixtureRequest) -> Any:
    """A worker is an interpreter of its own, or forked from another."""
    return request.param


@pytest.fixture(scope="module")
def room(imports: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("room")


@pytest.fixture(scope="module")
def workers(room: Path, imports: Any) -> Iterator[Workers]:
    with Workers(1, folders=(room,), jobs=JOBS, imports=imports) as workers:
        yield workers


def value(workers: Workers, room: Path, function: str, reach: str = CONFINED, **payload: Any) -> dict[str, Any]:
    folder = room / f"{function}-{time.monotonic_ns()}"
    folder.mkdir()
    outcome = workers.call(Job(function, payload, folder, reach=reach))
    assert isinstance(outcome, Success), outcome
    return outcome.value


@needs_files
def test_no_file_outside_of_its_folders_changes(workers: Workers, room: Path, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("whole")
    found = value(workers, room, "write", path=str(tmp_path))
    assert set(found.values()) <= {"PermissionError", "OSError"}, found
    assert [item.name for item in tmp_path.iterdir()] == ["victim"]
    assert (tmp_path / "victim").read_text() == "whole"


@needs_files
def test_what_was_kept_from_a_file_says_so(workers: Workers, room: Path, tmp_path: Path) -> None:
    folder = room / "kept"
    folder.mkdir()
    outcome = workers.call(Job("write_outside", {"path": str(tmp_path / "new")}, folder))
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.error_type) == ("exception", "PermissionError")
    assert outcome.message.startswith(f"what ran here was kept from {tmp_path / 'new'}")


@needs_network
def test_modes_stay_and_nobody_notices(workers: Workers, room: Path, tmp_path: Path) -> None:
    """Landlock doesn't know them; `shutil.copy2` of a library must work all the same."""
    victim = tmp_path / "victim"
    victim.write_text("whole")
    before = victim.stat()
    assert value(workers, room, "change_mode", path=str(victim)) == {"copied": "whole", "touched": True}
    assert stat.S_IMODE(victim.stat().st_mode) == stat.S_IMODE(before.st_mode)


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[dict[str, Any]]:
    path = str(tmp_path / "socket")
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(path)
        unix.listen()
        yield {"port": server.getsockname()[1], "unix": path}


@needs_network
def test_no_socket_is_opened(workers: Workers, room: Path, listening: dict[str, Any]) -> None:
    assert set(value(workers, room, "connect", **listening).values()) == {"PermissionError"}


def test_a_device_that_the_user_named_is_reached(workers: Workers, room: Path, listening: dict[str, Any]) -> None:
    found = value(workers, room, "connect", NETWORK, **listening)
    assert (found["tcp"], found["udp"]) == ("done", "done")


@needs_files
def test_a_worker_with_the_network_writes_nowhere_else_either(workers: Workers, room: Path, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("whole")
    found = value(workers, room, "write", NETWORK, path=str(tmp_path))
    assert set(found.values()) <= {"PermissionError", "OSError"}, found


def test_a_program_of_the_users_own_is_free(workers: Workers, room: Path, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("whole")
    assert value(workers, room, "write", OPEN, path=str(tmp_path))["create"] == "done"


@needs_others
def test_no_other_process_gets_a_signal(workers: Workers, room: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        assert value(workers, room, "end", pid=other.pid) == {"other": "PermissionError", "own": "done"}
        assert other.poll() is None
        other.communicate(b"\n")


def test_what_libraries_do_works(workers: Workers, room: Path) -> None:
    found = value(workers, room, "allowed")
    assert found["said"] == "42"
    assert Path(found["temporary"]).is_dir()
    assert found["temporary"] not in {"/tmp", str(room)}, "it has one of its own"  # noqa: S108


def test_temporary_files_go_with_the_workers(room: Path) -> None:
    with Workers(1, folders=(room,), jobs=JOBS) as workers:
        temporary = Path(value(workers, room, "allowed")["temporary"])
        assert temporary.is_dir()
    assert not temporary.exists()


def test_what_holds_is_said(workers: Workers, room: Path) -> None:
    assert value(workers, room, "holds") == {"text": str(HERE), "full": HERE.full}
    assert value(workers, room, "holds", OPEN)["full"] is False
    lane = workers.idle_lane(frozenset())
    assert lane is not None
    assert lane.process is not None
    assert lane.process.holds == HERE


@pytest.mark.parametrize(
    ("hold", "said"),
    [
        (Hold(), "not kept from files, the network, other processes"),
        (Hold(files=True), "not kept from the network, other processes; kept from files"),
        (Hold(True, True, True), "kept from files, the network, other processes"),
    ],
)
def test_what_holds_in_words(hold: Hold, said: str) -> None:
    assert str(hold) == said


def test_confinement_takes_no_time(tmp_path: Path) -> None:
    program = (
        "import sys, time; started = time.process_time(); "
        "from conrepair.ground.runtime.processes.confinement import confine; "
        "confine([sys.argv[1]], 'confined'); print(time.process_time() - started)"
    )
    times = [
        float(subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, check=True).stdout)
        for _ in range(3)
    ]
    assert min(times) < 0.1, "its imports included"


def test_onnx_runtime_leaves_nothing_in_the_users_folders(tmp_path: Path) -> None:
    variables = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    program = [sys.executable, "-c", "import conrepair, onnxruntime, time; time.sleep(0.5)"]
    paths = os.pathsep.join(filter(None, sys.path))
    subprocess.run(program, check=True, env=variables | {"HOME": str(tmp_path), "PYTHONPATH": paths})
    assert list(tmp_path.rglob("*")) == []


# --- What comes back ---


class _Canary:
    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (self.path,)


@pytest.mark.parametrize("what", ["pickle", "text", "list", "deep"])
def test_an_answer_is_never_more_than_json(
    room: Path, tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code that took hold of a worker answers what it likes."""
    monkeypatch.setattr("conrepair.ground.runtime.processes.process._END_SECONDS", 0.5)  # it doesn't end by itself
    canary = tmp_path / "canary"
    answers = {
        "pickle": pickle.dumps(_Canary(str(canary))),
        "text": b"no JSON",
        "list": b"[]",
        "deep": b"[" * 100_000,
    }
    with Workers(1, folders=(room,), jobs=JOBS) as workers:
        folder = room / what
        folder.mkdir()
        outcome = workers.call(Job("say", {"bytes": answers[what].hex()}, folder))
        assert isinstance(outcome, Failure)
        assert outcome.kind == "crash"
        assert not canary.exists()
        assert value(workers, room, "holds")["full"] == HERE.full, "and the next job works"


# --- Where modules come from ---

_NAMES = ["struct", "jax", "pandas", "triton", "sitecustomize", "usercustomize", "conftest", "numpy", "six"]


@pytest.fixture
def littered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with files that are called like libraries, each of which leaves a mark when it's run."""
    folder = tmp_path / "here"
    folder.mkdir()
    for name in [*_NAMES, "nets", "json", "pathlib", "typing", "socket"]:
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write('{name} ')\nVALUE = 3\n")
    monkeypatch.chdir(folder)
    return folder


def ran(folder: Path) -> str:
    mark = folder.parent / "ran"
    return mark.read_text() if mark.exists() else ""


def test_workers_find_no_module_in_the_current_folder(room: Path, littered: Path) -> None:
    with Workers(1, (str(littered),), folders=(room,), jobs=JOBS) as workers:
        found = value(workers, room, "imported", names=_NAMES)
    assert found["safe"]
    assert str(littered) not in found["path"]
    assert all(str(littered) not in file for file in found["files"].values())
    assert ran(littered) == ""


_SCRIPT = "import sys; from conrepair.application.cli import main; sys.exit(main())"


@pytest.mark.parametrize("how", [["-m", "conrepair"], ["-P", "-c", _SCRIPT]])
def test_verbs_run_no_file_of_the_current_folder(littered: Path, how: list[str]) -> None:
    """As a module, and as the script that an installation makes, which is no file of the current folder."""
    (littered / "net.onnx").write_bytes(b"no model")
    root = str(Path(__file__).parents[4])
    program = [sys.executable, *how, "inspect", "net.onnx"]
    done = subprocess.run(program, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": root})
    assert done.returncode == 3, done.stderr
    assert ran(littered) == ""
