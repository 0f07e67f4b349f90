"""Find a server that answers, in bounded time: TVM's own connecting waits without limit for one that doesn't."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from conrepair.backends.tvm.rpc.device import RpcDevice
from conrepair.backends.tvm.rpc.watch import Peer
from conrepair.runtime.errors import DeviceError

__all__ = ["Server", "connected", "reach", "silent"]

# TVM's protocol, as tvm/rpc/base.py has it: a magic number, then the length of a key and the key.
_MAGIC = 0xFF271
_MISMATCH = _MAGIC + 2
_NOBODYS_KEY = b"client:conrepair-asks-whether-you-listen"


@dataclass(frozen=True)
class Server:
    """A server that answered.

    Attributes:
        peer: Where it is.
        key: What it wants to be asked with.
    """

    peer: Peer
    key: str


def reach(device: RpcDevice) -> Server:
    """Find the device's server, by its tracker where it has one.

    Raises:
        DeviceError: if there's none that answers; says why, and what to do.
    """
    if not device.tracker:
        return Server(_answering(device, device.host, device.port), device.key)
    from conrepair.backends.tvm.rpc.tracker import request_server

    host, port, key = request_server(device)
    return Server(_answering(device, host, port), key)


@contextlib.contextmanager
def connected(device: RpcDevice, host: str, port: int) -> Iterator[socket.socket]:
    """A connection on which every step is bounded by the device's `connect_seconds`.

    Raises:
        DeviceError: if nobody listens there.
    """
    where = f"{host}:{port}"
    try:
        connection = socket.create_connection((host, port), device.connect_seconds)
    except socket.gaierror as error:
        raise DeviceError(f"{device}: the name {host} isn't known here ({error}). Correct `host`.") from error
    except TimeoutError as error:
        raise DeviceError(
            f"{device}: {where} doesn't answer within {device.connect_seconds:g} s. Is it switched on, and reachable "
            "from here (firewall)? Raise `connect_seconds` for a slow line."
        ) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise DeviceError(
            f"{device}: nobody listens on {where} ({reason.lower()}). Start the {_started(device)} there, or correct "
            "`host` and `port`."
        ) from error
    with connection:
        yield connection


def silent(device: RpcDevice, host: str, port: int) -> DeviceError:
    """The error of a server that takes a connection and says nothing."""
    return DeviceError(
        f"{device}: {host}:{port} takes the connection and doesn't answer within {device.connect_seconds:g} s. It's "
        "busy with another session, or hangs: wait for that, or start it again."
    )


def _answering(device: RpcDevice, host: str, port: int) -> Peer:
    """Make sure that a TVM server answers, with a key that's nobody's: it says so, and opens no session."""
    with connected(device, host, port) as connection:
        address = connection.getpeername()[0]
        try:
            connection.sendall(struct.pack("<ii", _MAGIC, len(_NOBODYS_KEY)) + _NOBODYS_KEY)
            answer = connection.recv(4, socket.MSG_WAITALL)
        except TimeoutError as error:
            raise silent(device, host, port) from error
        except OSError as error:
            answer, reason = b"", str(error)
        else:
            reason = (
                "it closes the connection, as a tunnel without a server behind it does"
                if not answer
                else f"it says {answer!r}"
            )
    if answer != struct.pack("<i", _MISMATCH):
        raise DeviceError(
            f"{device}: what listens on {host}:{port} doesn't answer as a server of TVM ({reason}). Correct `port`, "
            f"or {'start the server again' if device.tracker else 'say `tracker` if it is one'}."
        )
    return Peer(address, port)


def _started(device: RpcDevice) -> str:
    if device.tracker:
        return f"tracker (python -m tvm.exec.rpc_tracker --host {device.host} --port {device.port})"
    key = f" --key {device.key}" if device.key else ""
    return f"server (python -m tvm.exec.rpc_server --host {device.host} --port {device.port}{key})"
