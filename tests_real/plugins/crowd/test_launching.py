"""The programs of docs/crowd.md that start a cluster, as they stand there but for the machines' names and numbers.

SSH is one on loopback, and SLURM's commands are stand-ins; asyncssh and dask-jobqueue are no libraries of ours.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed")
pytest.importorskip("cryptography")

from crowd_audit import document, entries
from crowd_cluster import certificate, until

from conrepair.ground.runtime.errors import ExitCode

pytestmark = [pytest.mark.slow, pytest.mark.workers, pytest.mark.timeout(600)]

Right = tuple[Path, Path, dict[str, Any]]

_DOCS = Path(__file__).parents[4] / "docs" / "crowd.md"
_SUPPORT = Path(__file__).parents[4] / "tests" / "support"
_SBATCH = """#!/bin/sh
folder="$(dirname "$0")"
cp "$1" "$folder/$$.sh"
setsid sh "$folder/$$.sh" > "$folder/$$.out" 2>&1 < /dev/null &
echo $! > "$folder/$$.pid"
echo "Submitted batch job $$"
"""
_SCANCEL = """#!/bin/sh
kill -- "-$(cat "$(dirname "$0")/$1.pid")"
"""


def program(heading: str, instead: Mapping[str, str]) -> str:
    """A program of the page, with some words replaced."""
    _, _, rest = _DOCS.read_text().partition(f"### {heading}\n")
    found = re.search(r"```python\n(.*?)```", rest, re.DOTALL)
    assert found
    text = found[1]
    for before, after in instead.items():
        assert before in text
        text = text.replace(before, after)
    return text


def variables(folder: Path) -> dict[str, str]:
    """Dask's settings for certificates, as the page says them."""
    files = certificate(folder)
    own = {"CA_FILE": files["ca"]}
    for role in ("CLIENT", "SCHEDULER", "WORKER"):
        own |= {f"{role}__CERT": files["ca"], f"{role}__KEY": files["key"]}
    path = os.pathsep.join([str(_SUPPORT.parents[1]), *filter(None, sys.path)])
    return {f"DASK_DISTRIBUTED__COMM__TLS__{name}": value for name, value in own.items()} | {"PYTHONPATH": path}


@contextlib.contextmanager
def running(text: str, folder: Path, own: Mapping[str, str]) -> Iterator[str]:
    """The address that a program prints, which is ended behind the block."""
    (folder / "start.py").write_text(text)
    command = [sys.executable, str(folder / "start.py")]
    started = subprocess.Popen(
        command, env=os.environ | own, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert started.stdout is not None
    try:
        yield started.stdout.readline().strip()
        started.communicate("\n", timeout=60)
        assert started.returncode == 0
    finally:
        started.kill()
        started.wait()


def comes_to_the_same(address: str, right: Right, room: Path, own: Mapping[str, str]) -> str:
    """Do the audit there; what the command says of it."""
    models, out, asked = right
    config = models / f"{room.name}.json"
    config.write_text(json.dumps(asked))
    words = ["run", str(config), "-o", str(room / "out"), "--engine", "dask", "--scheduler", address]
    words += ["--exchange", str(room / "exchange")]
    command = [sys.executable, "-m", "conrepair", *words]
    done = subprocess.run(command, env=os.environ | own, capture_output=True, text=True, check=False)
    assert done.returncode == ExitCode.MODEL_LOAD, done.stderr
    assert document(room / "out") == document(out)
    assert entries(room / "out") == entries(out)
    return done.stderr


def test_machines_by_ssh(right: Right, tmp_path: Path) -> None:
    pytest.importorskip("asyncssh")
    own = variables(tmp_path)
    server = subprocess.Popen([sys.executable, str(_SUPPORT / "ssh_server.py"), str(tmp_path)], env=os.environ | own)
    try:
        port = int(until(lambda: (tmp_path / "port").exists() and (tmp_path / "port").read_text()))
        (tmp_path / "known").write_text(f"[127.0.0.1]:{port} {(tmp_path / 'host_key.pub').read_text()}")
        reached = {
            "port": port,
            "known_hosts": str(tmp_path / "known"),
            "client_keys": [str(tmp_path / "client_key")],
        }
        instead = {
            '["node0", "node1", "node2"]': repr(["127.0.0.1"] * 3),
            '{"username": "me"}': repr({"username": "me"} | reached),
            '"port": 8786': '"port": 0, "host": "127.0.0.1"',
            '"n_workers": 16': '"n_workers": 1',
        }
        with running(program("SSH", instead), tmp_path, own) as address:
            said = comes_to_the_same(address, right, tmp_path, own)
    finally:
        server.kill()
        server.wait()
    assert "Dask has 2 workers with 2 threads" in said


def test_machines_by_slurm_s_commands(right: Right, tmp_path: Path) -> None:
    pytest.importorskip("dask_jobqueue")
    (commands := tmp_path / "commands").mkdir()
    for name, text in (("sbatch", _SBATCH), ("scancel", _SCANCEL)):
        (commands / name).write_text(text)
        (commands / name).chmod(0o755)
    own = variables(tmp_path) | {"PATH": f"{commands}{os.pathsep}{os.environ['PATH']}"}
    instead = {"cores=16": "cores=1", "processes=16": "processes=1", "64GB": "2GB", "jobs=4": "jobs=2"}
    with running(program("SLURM", instead), tmp_path, own) as address:
        said = comes_to_the_same(address, right, tmp_path, own)
    assert re.search(r"jobs: SLURMCluster-0 \d+, SLURMCluster-1 \d+", said)
