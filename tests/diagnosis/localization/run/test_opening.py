"""Models as networks: in their own framework, or through ONNX where that can't be cut."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import small_models as small
from random_graphs import Computed

from conrepair.diagnosis.localization.run.opening import open_model, second_opinion
from conrepair.formats.models.registry import framework
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import ModelLoadError

CONCRETE = TensorSpec("image", (2, small.CHANNELS, small.HEIGHT, small.WIDTH), "float32")


def test_what_can_be_cut_is_opened_as_it_is(tmp_path: Path) -> None:
    model = small.model_of("onnx", small.onnx_convnet(tmp_path / "net.onnx"))
    opened = open_model(model, [CONCRETE], tmp_path / "unused")
    assert opened.note == ""
    assert opened.input_tensors == {"image": "image"}
    assert not (tmp_path / "unused").exists()


def test_torchscript_goes_through_onnx(tmp_path: Path) -> None:
    """Its inputs keep their names, and the network gives what the file gives."""
    import torch

    network = small.torch_pair()
    example = (torch.from_numpy(small.images()), torch.from_numpy(small.vectors()))

    class Listed(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = network

        def forward(self, image: torch.Tensor, vector: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            found = self.inner(image, vector)
            return found["logits"], found["picture"]

    torch.jit.trace(Listed().eval(), example).save(tmp_path / "net.pt")
    inputs = (CONCRETE, TensorSpec("vector", (2, small.FEATURES), "float32"))
    model = small.model_of("torch", tmp_path / "net.pt", inputs=inputs)
    opened = open_model(model, inputs, tmp_path / "onnx")
    assert opened.note.startswith("the layers of net.pt are read by way of ONNX (torch-onnx")
    assert set(opened.input_tensors) == {"image", "vector"}
    feeds = {"image": small.images(), "vector": small.vectors()}
    given = {opened.input_tensors[name]: array for name, array in feeds.items()}
    graph = opened.network.graph
    values = opened.network.segment(graph.inputs, graph.outputs).run(given)
    expected = framework("torch").load(model).run(feeds)
    for name, array in zip(graph.outputs, expected.values(), strict=True):
        np.testing.assert_allclose(values[name], array, rtol=1e-4, atol=1e-5)


def test_onnx_files_that_cannot_be_opened_are_not_converted(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(b"nothing of the kind")
    with pytest.raises(ModelLoadError):
        open_model(small.model_of("onnx", tmp_path / "net.onnx"), [CONCRETE], tmp_path / "onnx")


def test_both_reasons_are_said_where_nothing_helps(tmp_path: Path) -> None:
    (tmp_path / "net.pt").write_bytes(b"nothing of the kind")
    model = small.model_of("torch", tmp_path / "net.pt", inputs=(CONCRETE,))
    with pytest.raises(ModelLoadError, match=r"can't be read.*By way of ONNX"):
        open_model(model, [CONCRETE], tmp_path / "onnx")


def test_second_opinions(tmp_path: Path) -> None:
    model = small.model_of("onnx", small.onnx_convnet(tmp_path / "net.onnx"))
    feeds = {"image": small.images()}
    opened = open_model(model, [CONCRETE], tmp_path)
    one, two = opened.network, second_opinion(opened)
    assert two is not None
    [output] = one.graph.outputs
    ours, theirs = (network.segment(["image"], [output]).run(feeds)[output] for network in (one, two))
    np.testing.assert_allclose(theirs, ours, rtol=1e-4, atol=1e-6)
    assert second_opinion(replace(opened, note="analysed through ONNX")) is None
    assert second_opinion(replace(opened, network=Computed(one.graph))) is None
