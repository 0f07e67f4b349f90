"""Ask a tracker of TVM's for a server. TVM's own client retries for a minute, then waits without limit."""

from __future__ import annotations

import struct
from typing import Any

from conrepair.backends.tvm.rpc.device import RpcDevice
from conrepair.backends.tvm.rpc.reach import connected, silent
from conrepair.runtime.errors import DeviceError

__all__ = ["request_server"]

_PRIORITY = 1


def request_server(device: RpcDevice) -> tuple[str, int, str]:
    """Ask for a free server with the device's key.

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
                raise _not_a_tracker(device, "it answers something else")
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
