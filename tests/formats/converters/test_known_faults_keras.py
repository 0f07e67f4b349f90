"""Faults of Keras, tf2onnx and TFLite's converter, used plainly. A failing test: the tool was fixed;
correct docs/measured/converter-faults.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import faulty_keras_models as models
import faulty_models as faulty
import numpy as np
import onnx
import onnxruntime
import pytest
import tensorflow as tf
from faulty_keras_models import KerasCase, run_tflite, to_onnx, to_tflite
from keras import ops

pytestmark = pytest.mark.timeout(300)


def onnx_of_tflite(case: KerasCase, folder: Path) -> tuple[Any, Any]:
    """The ONNX model, and TFLite's own answer."""
    import tf2onnx

    content = to_tflite(case.network())
    (folder / "net.tflite").write_bytes(content)
    return tf2onnx.convert.from_tflite(str(folder / "net.tflite"), opset=15)[0], run_tflite(content, case.array)


@pytest.mark.parametrize(("one", "two"), models.ADDED)
def test_add_of_keras_takes_an_operand_for_a_bias(one: tuple[int, ...], two: tuple[int, ...]) -> None:
    x, y = faulty.normal(*one), faulty.normal(*two)
    assert faulty.difference(x + y, np.asarray(ops.add(x, y))) > 0.5
    assert faulty.difference(x + y, np.asarray(ops.subtract(x, -y))) < 1e-6


@pytest.mark.parametrize("case", models.TF2ONNX_WRONG.values(), ids=models.TF2ONNX_WRONG.keys())
def test_tf2onnx_is_wrong(case: KerasCase) -> None:
    network = case.network()
    (got,) = faulty.run(to_onnx(network), [case.array])
    assert faulty.difference(case.expected(network), got) > case.least


@pytest.mark.parametrize("case", models.TF2ONNX_LEAVES.values(), ids=models.TF2ONNX_LEAVES.keys())
def test_tf2onnx_leaves_operators_of_tensorflow_without_an_error(case: KerasCase) -> None:
    assert faulty.foreign(to_onnx(case.network())) == case.left


def test_keras_exports_constants_as_inputs(tmp_path: Path) -> None:
    network = models.NORMALIZED.network()
    signature = [tf.TensorSpec(network.input.shape, "float32", name="x")]
    network.export(str(tmp_path / "net.onnx"), format="onnx", verbose=False, input_signature=signature)
    assert len(onnx.load(tmp_path / "net.onnx").graph.input) == 3


def test_tf2onnx_writes_negative_pads() -> None:
    case = models.TF2ONNX_UNLOADABLE
    with pytest.raises(onnxruntime.capi.onnxruntime_pybind11_state.Fail, match="must not contain negative"):
        faulty.run(to_onnx(case.network()), [case.array])


def test_tf2onnx_drops_an_activation_of_tflite(tmp_path: Path) -> None:
    """TFLite's converter fuses RELU_N1_TO_1 with the product; what reads it knows RELU and RELU6 only."""
    proto, expected = onnx_of_tflite(models.CLIPPED, tmp_path)
    (got,) = faulty.run(proto, [models.CLIPPED.array])
    assert np.abs(expected).max() == 1
    assert faulty.difference(expected, got) > models.CLIPPED.least


def test_tf2onnx_leaves_operators_of_tflite_without_an_error(tmp_path: Path) -> None:
    proto, _ = onnx_of_tflite(models.FUSED_GELU, tmp_path)
    assert faulty.foreign(proto) == models.FUSED_GELU.left


@pytest.mark.parametrize("case", models.TFLITE_WRONG.values(), ids=models.TFLITE_WRONG.keys())
def test_tflite_is_wrong(case: KerasCase) -> None:
    network = case.network()
    expected = case.expected(network)
    assert np.isfinite(expected).all()
    assert faulty.difference(expected, run_tflite(to_tflite(network), case.array)) > case.least


@pytest.mark.parametrize("case", models.TFLITE_REFUSES.values(), ids=models.TFLITE_REFUSES.keys())
def test_tflite_refuses(case: KerasCase) -> None:
    with pytest.raises(Exception, match=r"Could not translate MLIR to FlatBuffer"):
        to_tflite(case.network())


def test_tflite_cannot_allocate_open_sizes() -> None:
    """They count as 1, and a window of 3 doesn't fit there; with real sizes given first it runs."""
    from ai_edge_litert.interpreter import Interpreter

    case = models.OPEN_SIZES
    network = case.network((None, None, 4))
    interpreter = Interpreter(model_content=to_tflite(network))
    with pytest.raises(RuntimeError, match="failed to prepare"):
        interpreter.allocate_tensors()
    interpreter = Interpreter(model_content=to_tflite(network))
    index = interpreter.get_input_details()[0]["index"]
    interpreter.resize_tensor_input(index, case.array.shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(index, case.array)
    interpreter.invoke()
    got = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    assert faulty.difference(case.expected(network), got) < 1e-4
