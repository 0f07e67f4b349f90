"""Models that leave sizes open, or don't say their inputs at all, against conversions that do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import nn

from conrepair.application.cli import main

WORDS = 50


class Positions(nn.Module):
    """Words and their positions, of which there are 64."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places, self.last = nn.Embedding(WORDS, 6), nn.Embedding(64, 6), nn.Linear(6, 4)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.last((self.words(ids) + self.places(torch.arange(ids.shape[1]))) * mask[:, :, None])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The network as a program, as a script, and in ONNX with open sizes and with fixed ones."""
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    network, arguments = Positions().eval(), (torch.ones(3, 16, dtype=torch.int64), torch.ones(3, 16))
    batch, size = torch.export.Dim("batch"), torch.export.Dim("size", max=64)
    shapes = ({0: batch, 1: size}, {0: batch, 1: size})
    torch.export.save(torch.export.export(network, arguments, dynamic_shapes=shapes), "net.pt2")
    torch.jit.trace(network, arguments).save("net.pt")
    names = ["ids", "mask"]
    axes = {name: {0: "batch", 1: "size"} for name in names}
    torch.onnx.export(network, arguments, "open.onnx", dynamo=False, input_names=names, dynamic_axes=axes)
    fixed = {name: {0: "batch"} for name in names}
    torch.onnx.export(network, arguments, "fixed.onnx", dynamo=False, input_names=names, dynamic_axes=fixed)
    return tmp_path


@pytest.mark.parametrize(("target", "size"), [("open.onnx", 64), ("fixed.onnx", 16)])
def test_sizes_come_from_the_target_or_from_the_stated_range(
    folder: Path, target: str, size: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", "net.pt2", target, "-o", "out", "--quiet", "-f", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    ids = f"ids: whole numbers from 0 to {WORDS - 1} (aten.embedding.default of {WORDS} rows)"
    assert f"{ids}; mask: uniform in [-1, 1]" in str(report["datasets"])
    (compared,) = (row["comparison"]["outputs"] for row in report["rows"] if row["comparison"])
    assert [output["error"]["count"] for output in compared] == [32 * size * 4]
    assert main(["localize", "net.pt2", target, "-o", "found", "--quiet"]) == 0


@pytest.mark.parametrize("names", [("net.pt", "fixed.onnx"), ("fixed.onnx", "net.pt")])
def test_a_script_takes_what_the_other_model_takes(folder: Path, names: tuple[str, str]) -> None:
    assert main(["compare", *names, "-o", "out", "--quiet"]) == 0


def test_a_declared_size_goes_for_all_inputs_and_models(folder: Path) -> None:
    for names in (("net.pt", "open.onnx"), ("open.onnx", "net.pt")):
        declared = ["--input", "ids=batch,32:int64", "--input", "mask=batch,32"][: 4 if names[0] == "net.pt" else 2]
        assert main(["compare", *names, *declared, "-o", "out", "--quiet"]) == 0


def test_sizes_that_nobody_says_are_chosen_and_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "open.onnx", "net.pt", "-o", "out", "--quiet"]) == 0
    assert "open.onnx has dynamic shapes, for which sizes were chosen: size 17; declare others" in " ".join(
        capsys.readouterr().out.split()
    )
