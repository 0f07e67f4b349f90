"""What code is generated for ("llvm -mcpu=native", "opencl", "cuda -arch=sm_90"), and where it runs."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from conrepair.formats.tvm.rpc.reach import RpcDevice
from conrepair.ground.runtime.errors import ConfigError, DeviceError
from conrepair.ground.runtime.words import lines_of


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
        from conrepair.formats.tvm.rpc.session import check_remote

        return check_remote(device, kind)
    if kind == "llvm":
        return "this machine's CPU"
    if needs_bridge(kind):
        from conrepair.formats.tvm.opencl_run import find_device

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


KINDS = ("llvm", "opencl", "cuda")
_ATTRIBUTE = re.compile(r"-([a-z][a-z0-9_-]*)=(\S+)")
_NATIVE = "native"
_CORES = "num-cores"
_LIMITS = ("max_threads_per_block", "max_shared_memory_per_block", "thread_warp_size")
# TVM doesn't ask devices for it. NVIDIA's have as many since 2014 (CUDA C++ Programming Guide, compute capabilities).
_REGISTERS, _REGISTERS_OF_A_BLOCK = "registers_per_block", 65536


@dataclass(frozen=True)
class TargetText:
    """A target as a person writes it.

    Attributes:
        kind: One of `KINDS`.
        attributes: TVM's attributes of that kind, numbers as numbers.
    """

    kind: str
    attributes: Mapping[str, int | str] = field(default_factory=dict)

    @property
    def on_gpu(self) -> bool:
        """Whether kernels are scheduled over blocks and threads."""
        return self.kind != "llvm"

    def for_tuning(self) -> TargetText:
        """With what tuning asks a target for, as this machine has it; what's given stays.

        That's the number of cores of a CPU, and of a GPU how much of it a block of threads may have.
        """
        if not self.on_gpu:
            return replace(self, attributes={_CORES: len(os.sched_getaffinity(0)), **self.attributes})
        import tvm

        detected = tvm.target.Target.from_device(self.kind).attrs
        limits = {name: int(detected[name]) for name in _LIMITS if name in detected}
        if self.kind == "cuda":
            limits[_REGISTERS] = _REGISTERS_OF_A_BLOCK
        return replace(self, attributes={**limits, **self.attributes})

    def resolve(self, host: TargetText | None = None) -> Any:
        """The `tvm.target.Target`, with this machine's processor for `-mcpu=native`.

        Args:
            host: Of a GPU; default: this machine's processor.

        Raises:
            ConfigError: if TVM doesn't know an attribute.
        """
        import tvm

        attributes: dict[str, Any] = dict(self.attributes)
        if attributes.get("mcpu") == _NATIVE:
            attributes["mcpu"] = str(tvm.get_global_func("target.llvm_get_system_cpu")())
        if "mattr" in attributes:
            attributes["mattr"] = str(attributes["mattr"]).split(",")
        try:
            target = tvm.target.Target({"kind": self.kind, **attributes})
            if not self.on_gpu:
                return target
            return target.with_host(tvm.target.Target("llvm") if host is None else host.resolve())
        # TVM raises TypeError, ValueError or its own, by the attribute.
        except Exception as error:
            raise ConfigError(f"target {self.kind} {attributes}: TVM refuses it: {lines_of(error)[0]}") from error


def parse_target(text: str) -> TargetText:
    """Read a kind and its attributes.

    Args:
        text: "kind -name=value ...".

    Raises:
        ConfigError: if the kind is unknown, or something isn't -name=value.
    """
    kind, *rest = text.split()[:1] + text.split()[1:] or [""]
    if kind not in KINDS:
        raise ConfigError(f"target '{text}': unknown kind '{kind}'; known: {', '.join(KINDS)}")
    attributes: dict[str, int | str] = {}
    for part in rest:
        found = _ATTRIBUTE.fullmatch(part)
        if found is None:
            raise ConfigError(f"target '{text}': '{part}' isn't -name=value, as in llvm -mcpu=native")
        attributes[found[1]] = int(found[2]) if found[2].isdecimal() else found[2]
    return TargetText(kind, attributes)
