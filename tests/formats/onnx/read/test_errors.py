"""What ONNX networks refuse."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx_networks import opened
from small_models import damaged_copies, model_of

from conrepair.formats.onnx.read.network import open_network
from conrepair.ground.runtime.errors import InferenceError, ModelLoadError


def test_refuses_inputs_that_are_not_fed(tmp_path: Path) -> None:
    network, _, _ = opened("pair", tmp_path)
    with pytest.raises(ValueError, match="vector"):
        network.segment(["image"], ["sum"])


def test_refuses_what_is_no_tensor_or_an_input(tmp_path: Path) -> None:
    network, _, _ = opened("pair", tmp_path)
    with pytest.raises(ValueError, match="weight"):
        network.segment(network.graph.inputs, ["weight"])
    with pytest.raises(ValueError, match="image"):
        network.segment(network.graph.inputs, ["image"])


def test_feeds_that_do_not_fit_are_an_inference_error(tmp_path: Path) -> None:
    network, feeds, _ = opened("residual", tmp_path)
    segment = network.segment(["image"], ["y"])
    with pytest.raises(InferenceError, match="image"):
        segment.run({})
    with pytest.raises(InferenceError):
        segment.run({"image": feeds["image"][:, :2]})


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    network, _, model = opened("convnet", tmp_path)
    (tmp_path / "damaged").mkdir()
    for path in damaged_copies(Path(model.path), tmp_path / "damaged"):
        with pytest.raises(ModelLoadError):
            open_network(model_of("onnx", path), [])
    assert network.graph.nodes
