"""What converters really do wrong, repaired."""

from __future__ import annotations

from pathlib import Path

import pytest
import small_models as small

from conrepair.converters.all_converters import converter
from conrepair.data.feeds import DataReference
from conrepair.frameworks.model import Model
from conrepair.frameworks.registry import framework
from conrepair.localization.fed_model import FedModel
from conrepair.localization.options import Options
from conrepair.repairs.options import RepairOptions
from conrepair.repairs.repair import repair_models


@pytest.mark.parametrize("exporter", ["torch-onnx-dynamo", "torch-onnx-script"])
def test_a_divisor_that_an_exporter_drops_is_put_in(exporter: str, tmp_path: Path) -> None:
    import torch
    from torch import nn

    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AvgPool2d(2, divisor_override=3), nn.Conv2d(4, 4, 3))
    path = small.export_pt2(network.eval(), [torch.randn(2, 3, 12, 12)], tmp_path / "net.pt2", dynamic=False)
    source, step = small.model_of("torch", path), converter(exporter)
    (tmp_path / "made").mkdir()
    target = small.model_of("onnx", tmp_path / "made" / step.convert(source, tmp_path / "made", step.complete({})))

    def subject(model: Model) -> FedModel:
        inputs = framework(model.framework).describe(model).inputs
        return FedModel(model, inputs, DataReference("synthetic", 8, samples=inputs), None)

    options = RepairOptions(Options(samples=4, batch_size=2), 60, 4)
    result = repair_models(subject(source), subject(target), tmp_path / "out", options)
    assert len(result.before.faults) == 1
    assert result.mended
    assert result.unseen_after is not None
    assert result.unseen_after.error < 1e-5
