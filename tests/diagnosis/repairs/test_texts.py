"""Texts in ONNX networks: categories that are attributes, and constants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import conrepair
from conrepair.verdicts.evaluate.verdict import Verdict

_RIGHT, _WRONG = ["red", "green", "blue"], ["red", "blue", "green"]


def _saved(path: Path, nodes: list[Any], inputs: list[Any], outputs: list[Any], **weights: Any) -> Path:
    infos = ([helper.make_tensor_value_info(*item) for item in side] for side in (inputs, outputs))
    held = [numpy_helper.from_array(np.asarray(item), name) for name, item in weights.items()]
    opsets = [helper.make_opsetid("", 19), helper.make_opsetid("ai.onnx.ml", 3)]
    graph = helper.make_graph(nodes, "g", *infos, held)
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    return path


def _categories(path: Path, texts: list[str]) -> Path:
    first = helper.make_node("OneHotEncoder", ["c"], ["o"], domain="ai.onnx.ml", cats_strings=texts, zeros=1)
    nodes = [first, helper.make_node("Reshape", ["o", "shape"], ["p"]), helper.make_node("MatMul", ["p", "w"], ["y"])]
    ends = [("c", TensorProto.STRING, [1, 1])], [("y", TensorProto.FLOAT, [1, 2])]
    weights = {"shape": np.array([1, 3]), "w": np.arange(6, dtype=np.float32).reshape(3, 2)}
    return _saved(path, nodes, *ends, **weights)


def _labels(path: Path, texts: list[str]) -> Path:
    nodes = [
        helper.make_node("ArgMax", ["x"], ["i"], axis=1, keepdims=0),
        helper.make_node("Gather", ["k", "i"], ["y"]),
    ]
    ends = [("x", TensorProto.FLOAT, [1, 3])], [("y", TensorProto.STRING, [1])]
    return _saved(path, nodes, *ends, k=np.array(texts, object))


def test_categories_in_another_order_are_repaired(tmp_path: Path) -> None:
    source, target = _categories(tmp_path / "a.onnx", _RIGHT), _categories(tmp_path / "b.onnx", _WRONG)
    repaired = conrepair.repair(source, target, in_process=True)
    assert repaired.verdict is Verdict.EQUIVALENT
    assert "cats_strings" in str(repaired)


@pytest.mark.parametrize("word", ["Red", "red"])
def test_a_text_that_inputs_are_compared_with_is_repaired(word: str, tmp_path: Path) -> None:
    paths = []
    for place, text in enumerate(("red", word)):
        nodes = [
            helper.make_node("Equal", ["c", "t"], ["e"]),
            helper.make_node("Cast", ["e"], ["f"], to=TensorProto.FLOAT),
            helper.make_node("MatMul", ["f", "w"], ["y"]),
        ]
        ends = [("c", TensorProto.STRING, [None, 2])], [("y", TensorProto.FLOAT, [None, 3])]
        weights = {"t": np.array([text], object), "w": np.arange(6, dtype=np.float32).reshape(2, 3)}
        paths.append(_saved(tmp_path / f"{place}.onnx", nodes, *ends, **weights))
    repaired = conrepair.repair(*paths, in_process=True)
    assert repaired.verdict is Verdict.EQUIVALENT
    assert ("is Red in the converted model, red in the original" in str(repaired)) is (word == "Red")


@pytest.mark.parametrize("texts", [_WRONG, _RIGHT])
def test_texts_of_a_constant_are_compared_and_repaired(texts: list[str], tmp_path: Path) -> None:
    source, target = _labels(tmp_path / "a.onnx", _RIGHT), _labels(tmp_path / "b.onnx", texts)
    found = conrepair.repair(source, target, in_process=True)
    assert found.verdict is Verdict.EQUIVALENT
    assert ("is blue in the converted model, green in the original" in str(found)) is (texts == _WRONG)
