"""A Dask cluster on this machine's loopback, with TLS: processes that tests start, end and start again."""

from __future__ import annotations

import datetime as dt
import ipaddress
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

_SUPPORT = Path(__file__).parent
_ROOT = _SUPPORT.parents[1]
PATIENCE = 60.0


def until(holds: Callable[[], Any]) -> Any:
    """What a call returns, once that is something."""
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        if found := holds():
            return found
        time.sleep(0.1)
    raise TimeoutError


def certificate(folder: Path) -> dict[str, str]:
    """Files of one certificate that everybody has, and that signs itself."""
    folder.mkdir(parents=True, exist_ok=True)
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    now = dt.datetime.now(dt.UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(names, critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "key.pem").write_bytes(private)
    (folder / "certificate.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    return {"ca": str(folder / "certificate.pem"), "key": str(folder / "key.pem")}


def tls_config(files: Mapping[str, str]) -> dict[str, Any]:
    """Dask's own settings for it."""
    tls = "distributed.comm.tls"
    own = {f"{tls}.client.cert": files["ca"], f"{tls}.client.key": files["key"]}
    return {f"{tls}.ca-file": files["ca"], "distributed.comm.require-encryption": True} | own


class LoopbackCluster:
    """A scheduler and its workers, as processes. Use as a context manager.

    Args:
        folder: Of its own.
        workers: How many to begin with.
        settings: Dask's, as variables, of all its processes.
        nannies: Whether each worker has one, which starts it anew.
    """

    def __init__(
        self, folder: Path, workers: int = 3, settings: Mapping[str, str] | None = None, *, nannies: bool = False
    ) -> None:
        self.folder, self._count, self._settings, self._nannies = folder, workers, settings or {}, nannies
        self.files = certificate(folder)
        self.exchange = folder / "exchange"
        with socket.socket() as some:
            some.bind(("127.0.0.1", 0))
            self.port = some.getsockname()[1]
        self.address = f"tls://127.0.0.1:{self.port}"
        self.scheduler: subprocess.Popen[bytes] | None = None
        self.workers: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> LoopbackCluster:
        self.start_scheduler()
        for number in range(self._count):
            self.start_worker(f"w{number}")
        return self

    def __exit__(self, *_: object) -> None:
        for process in [*self.workers.values(), self.scheduler]:
            if process is not None:
                process.kill()
                process.wait()

    def start_scheduler(self) -> None:
        options = ["--host", "tls://127.0.0.1", "--port", str(self.port), "--no-dashboard"]
        self.scheduler = self._started("scheduler", "scheduler", options)
        ends = time.monotonic() + PATIENCE
        while time.monotonic() < ends:
            with socket.socket() as some:
                if some.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.1)
        raise TimeoutError((self.folder / "scheduler.log").read_text())

    def start_worker(
        self, name: str, environment: Mapping[str, str] | None = None, within: Sequence[str] = ()
    ) -> None:
        """Start one.

        Args:
            name: Of it.
            environment: Variables that it gets, besides.
            within: Words before its command.
        """
        options = [self.address, "--name", name, "--nthreads", "1", "--no-dashboard"]
        options += [] if self._nannies else ["--no-nanny"]
        options += ["--local-directory", str(self.folder / name), "--preload", "conrepair_crowd.worker"]
        options += ["--preload", "crowd_jobs"]
        options += ["--host", "127.0.0.1", "--memory-limit", "0"]
        self.workers[name] = self._started(name, "worker", options, environment, within)

    def kill(self, name: str) -> None:
        """As a machine that loses its power."""
        self.workers[name].kill()
        self.workers.pop(name).wait()

    def stop_scheduler(self) -> None:
        assert self.scheduler is not None
        self.scheduler.send_signal(signal.SIGKILL)
        self.scheduler.wait()

    def _started(
        self,
        name: str,
        what: str,
        options: list[str],
        environment: Mapping[str, str] | None = None,
        within: Sequence[str] = (),
    ) -> subprocess.Popen[bytes]:
        (self.folder / name).mkdir(exist_ok=True)
        tls = ["--tls-ca-file", self.files["ca"], "--tls-cert", self.files["ca"], "--tls-key", self.files["key"]]
        places = [
            *((environment or {}).get("PYTHONPATH", "").split(os.pathsep)),
            str(_ROOT),
            str(_SUPPORT),
            *sys.path,
        ]
        own = {"PYTHONPATH": os.pathsep.join(filter(None, places)), "CONREPAIR_CACHE": ""}
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [*within, sys.executable, "-m", f"distributed.cli.dask_{what}", *options, *tls],
                stdout=log,
                stderr=log,
                env=os.environ | self._settings | (environment or {}) | own,
            )
