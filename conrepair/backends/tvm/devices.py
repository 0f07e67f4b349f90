"""Where compiled code runs: on this machine, or on a device that TVM reaches over RPC."""

from __future__ import annotations

from conrepair.backends.tvm.rpc.device import RpcDevice
from conrepair.runtime.errors import DeviceError

__all__ = ["check_device", "needs_bridge"]


def check_device(kind: str, device: RpcDevice | None = None) -> str:
    """Make sure that there's a device, before anything is built for it.

    Args:
        kind: Of the target.
        device: Where; None is this machine.

    Returns:
        What it is, for reports.

    Raises:
        DeviceError: if it isn't there.
    """
    if device is not None:
        from conrepair.backends.tvm.rpc.session import check_remote

        return check_remote(device, kind)
    if kind == "llvm":
        return "this machine's CPU"
    if needs_bridge(kind):
        from conrepair.backends.tvm.opencl_run import find_device

        return f"{find_device().name} through pyopencl"
    import tvm

    if bool(tvm.device(kind, 0).exist):
        return f"TVM's {kind} device {tvm.device(kind, 0).device_name}"
    raise DeviceError(
        f"there is no {kind} device here that TVM can reach, so nothing was built. `conrepair build` compiles "
        "without running; `conrepair doctor` lists the devices."
    )


def needs_bridge(kind: str) -> bool:
    """Whether kernels must be run by somebody else, as this TVM generates them and has no runtime for them.

    Args:
        kind: Of the target.
    """
    import tvm

    return kind == "opencl" and tvm.get_global_func("device_api.opencl", allow_missing=True) is None
