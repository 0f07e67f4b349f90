"""Texts that networks look up."""

from __future__ import annotations

from pathlib import Path

import ml_networks
import numpy as np
import pytest
from onnx import TensorProto, helper

from conrepair.formats.models.model import Model
from conrepair.formats.onnx.read.network import open_network
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.graph.input_ranges import input_ranges


def ranges_of(path: Path, name: str, width: int):
    network = open_network(Model("onnx", str(path), ""), [TensorSpec(name, (2, width), "string")])
    return input_ranges(network.graph)[name]


def test_columns_have_their_own(tmp_path: Path) -> None:
    known = ranges_of(ml_networks.categories(tmp_path / "a.onnx"), "cats", 2)
    assert known.words == (("red", "green", "blue"), ("s", "m"))
    drawn = known.draw(np.random.default_rng(0), (20, 2))
    assert drawn.dtype.kind == "U"
    assert set(drawn[:, 0]) == {"red", "green", "blue"}
    assert set(drawn[:, 1]) == {"s", "m"}


@pytest.mark.parametrize(("case", "texts"), [("NONE", 3), ("LOWER", 6)])
def test_sentences_of_a_pool(case: str, texts: int, tmp_path: Path) -> None:
    nodes = [
        helper.make_node("StringNormalizer", ["text"], ["normal"], case_change_action=case),
        helper.make_node("StringSplit", ["normal"], ["words", "counts"], delimiter=" "),
        helper.make_node(
            "TfIdfVectorizer",
            ["words"],
            ["y"],
            mode="TF",
            min_gram_length=1,
            max_gram_length=1,
            max_skip_count=0,
            ngram_counts=[0],
            ngram_indexes=[0, 1, 2],
            pool_strings=["good", "bad", "film"],
        ),
    ]
    outputs = [ml_networks.tensor("y", TensorProto.FLOAT, [None, 3])]
    inputs = [ml_networks.tensor("text", TensorProto.STRING, [None])]
    path = ml_networks.saved(tmp_path / "a.onnx", nodes, inputs, outputs, opset=20)
    network = open_network(Model("onnx", str(path), ""), [TensorSpec("text", (2,), "string")])
    known = input_ranges(network.graph)["text"]
    assert known.words == (("good", "bad", "film", "Good", "Bad", "Film")[:texts],)
    drawn = known.draw(np.random.default_rng(0), (60,))
    assert max(len(text.split()) for text in drawn) > 2
    assert {word for text in drawn for word in text.split()} == set(known.words[0])
    assert str(known).startswith("sentences of 'good', 'bad', 'film'")
