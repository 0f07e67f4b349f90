"""A session with a device: connected in bounded time, every step of it bounded, what goes wrong said in words."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from conrepair.formats.tvm.rpc.reach import RpcDevice, Server, reach
from conrepair.formats.tvm.rpc.watch import cut_after, is_connected
from conrepair.ground.runtime.errors import ConrepairError, DeviceError
from conrepair.ground.runtime.words import lines_of

_PAUSE_SECONDS = 1.0
_EXPIRED = "RPCSessionTimeoutError"
_WRONG_KEY = "cannot find server that matches key"


class LostDeviceError(DeviceError):
    """The connection to a device ended while it was used."""


class RpcSession:
    """An open session. It ends when nothing refers to it or to what was made with it.

    Attributes:
        remote: `tvm.rpc.RPCSession`, to be used within `step`.
    """

    def __init__(self, device: RpcDevice, server: Server, remote: Any) -> None:
        self._device = device
        self._server = server
        self.remote = remote

    @contextlib.contextmanager
    def step(self, doing: str) -> Iterator[None]:
        """Bound what is done with the session in the block.

        What the device itself answers, an error included, passes.

        Args:
            doing: In words, for messages.

        Raises:
            LostDeviceError: if the connection ended.
            DeviceError: if it took longer than the device's `step_seconds`, or the session's time is up.
        """
        with cut_after(self._server.peer, self._device.step_seconds) as watch:
            try:
                yield
            except ConrepairError:
                raise
            # TVM raises RuntimeError, its own, or whatever type the device names.
            except Exception as error:
                reason = _explained(self._device, self._server, doing, error, cut=watch.cut)
                if reason is None:
                    raise
                raise reason from error


def open_session(device: RpcDevice) -> RpcSession:
    """Connect, as often as the device's `attempts` say.

    Raises:
        DeviceError: if that's impossible.
    """
    for attempt in range(1, device.attempts + 1):
        try:
            return _open(device)
        except DeviceError as error:
            if attempt == device.attempts:
                times = f" Tried {attempt} times." if attempt > 1 else ""
                raise DeviceError(f"{error}{times}") from error
        time.sleep(_PAUSE_SECONDS)
    raise ValueError("a device has at least one attempt")


def check_remote(device: RpcDevice, kind: str) -> str:
    """Make sure that a device answers, and has what code of that kind needs.

    Args:
        device: Which.
        kind: Of the target.

    Returns:
        What it is, for reports.

    Raises:
        DeviceError: if not.
    """
    session = open_session(device)
    with session.step("being asked for its devices"):
        there = kind == "llvm" or bool(session.remote.device(kind, 0).exist)
    if not there:
        raise DeviceError(
            f"{device} has no {kind} device that its TVM can reach, so nothing was built. Install a driver there, "
            f"and a TVM with {kind}, or choose another `target`."
        )
    return f"{kind} on {device}"


def _open(device: RpcDevice) -> RpcSession:
    from tvm import rpc

    server = reach(device)
    with cut_after(server.peer, device.connect_seconds) as watch:
        try:
            remote = rpc.connect(server.peer.address, server.peer.port, server.key, device.session_seconds)
        # As above.
        except Exception as error:
            if _WRONG_KEY in str(error):
                raise DeviceError(
                    f"{device}: the server there has another key than '{device.key}'. Correct `key`."
                ) from error
            late = f"no session within {device.connect_seconds:g} s" if watch.cut else lines_of(error)[-1].rstrip(".")
            raise DeviceError(f"{device}: connecting failed: {late}. Start the server again.") from error
    return RpcSession(device, server, remote)


def _explained(device: RpcDevice, server: Server, doing: str, error: Exception, *, cut: bool) -> DeviceError | None:
    """The error of a device that is slow or gone; None for one that answered."""
    if cut:
        return DeviceError(
            f"{device}: no answer within {device.step_seconds:g} s while {doing}. It hangs, lost its network, or is "
            "slow: look at its server, or raise `step_seconds`."
        )
    if _EXPIRED in type(error).__name__ or _EXPIRED in str(error):
        return DeviceError(
            f"{device}: the session's {device.session_seconds:g} s were over while {doing}. Raise `session_seconds`, "
            "or take fewer samples."
        )
    if not is_connected(server.peer):
        return LostDeviceError(
            f"{device}: the connection ended while {doing}. Its server was stopped, the network failed, or the "
            "compiled code crashed there (does `target` name its processor?). Start the server again."
        )
    return None
