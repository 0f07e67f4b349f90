"""Known faults: their networks, and traces that reach them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from benchmarks.trace.known_faults import FAULTS, Naive, reached, written
from benchmarks.trace.networks import model_of
from conrepair_lab.systems.registry import SYSTEMS

_BY_NAME = {fault.name: fault for fault in FAULTS}


@pytest.mark.parametrize("name", ["ort-all Sigmoid", "naive LayerNormalization"])
def test_it_is_reached(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SYSTEMS, Naive.name, Naive())
    assert reached(_BY_NAME[name], 11, 60.0, 1000)["reached"]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_its_network_is_valid(fault: object, tmp_path: Path) -> None:
    written(fault, 11, tmp_path / "model.onnx")  # type: ignore[arg-type]
    onnx.checker.check_model(str(tmp_path / "model.onnx"), full_check=True)


@pytest.mark.parametrize("name", [fault.name for fault in FAULTS if fault.name.startswith(Naive.name)])
def test_a_rebuilt_form_means_the_same(name: str, tmp_path: Path) -> None:
    written(_BY_NAME[name], 11, tmp_path / "model.onnx")
    model, system = model_of(tmp_path / "model.onnx"), Naive()
    right, rebuilt = (system.open(model, setting, tmp_path) for setting in system.settings.values())
    x = {"x": np.linspace(-0.5, 0.6, 8, dtype=np.float32)[np.newaxis]}
    np.testing.assert_allclose(rebuilt.run(x)["y"], right.run(x)["y"], rtol=1e-2)


def test_there_are_fifteen() -> None:
    assert len(_BY_NAME) == 15
