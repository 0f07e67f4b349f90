"""Objects of each framework, written as files that are read as what they were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir
import pytest
from localized import Variant

import conrepair
from conrepair.ground.intake.models import model_file


def module() -> object:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3))


def test_onnx_in_both_its_libraries(tmp_path: Path) -> None:
    path = Path(Variant(size=(12, 12)).write(tmp_path / "right.onnx").path)
    proto = onnx.load(path)
    for number, model in enumerate((proto, onnx_ir.from_proto(proto))):
        written, own = model_file(model, tmp_path / str(number))
        assert own
        assert conrepair.compare(path, written, in_process=True).exit_code == 0
    assert model_file(str(path), tmp_path / "unused") == (path, False)
    assert not (tmp_path / "unused").exists()


def test_a_module_of_pytorch_is_exported_with_an_open_batch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    net = module()
    data = np.random.default_rng(0).standard_normal((7, 5)).astype(np.float32)
    with pytest.raises(conrepair.ConrepairError, match="exported with inputs"):
        conrepair.compare(net, net, in_process=True)
    found = conrepair.compare(net, net, data=data, in_process=True)
    assert found.exit_code == 0
    assert found.row.ran.run is not None
    assert found.row.ran.run.count == 7
    assert net.training  # type: ignore[attr-defined]
    shapes = conrepair.inspect(net, inputs=["batch,5"], in_process=True).inputs[0].shape
    assert isinstance(shapes[0], str)
    program = torch.export.export(net.eval(), (torch.zeros(2, 5),))  # type: ignore[attr-defined]
    assert conrepair.localize(net, program, inputs=["2,5"], in_process=True).exit_code == 0


def test_a_loader_of_pytorch_gives_batches() -> None:
    torch = pytest.importorskip("torch")
    inputs, labels = torch.randn(6, 5), torch.arange(6)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(inputs, labels), batch_size=4)
    found = conrepair.compare(module(), module(), data=loader, in_process=True)
    assert found.row.ran.run is not None
    assert found.row.ran.run.count == 6


def test_keras_and_tensorflow_and_tflite(tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    tf = pytest.importorskip("tensorflow")
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((5,)), keras.layers.Dense(4, "relu"), keras.layers.Dense(3)])

    @tf.function(input_signature=[tf.TensorSpec((None, 5), tf.float32)])
    def function(x: object) -> object:
        return model(x)

    content = tf.lite.TFLiteConverter.from_keras_model(model).convert()
    for other in (function, function.get_concrete_function(), content):
        assert conrepair.compare(model, other, in_process=True).exit_code == 0
    unsigned = tf.function(lambda x: x)
    with pytest.raises(conrepair.ConrepairError, match="input_signature"):
        model_file(unsigned, tmp_path)


def test_what_exporters_and_sessions_hold_is_written(tmp_path: Path) -> None:
    """An ONNX program of PyTorch's exporter, a session of ONNX Runtime, and bytes, whatever format they are of."""
    import onnxruntime

    path = Path(Variant(size=(12, 12)).write(tmp_path / "right.onnx").path)
    content = path.read_bytes()
    for model in (onnxruntime.InferenceSession(path), onnxruntime.InferenceSession(content), content):
        assert conrepair.compare(path, model, in_process=True).exit_code == 0
    with pytest.raises(conrepair.ConrepairError, match="unknown model format"):
        conrepair.compare(path, b"hello", in_process=True)


def test_a_program_of_onnx_and_a_module_in_half_precision() -> None:
    torch = pytest.importorskip("torch")
    net = module()
    program = torch.onnx.export(net, (torch.zeros(2, 5),), dynamo=True, verbose=False)
    assert conrepair.compare(net, program, inputs="2,5", in_process=True).exit_code == 0
    half = conrepair.inspect(net.half(), inputs="2,5", in_process=True)  # type: ignore[attr-defined]
    assert (half.precision, half.inputs[0].dtype) == ("float16", "float16")
