"""A repair goes on from what a localization made on the way, and from models whose weights lie elsewhere."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import torch
from torch import nn

import conrepair

_SIZE = (1, 3, 8, 8)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """TorchScript, which is looked into through ONNX, and an ONNX file with one layer's weights scaled."""
    folder = tmp_path_factory.mktemp("files")
    torch.manual_seed(0)
    layers = nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(256, 4)
    network, picture = nn.Sequential(*layers).eval(), torch.randn(_SIZE)
    torch.jit.trace(network, picture).save(folder / "net.pt")
    with torch.no_grad():
        layers[2].weight[:8] *= 1.5
    torch.onnx.export(network, (picture,), folder / "net.onnx", dynamo=False)
    return folder / "net.pt", folder / "net.onnx"


@pytest.mark.parametrize("outside", [False, True])
def test_a_source_that_is_looked_into_through_onnx(
    files: tuple[Path, Path], outside: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = files
    if outside:
        folder = tmp_path / "exported" / "deep"
        folder.mkdir(parents=True)
        proto = onnx.load(target)
        target = folder / "net.onnx"
        onnx.save(proto, target, save_as_external_data=True, location="net.weights", size_threshold=0)
        monkeypatch.chdir(tmp_path)
        target = target.relative_to(tmp_path)
    inputs = [f"{','.join(map(str, _SIZE))}"]
    done = conrepair.repair(source, target, output=tmp_path / "out", inputs=inputs, samples=8, in_process=True)
    assert done.mended, done
    assert not [note for note in done.run.notes if "aren't known" in note]  # it was run as a file of its own
    written = tmp_path / "out" / "repaired.onnx"
    assert (written.parent / "repaired.onnx.data").exists() == outside
    again = conrepair.compare(source, written, inputs=inputs, samples=8, in_process=True)
    assert again.verdict == "equivalent"
    onnx.checker.check_model(str(written))
