"""Bound calls that wait for a peer, in native code that knows no time limit.

TVM's RPC waits in `recv` for as long as the other side keeps the connection. Shutting the connection down from
a thread ends the wait: the call fails like one whose peer has left.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_DESCRIPTORS = Path("/dev/fd")


@dataclass(frozen=True)
class Peer:
    """The other end of a connection: numeric address, port."""

    address: str
    port: int


@dataclass
class Watch:
    """Whether the time was up."""

    cut: bool = False


@contextlib.contextmanager
def cut_after(peer: Peer, seconds: float) -> Iterator[Watch]:
    """End this process's connections to a peer if the block takes longer.

    Args:
        peer: To whom.
        seconds: How long it may take.

    Yields:
        What says, afterwards, whether that was done.
    """
    watch = Watch()

    def cut() -> None:
        watch.cut = True
        for connection in _connections(peer):
            with contextlib.suppress(OSError):  # it has ended meanwhile
                connection.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, cut)
    timer.daemon = True
    timer.start()
    try:
        yield watch
    finally:
        timer.cancel()
        timer.join()


def is_connected(peer: Peer) -> bool:
    """Whether this process has a connection to a peer that the peer has not ended."""
    return any(_is_open(connection) for connection in _connections(peer))


def _is_open(connection: socket.socket) -> bool:
    try:
        return bool(connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    except BlockingIOError:  # nothing to read, and no end
        return True
    except OSError:
        return False


def _connections(peer: Peer) -> Iterator[socket.socket]:
    """The process's connections to a peer, each open for as long as it's looked at."""
    for entry in list(_DESCRIPTORS.iterdir()):
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            descriptor = int(entry.name)
            if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                continue
            connection = stack.enter_context(socket.socket(fileno=os.dup(descriptor)))
            if connection.getpeername()[:2] == (peer.address, peer.port):
                yield connection
