"""What is wrong in many layers is one finding with its places."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from localizing import localize_networks
from onnx import numpy_helper
from rewritten_networks import feeds_of, opened, residual_blocks

from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.result import Localization
from conrepair.ground.graph.kinds import Kind
from conrepair.verdicts.evaluate.verdict import Verdict


def localized(folder: Path, change: Callable[[onnx.GraphProto], None]) -> Localization:
    source = residual_blocks(folder / "s.onnx")
    proto = onnx.load(source)
    change(proto.graph)
    onnx.save(proto, folder / "t.onnx")
    feeds = feeds_of("residual blocks")
    sides = opened(source, feeds), opened(folder / "t.onnx", feeds)
    return localize_networks(*sides, [(feeds, feeds)], folder / "work", Options()).result


def other_epsilons(graph: onnx.GraphProto) -> None:
    for node in graph.node:
        if node.op_type == "BatchNormalization":
            node.attribute.append(onnx.helper.make_attribute("epsilon", 1e-2))


def in_bits(graph: onnx.GraphProto, bits: int = 4) -> None:
    for item in graph.initializer:
        if item.name.startswith(("one", "two")) and "_b" not in item.name:
            array = numpy_helper.to_array(item)
            steps = np.abs(array).max(axis=(1, 2, 3), keepdims=True) / (2 ** (bits - 1) - 1)
            item.CopyFrom(numpy_helper.from_array((np.round(array / steps) * steps).astype(np.float32), item.name))


@pytest.mark.parametrize(
    ("change", "kind", "words", "among"),
    [
        (
            other_epsilons,
            Kind.HYPERPARAMETERS,
            "BatchNormalization has epsilon 0.01 in the converted model, 1e-05",
            "all 4",
        ),
        (in_bits, Kind.PRECISION, "weights are rounded to int4, a scale for each", "8 of 9"),
    ],
)
def test_one_rule(
    change: Callable[[onnx.GraphProto], None], kind: Kind, words: str, among: str, tmp_path: Path
) -> None:
    result = localized(tmp_path, change)
    assert result.verdict is Verdict.FAULTY
    [rule] = result.rules
    assert rule.kind is kind
    assert rule.words.startswith(words), rule.words
    assert f"in {among} places" in rule.text
    assert result.alone == ()
    assert rule.text in result.reason
    assert {layer[-1] for layer in rule.layers} == set("0123")


def test_a_fault_that_is_alone_is_no_rule(tmp_path: Path) -> None:
    def change(graph: onnx.GraphProto) -> None:
        other_epsilons(graph)
        node = next(node for node in graph.node if node.output[0] == "r2")
        node.op_type = "Tanh"

    result = localized(tmp_path, change)
    assert len(result.rules) == 1
    assert [fault.source_tensor for fault in result.alone] == ["r2"]
    assert "and 1 more" in result.reason


def test_none_where_nothing_is_wrong(tmp_path: Path) -> None:
    assert localized(tmp_path, lambda graph: None).rules == ()
