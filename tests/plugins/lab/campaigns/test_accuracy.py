"""Which systems are measured where nobody names them, and where their jobs run."""

from __future__ import annotations

from typing import Any

import pytest

from conrepair.application.engine.task import Task
from conrepair.ground.runtime.errors import DeviceError
from conrepair.ground.runtime.processes.reach import CONFINED, GPU
from conrepair_lab.campaigns import accuracy
from conrepair_lab.campaigns.accuracy import measure_systems
from conrepair_lab.options.trace import Accuracy


class Refusing:
    """A session in which nothing runs."""

    def __init__(self) -> None:
        self.devices: dict[str, str] = {}

    def made(self, task: Task) -> Any:
        self.devices[task.name.split()[2]] = task.device
        raise DeviceError("there is no device here")


@pytest.mark.parametrize("devices", [[], ["/dev/nvidia0"]])
def test_settings_on_a_gpu_are_measured_where_there_is_one(
    devices: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accuracy, "gpu_devices", lambda: devices)
    session = Refusing()
    found = measure_systems(Accuracy(), session)  # type: ignore[arg-type]
    assert found.missing == dict.fromkeys(session.devices, "there is no device here")
    plain = {"tvm-O0", "tvm-O3", "ort-none", "ort-all", "torch-eager", "torch-compile"}
    assert {session.devices[name] for name in plain} == {CONFINED}
    on_gpu = {name for name, device in session.devices.items() if device == GPU}
    assert on_gpu == {name for name in session.devices if "-cuda" in name}
    assert ({"tvm-cuda", "ort-cuda-ieee", "torch-cuda-compile"} <= on_gpu) == bool(devices)


def test_one_that_is_named_is_tried_anyway() -> None:
    session = Refusing()
    measure_systems(Accuracy(systems=("tvm-cuda",)), session)  # type: ignore[arg-type]
    assert session.devices == {"tvm-cuda": GPU}
