"""What Model Explorer is given."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import localizations
import onnx
import onnx_networks
import pytest
import small_models as small

from conrepair.application.report.localization.overlay import node_ids, overlay
from conrepair.formats.models.model import Model


def test_a_real_localization(tmp_path: Path) -> None:
    result, about = localizations.wrong_pads(tmp_path)
    data = overlay(about.target, result, "target")
    assert data is not None
    names = {node.name for node in onnx.load(about.target.path).graph.node}
    assert data["results"].keys() == names
    red = {name for name, item in data["results"].items() if item["bgColor"] == "#d7301f"}
    assert red == {row.target_layer for row in result.layers if row.guilty}
    assert "conv" in red
    assert len(red) < len(names)
    assert data["results"]["conv"]["value"] == pytest.approx(result.faults[0].introduced_error, rel=0.01)


def test_the_worst_of_a_node_is_shown(tmp_path: Path) -> None:
    model = small.model_of("onnx", onnx_networks.with_function(tmp_path / "m.onnx"))
    rows = (
        localizations.row(0, source_tensor="h", source_layer="h"),
        localizations.row(1, 1e-8, source_tensor="inlined/gate", source_layer="call"),
        localizations.row(2, 0.12345, source_tensor="inlined/product", source_layer="call"),
        localizations.row(4, 0.5, source_tensor="y", source_layer="call", guilty=False),
        localizations.row(3, 5e-6, source_tensor="elsewhere", source_layer="nowhere"),
    )
    data = overlay(model, dataclasses.replace(localizations.made(1), layers=rows), "source")
    assert data is not None
    assert data["results"] == {
        "node": {"value": 1e-7, "bgColor": "#e3f1e4"},
        "call": {"value": 0.123, "bgColor": "#d7301f"},
    }


def test_infinite_errors_are_numbers_and_those_above_the_floor_stand_out(tmp_path: Path) -> None:
    model = Model("tflite", str(tmp_path / "m.tflite"), "0")
    (tmp_path / "m.tflite").touch()
    data = overlay(model, localizations.made(3, {0: math.inf, 1: 5e-6}), "target")
    assert data is not None
    assert data["results"]["t0"] == {"value": 1e30, "bgColor": "#d7301f"}
    assert data["results"]["t1"] == {"value": 5e-6, "bgColor": "#ffe08a"}
    assert json.loads(json.dumps(data, allow_nan=False)) == data


def test_nodes_of_an_onnx_file_as_model_explorer_calls_them(tmp_path: Path) -> None:
    """The expected names are what the reader of model-explorer-onnx 0.4.2 gave for this file."""
    path = onnx_networks.residual(tmp_path / "m.onnx")
    proto = onnx.load(path)
    for node in proto.graph.node[1:4]:
        node.name = "same"
    onnx.save(proto, path)
    ids = node_ids(small.model_of("onnx", path))
    assert ids is not None
    assert ids.tensors == {
        "flipped": "node", "a": "same", "b": "same_1", "c": "same_2", "d": "node_1", "e": "node_2", "f": "node_3",
        "g": "node_4", "y": "node_5",
    }  # fmt: skip
    assert ids.of("inside of it", "same") is None, "three nodes have that name"


def test_models_that_model_explorer_does_not_open(tmp_path: Path) -> None:
    for framework, name in (("keras", "m.keras"), ("torch", "m.pt"), ("tensorflow", "m.pb")):
        (tmp_path / name).touch()
        assert node_ids(Model(framework, str(tmp_path / name), "0")) is None
    assert node_ids(Model("onnx", str(tmp_path / "gone.onnx"), "0")) is None


def test_nodes_of_an_exported_program(tmp_path: Path) -> None:
    """Model Explorer names a node as the program does; so do our graphs."""
    import torch

    from conrepair.formats.torch.load.framework import TorchRunnable
    from conrepair.formats.torch.read.network import open_network

    example = (torch.from_numpy(small.images()),)
    path = small.export_pt2(small.torch_convnet(), example, tmp_path / "m.pt2", dynamic=False)
    model = small.model_of("torch", path)
    graph = open_network(model, TorchRunnable(model).inputs).graph
    ids = node_ids(model)
    assert ids is not None
    theirs = {node.name for node in torch.export.load(path).graph.nodes}
    ours = {ids.of(tensor, node.layer) for node in graph.nodes for tensor in node.outputs}
    assert len(ours) > 8
    assert ours <= theirs
