"""Find a server that answers, in bounded time: TVM's own connecting waits without limit for one that doesn't."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from conrepair.formats.tvm.rpc.watch import Peer
from conrepair.ground.runtime.errors import DeviceError


@dataclass(frozen=True)
class RpcDevice:
    """As `device` of a backend in a configuration has them, and more."""

    host: str
    port: int
    key: str = ""
    tracker: bool = False
    name: str | None = None
    host_target: str | None = None
    linker: str | None = None
    connect_seconds: float = 10.0
    step_seconds: float = 120.0
    session_seconds: float = 600.0
    attempts: int = 2

    @property
    def address(self) -> str:
        """The host and port of the server or the tracker."""
        return f"{self.host}:{self.port}"

    def __str__(self) -> str:
        """For messages: its name and where it is."""
        name = f"device '{self.name}'" if self.name else "the device"
        return f"{name} at {'the tracker ' if self.tracker else ''}{self.address}"


# TVM's protocol, as tvm/rpc/base.py has it: a magic number, then the length of a key and the key.
_MAGIC = 0xFF271
_MISMATCH = _MAGIC + 2
_NOBODYS_KEY = b"client:conrepair-asks-whether-you-listen"


@dataclass(frozen=True)
class Server:
    """A server that replied.

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
    host, port, key = _request_server(device)
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
            f"{device}: no server at {where} ({reason.lower()}). Start the {_started(device)} there, "
            "or correct `host` and `port`."
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


_PRIORITY = 1


def _request_server(device: RpcDevice) -> tuple[str, int, str]:
    """Ask a tracker of TVM's for a free server with the device's key.

    TVM's own client retries for a minute, then waits without limit.

    Returns:
        Host, port, and the key that it expects of whoever was sent by the tracker.

    Raises:
        DeviceError: if the tracker doesn't answer, or has no such server that is free.
    """
    from tvm.rpc import base

    with connected(device, device.host, device.port) as connection:
        try:
            connection.sendall(struct.pack("<i", base.RPC_TRACKER_MAGIC))
            if base.recvall(connection, 4) != struct.pack("<i", base.RPC_TRACKER_MAGIC):
                raise _not_a_tracker(device, "its reply is of another protocol")
            base.sendjson(connection, [base.TrackerCode.SUMMARY])
            servers = _registered(device, base.recvjson(connection))
            base.sendjson(connection, [base.TrackerCode.REQUEST, device.key, "", _PRIORITY])
        except TimeoutError as error:
            raise silent(device, device.host, device.port) from error
        # What isn't a tracker closes the connection, or sends what is no JSON.
        except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
            raise _not_a_tracker(device, str(error)) from error
        try:
            code, place = base.recvjson(connection)
        except (OSError, ValueError) as error:
            raise DeviceError(
                f"{device}: no server with key '{device.key}' became free within {device.connect_seconds:g} s; "
                f"{servers} registered. Wait for the others' sessions, or raise `connect_seconds`."
            ) from error
    if code != base.TrackerCode.SUCCESS:
        raise DeviceError(f"{device}: the tracker gives no server with key '{device.key}': {place}. Try again.")
    host, port, key = place
    return str(host), int(port), str(key)


def _registered(device: RpcDevice, answer: Any) -> str:
    """How many servers with the device's key the tracker knows, in words."""
    keys = [str(item["key"]).removeprefix("server:") for item in answer[1]["server_info"]]
    count = keys.count(device.key)
    if not count:
        others = f"it knows {', '.join(sorted(set(keys)))}" if keys else "it knows none at all"
        raise DeviceError(
            f"{device}: the tracker knows no server with key '{device.key}'; {others}. Start one on the device: "
            f"python -m tvm.exec.rpc_server --tracker HOST:{device.port} --key {device.key}"
        )
    return "1 is" if count == 1 else f"{count} are"


def _not_a_tracker(device: RpcDevice, reason: str) -> DeviceError:
    return DeviceError(
        f"{device}: what listens there doesn't answer as a tracker of TVM ({reason}). Correct `port`, or leave "
        "`tracker` out if it's a server."
    )
