"""A signature's outputs have names and no order: those of a TFLite file beside an ONNX file's, which have both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_networks
import pytest

import conrepair

WEIGHTS = {name: onnx_networks.drawn(6, 4, seed=place) for place, name in enumerate(("first", "second"))}
TEXT = """g (float[n, 6] x) => (float[n, 4] scores, float[n, 4] boxes) {
    a = MatMul (x, first) scores = Relu (a) b = MatMul (x, second) boxes = Tanh (b) }"""


@pytest.fixture(scope="module")
def tflite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tf: Any = pytest.importorskip("tensorflow")
    folder = tmp_path_factory.mktemp("signature")

    def net(x: Any) -> dict[str, Any]:
        return {"zeta": tf.nn.relu(x @ WEIGHTS["first"]), "alpha": tf.tanh(x @ WEIGHTS["second"])}

    function = tf.function(net, input_signature=[tf.TensorSpec([None, 6], tf.float32, name="x")])
    tf.saved_model.save(tf.Module(), folder / "saved", signatures=function)
    content = tf.lite.TFLiteConverter.from_saved_model(str(folder / "saved")).convert()
    (folder / "net.tflite").write_bytes(content)
    return folder / "net.tflite"


@pytest.mark.parametrize("wrong", ["", "first", "second"])
def test_outputs_of_one_shape_are_not_crossed(wrong: str, tflite: Path, tmp_path: Path) -> None:
    weights = WEIGHTS | ({wrong: WEIGHTS[wrong] * np.float32(1.5)} if wrong else {})
    onnx_networks.written(tmp_path / "net.onnx", TEXT, weights)
    assert onnx.load(tmp_path / "net.onnx").graph.output[0].name == "scores"
    found = conrepair.compare(tmp_path / "net.onnx", tflite, in_process=True)
    assert found.verdict == ("faulty" if wrong else "equivalent")
    localized = conrepair.localize(tmp_path / "net.onnx", tflite, in_process=True)
    assert [fault.source_layers[0] for fault in localized.faults] == {"": [], "first": ["a"], "second": ["b"]}[wrong]
    done = conrepair.repair(tmp_path / "net.onnx", tflite, advice=0, in_process=True)
    assert done.mended
    assert (done.result is not None) == bool(wrong)
