"""The files by which programs reach this machine's GPUs, as their makers' documents name them."""

from __future__ import annotations

from pathlib import Path

# NVIDIA (cuda-installation-guide, MIG user guide), AMD (ROCm: /dev/kfd and /dev/dri/renderD*), Intel and Mesa
# (renderD*). Not /dev/dri/card*, by which screens are set.
_NAMES = ("nvidia[0-9]*", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-caps", "kfd", "dri/renderD*")
_DEVICES = Path("/dev")


def gpu_devices() -> list[str]:
    """Their paths; empty where this machine has none."""
    return sorted(str(path) for name in _NAMES for path in _DEVICES.glob(name))
