"""Servers on loopback, dead and silent ones too; whoever starts one ends it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import killing

HOST = "127.0.0.1"
KEY = "board"


@dataclass
class Server:
    """A server or tracker, and the processes that it starts, which are one group."""

    port: int
    process: subprocess.Popen[str]

    def signal(self, number: int) -> None:
        os.killpg(self.process.pid, number)


@contextlib.contextmanager
def serving(*arguments: str) -> Iterator[Server]:
    """Start one: nothing is a tracker; a key, and maybe a tracker's port, is a server."""
    port = free_port()
    script = Path(__file__).with_name("rpc_server_process.py")
    process = subprocess.Popen(
        [sys.executable, str(script), str(port), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield Server(port, process)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        killing.wait_until(lambda: not killing.living(process.pid), 15)
        if process.stdout is not None:
            process.stdout.close()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as place:
        place.bind((HOST, 0))
        return int(place.getsockname()[1])


@contextlib.contextmanager
def silence() -> Iterator[int]:
    """A port that takes connections and never says anything."""
    with socket.create_server((HOST, 0)) as listening:
        yield int(listening.getsockname()[1])


@contextlib.contextmanager
def relayed(port: int, limit: int, exceeded: Callable[[], None]) -> Iterator[int]:
    """A port that passes on to another, as a tunnel does.

    Args:
        port: The other one.
        limit: How many bytes may go there.
        exceeded: Called once, when more did.
    """
    passed = [0]

    def forth(data: bytes) -> None:
        before, passed[0] = passed[0], passed[0] + len(data)
        if before <= limit < passed[0]:
            exceeded()

    def serve() -> None:
        with contextlib.suppress(OSError):  # the end of listening
            while True:
                near, _ = listening.accept()
                try:
                    far = socket.create_connection((HOST, port))
                except OSError:
                    near.close()
                    continue
                for ends in ((near, far, forth), (far, near, None)):
                    threading.Thread(target=_pass_on, args=ends, daemon=True).start()

    with socket.create_server((HOST, 0)) as listening:
        threading.Thread(target=serve, daemon=True).start()
        try:
            yield int(listening.getsockname()[1])
        finally:
            listening.shutdown(socket.SHUT_RDWR)


def _pass_on(source: socket.socket, sink: socket.socket, note: Callable[[bytes], None] | None) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
            if note is not None:
                note(data)
    for end in (source, sink):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def untouched() -> Iterator[int]:
    """A port that listens, and that nobody may connect to."""
    with socket.create_server((HOST, 0)) as listening:
        yield int(listening.getsockname()[1])
        listening.setblocking(False)
        try:
            _, peer = listening.accept()
        except BlockingIOError:
            return
        raise AssertionError(f"{peer} has connected")
