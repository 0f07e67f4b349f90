"""What converters really do wrong, repaired."""

from __future__ import annotations

from pathlib import Path

import pytest
import small_models as small

from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.diagnosis.repairs.options import RepairOptions
from conrepair.diagnosis.repairs.repair import repair_models
from conrepair.formats.converters.all_converters import converter
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.data.feeds import DataReference


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


@pytest.mark.parametrize("fault", ["tiled", "groups"])
def test_operators_that_the_vocabulary_lacks_are_repaired_as_pytorch_spells_them(fault: str, tmp_path: Path) -> None:
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self, right: bool) -> None:
            super().__init__()
            self.first, self.last, self.right = nn.Conv2d(3, 8, 3), nn.Conv2d(16, 4, 3), right
            self.norm = nn.GroupNorm(2 if right or fault == "tiled" else 4, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = torch.relu(self.norm(self.first(x)))
            interleaved = self.right or fault == "groups"
            return self.last(x.repeat_interleave(2, dim=1) if interleaved else x.repeat(1, 2, 1, 1))

    torch.manual_seed(0)
    right = Network(True).eval()
    wrong = Network(False).eval()
    wrong.load_state_dict(right.state_dict())
    picture = torch.randn(2, 3, 12, 12)
    path = small.export_pt2(right, [picture], tmp_path / "net.pt2", dynamic=False)
    torch.onnx.export(wrong, (picture,), tmp_path / "net.onnx", dynamo=False, opset_version=17)
    sides = small.model_of("torch", path), small.model_of("onnx", tmp_path / "net.onnx")
    described = [framework(model.framework).describe(model).inputs for model in sides]
    subjects = [
        FedModel(model, inputs, DataReference("synthetic", 8, samples=inputs), None)
        for model, inputs in zip(sides, described, strict=True)
    ]
    result = repair_models(*subjects, tmp_path / "out", RepairOptions(Options(samples=4, batch_size=2), 60, 4))
    assert len(result.before.faults) == 1
    assert result.mended
    assert result.unseen_after is not None
    assert result.unseen_after.error < 1e-5
