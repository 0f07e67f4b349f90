"""Where compiled code runs. Today on this machine; devices that TVM reaches over RPC will be opened here, too."""

from __future__ import annotations

from typing import Any

from conrepair.runtime.errors import DeviceError

__all__ = ["check_device", "needs_bridge", "open_device"]

_LOCAL = "local"


def check_device(kind: str, device: str = _LOCAL) -> str:
    """Make sure that there's a device, before anything is built for it.

    Args:
        kind: Of the target.
        device: Its name in the configuration.

    Returns:
        What it is, for reports.

    Raises:
        DeviceError: if it isn't there.
    """
    if device != _LOCAL:
        raise DeviceError(f"there is no device '{device}'; this version runs models on this machine (`local`)")
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


def open_device(kind: str) -> Any:
    """The `tvm.runtime.Device` that tensors of a build lie on.

    Args:
        kind: Of a device, as TVM calls it.
    """
    import tvm

    return tvm.device(kind, 0)
