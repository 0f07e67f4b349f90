"""The smallest case of plants at run time: a disturbed kernel is the one that's named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.common.cases import Case
from benchmarks.trace import plants
from benchmarks.trace.generated import Generated
from benchmarks.trace.plants import Row, report
from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import Model

TEXT = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 4] x) => (float[2, 3] y) { h = MatMul (x, w) s = Softmax (h) y = Sqrt (s) }"""
CASE = Case("plants", "generated", "O0", "O3, fast", ("network 0",), 1, 11)


@pytest.fixture
def network(tmp_path: Path) -> Generated:
    import onnx
    from onnx import numpy_helper

    proto = onnx.parser.parse_model(TEXT)
    weights = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    proto.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    onnx.save(proto, tmp_path / "net.onnx")
    model = Model("onnx", str(tmp_path / "net.onnx"), model_sha256(tmp_path / "net.onnx"))
    return Generated(model, proto, {"x": np.arange(8, dtype=np.float32).reshape(2, 4) / 7})


def test_a_disturbed_kernel_is_named(network: Generated, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(plants, "UNITS", {"O3": (1, 64)})
    monkeypatch.setattr(plants, "_PLANTS", 4)
    found = plants._planted(network, CASE, tmp_path)
    assert {plant["units"] for plant in found} <= {1, 64}
    assert len({plant["value"] for plant in found}) > 1
    for plant in found:
        assert plant["without"] == []
        assert plant["named"] == [plant["value"]]


def test_what_is_named_wrongly_counts_against_precision() -> None:
    one = {"pair": "O3", "units": 1, "value": "a", "elements": 1, "named": ["a", "b"], "without": ["b"]}
    two = {"pair": "O3", "units": 1, "value": "a", "elements": 1, "named": ["c"], "without": []}
    text = report([Row(CASE, "measured", "", {"plants": [one, two]}), Row(CASE, "no network")])
    assert "| O0, O3 | all | 2 | 50.0% | 1.3 % | 33.3% | 50.0% |" in text
    assert "1 networks, 1 without a plant" in text
