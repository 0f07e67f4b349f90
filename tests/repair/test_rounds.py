"""One wrong rule in every layer: mended in a round, and each piece by itself where rounds can't."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx_networks import drawn
from rewritten_networks import CUBE, residual_blocks
from small_models import model_of

from conrepair.data.feeds import DataReference
from conrepair.frameworks.model import Model
from conrepair.frameworks.registry import framework
from conrepair.localize.models import Subject
from conrepair.localize.options import Options
from conrepair.repair.options import RepairOptions
from conrepair.repair.repair import repair_models
from conrepair.repair.result import RepairResult

BLOCKS = 4
OPTIONS = RepairOptions(Options(samples=4, batch_size=4), seconds=120, unseen=8)


def changed(path: Path, target: Path, change: Callable[[onnx.GraphProto], int]) -> tuple[Path, int]:
    proto = onnx.load(path)
    places = change(proto.graph)
    onnx.save(proto, target)
    return target, places


def other_epsilons(graph: onnx.GraphProto) -> int:
    nodes = [node for node in graph.node if node.op_type == "BatchNormalization"]
    for node in nodes:
        node.attribute.append(onnx.helper.make_attribute("epsilon", 1e-2))
    return len(nodes)


def without_biases(graph: onnx.GraphProto) -> int:
    nodes = [node for node in graph.node if node.op_type == "Conv"]
    for node in nodes:
        del node.input[2]
    return len(nodes)


def stored(graph: onnx.GraphProto, make: Callable[[np.ndarray], np.ndarray]) -> int:
    read = {node.input[1] for node in graph.node if node.op_type in {"Conv", "Gemm"}}
    for item in graph.initializer:
        if item.name in read:
            array = make(numpy_helper.to_array(item)).astype(np.float32)
            item.CopyFrom(numpy_helper.from_array(array, item.name))
    return len(read)


def in_bfloat16(graph: onnx.GraphProto) -> int:
    return stored(graph, lambda array: (array.view(np.uint32) & 0xFFFF0000).astype(np.uint32).view(np.float32))


def through_eight_bits(graph: onnx.GraphProto) -> int:
    def rounded(array: np.ndarray) -> np.ndarray:
        steps = np.abs(array.reshape(len(array), -1)).max(1).reshape(-1, *[1] * (array.ndim - 1)) / 127
        return np.round(array / steps) * steps

    return stored(graph, rounded)


def repaired(source: Path, target: Path, folder: Path) -> RepairResult:
    models: list[Model] = [model_of("onnx", path) for path in (source, target)]
    inputs = framework("onnx").describe(models[0]).inputs
    data = DataReference("synthetic", 12, samples=inputs)
    right, wrong = (Subject(model, inputs, data, None) for model in models)
    return repair_models(right, wrong, folder, OPTIONS)


@pytest.mark.parametrize("fault", [other_epsilons, without_biases, in_bfloat16, through_eight_bits])
def test_a_rule_that_is_wrong_everywhere(fault: Callable[[onnx.GraphProto], int], tmp_path: Path) -> None:
    source = residual_blocks(tmp_path / "source.onnx", BLOCKS)
    target, places = changed(source, tmp_path / "target.onnx", fault)
    result = repaired(source, target, tmp_path / "out")
    assert result.mended, (result.after.reason, result.edits)
    assert len(result.edits) == places
    assert result.tried <= places + 1  # one for all, then whether those in common pieces are needed
    assert result.model is not None
    ours, theirs = (framework("onnx").load(model) for model in (model_of("onnx", source), result.model))
    feeds = {"image": drawn(3, CUBE, CUBE, CUBE, seed=77, scale=1)}
    assert np.abs(ours.run(feeds)["y"] - theirs.run(feeds)["y"]).max() < 1e-5


def test_what_can_not_be_mended_keeps_nobody_else_from_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proposal that no file can be made of is left out; the others of its round are not."""
    from conrepair.editors.onnx import OnnxEditor

    source = residual_blocks(tmp_path / "source.onnx", BLOCKS)
    target, places = changed(source, tmp_path / "target.onnx", other_epsilons)
    usual = OnnxEditor.set_attributes

    def refusing(editor: OnnxEditor, node: object, changes: dict[str, object]) -> None:
        if getattr(node, "name", "").startswith("n2") or "n2" in getattr(node, "outputs", ()):
            raise RuntimeError("this one is broken")
        usual(editor, node, changes)  # type: ignore[arg-type]

    monkeypatch.setattr(OnnxEditor, "set_attributes", refusing)
    result = repaired(source, target, tmp_path / "out")
    attributes = [text for text in result.edits if "epsilon" in text]
    assert len(attributes) == places - 1
