"""What a repair says it has found is what it has repaired."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

from conrepair.application.report.repair.summary import repair_line
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.diagnosis.repairs.options import RepairOptions
from conrepair.diagnosis.repairs.repair import repair_models
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.data.feeds import DataReference
from conrepair.ground.runtime.files.whole import sha256_of
from tests.support.small_models import model_of

_OPTIONS = RepairOptions(Options(samples=4, batch_size=2), seconds=60, unseen=4)
_BODY = """<ir_version: 9, opset_import: ["" : 17]>
net (float[2, 3, 12, 12] x) => (float[2, 4] y) {
    a = Conv<pads = [1, 1, 1, 1]>(x, first)
    b = Relu(a)
    c = AveragePool<kernel_shape = [2, 2], strides = [2, 2]>(b)
    d = Conv<pads = [1, 1, 1, 1]>(c, second)
    e = Relu(d)
    f = GlobalAveragePool(e)
    g = Flatten(f)
    y = MatMul(g, last)
}"""


def network(path: Path, *, pooling: str = "AveragePool", exchanged: bool = False) -> Model:
    proto = onnx.parser.parse_model(_BODY.replace("= AveragePool", f"= {pooling}"))
    generator = np.random.default_rng(2)
    weights = {"first": (8, 3, 3, 3), "second": (8, 8, 3, 3), "last": (8, 4)}
    for name, shape in weights.items():
        values = generator.normal(0, 0.3, shape).astype(np.float32)
        if exchanged and name == "second":
            values = values[:, [1, 0, 3, 2, 5, 4, 7, 6]]
        proto.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
    onnx.save(proto, path)
    return model_of("onnx", path)


def subject(model: Model, folder: Path) -> FedModel:
    path = folder / "data.npz"
    if not path.exists():
        np.savez(path, x=np.random.default_rng(3).normal(size=(8, 3, 12, 12)).astype(np.float32))
    inputs = framework(model.framework).describe(model).inputs
    return FedModel(model, inputs, DataReference("tensors", 8, str(path), sha256_of(path)), None)


@pytest.mark.parametrize(("pooling", "exchanged"), [("MaxPool", True), ("MaxPool", False), ("AveragePool", True)])
def test_each_fault_that_is_repaired_is_counted(pooling: str, exchanged: bool, tmp_path: Path) -> None:
    right = network(tmp_path / "right.onnx")
    wrong = network(tmp_path / "wrong.onnx", pooling=pooling, exchanged=exchanged)
    result = repair_models(subject(right, tmp_path), subject(wrong, tmp_path), tmp_path / "out", _OPTIONS)
    assert result.mended
    count = (pooling == "MaxPool") + exchanged
    assert result.found == count, (result.before.faults, result.edits)
    assert len(result.edits) == count
    assert repair_line(result).startswith(f"repaired: {count} {'fault' if count == 1 else 'faults'} found, 0 left")
