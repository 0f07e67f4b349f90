"""Each importer against the framework itself, and what is said where one can't."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import small_models as small
import tensorflow as tf
import tflite_networks as networks
from onnx import helper, numpy_helper

from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.formats.tvm.backend import BACKEND
from conrepair.formats.tvm.imported import _operator
from conrepair.ground.runtime.errors import ConversionError

IMPORTERS = {"onnx": "relax.frontend.onnx", "torch": "relax.frontend.torch", "tflite": "relax.frontend.tflite"}
GATES = {"w": (1, 15, 4), "r": (1, 15, 5)}  # of a GRU with 5 units


def model_in(form: str, folder: Path) -> Model:
    if form == "onnx":
        return small.model_of("onnx", small.onnx_convnet(folder / "net.onnx"))
    if form == "torch":
        import torch

        network = small.torch_convnet().eval()
        return small.model_of(
            "torch", small.export_pt2(network, [torch.from_numpy(small.images())], folder / "net.pt2")
        )
    return small.model_of("tflite", small.tflite_of(small.keras_convnet(), folder / "net.tflite"))


def compiled(model: Model, folder: Path, batch: int = 2, **options: Any) -> Any:
    folder.mkdir()
    record = BACKEND.compile(model, options, batch, folder)
    return record, BACKEND.load(model, {**options, "build": {"path": str(folder)}})


@pytest.mark.parametrize("form", IMPORTERS)
def test_a_model_answers_as_in_its_framework(form: str, tmp_path: Path) -> None:
    model = model_in(form, tmp_path)
    source = framework(form).load(model)
    record, runnable = compiled(model, tmp_path / "build")
    batch = record["inputs"][0]["shape"][0]
    images = small.images(batch, channels_last=form == "tflite")
    expected, found = source.run({source.inputs[0].name: images}), runnable.run({source.inputs[0].name: images})
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        assert small.relative_l2(array, found[name]) < 1e-5
    assert record["importer"] == IMPORTERS[form]
    assert batch == (1 if form == "tflite" else 2)  # a TFLite file says every size


def test_what_a_backend_takes(tmp_path: Path) -> None:
    def takes(form: str, path: str = "net", **options: Any) -> str:
        return BACKEND.takes(Model(form, path, ""), options)

    wanted = {form: takes(form) for form in ("onnx", "torch", "tflite", "keras", "tensorflow")}
    assert wanted == {"onnx": "onnx", "torch": "torch", "tflite": "tflite", "keras": "onnx", "tensorflow": "onnx"}
    assert takes("torch", importer="onnx") == "onnx"
    import torch

    script = tmp_path / "net.pt"
    torch.jit.trace(small.torch_convnet().eval(), torch.from_numpy(small.images())).save(str(script))
    assert takes("torch", str(script)) == "onnx"


def lonely(operator: str, path: Path, domain: str = "", **attributes: Any) -> Model:
    """A model of one operator behind a Relu."""
    tensor = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Relu", ["x"], ["h"]),
        helper.make_node(operator, ["h"], ["y"], name="odd", domain=domain, **attributes),
    ]
    graph = helper.make_graph(
        nodes, "g", [tensor("x", onnx.TensorProto.FLOAT, [2, 3])], [tensor("y", onnx.TensorProto.FLOAT, None)]
    )
    domains = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=domains, ir_version=8), path)
    return small.model_of("onnx", path)


@pytest.mark.parametrize(
    ("operator", "domain", "attributes"),
    [("Bernoulli", "", {"seed": 1.0}), ("Gelu", "com.microsoft", {}), ("LpNormalization", "", {"p": 3})],
)
def test_the_operator_is_named(operator: str, domain: str, attributes: dict[str, Any], tmp_path: Path) -> None:
    from conrepair.formats.tvm.import_onnx import relax_of_onnx
    from conrepair.ground.data.tensor_spec import TensorSpec

    model = lonely(operator, tmp_path / "net.onnx", domain, **attributes)
    with pytest.raises(ConversionError, match=rf"ONNX importer can't take .*operator .*{operator}"):
        relax_of_onnx(onnx.load(model.path), [TensorSpec("x", (2, 3), "float32")], model.path)


def torch_model(function: Callable[[Any], Any], path: Path) -> Model:
    """A function behind a Relu."""
    import torch

    class Network(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return function(torch.relu(x))

    return small.model_of("torch", small.export_pt2(Network(), [torch.ones(2, 3, 3)], path, dynamic=False))


@pytest.mark.parametrize(
    ("function", "operator"),
    [
        (lambda x: x.det(), r"_linalg_det\.default"),  # of those that the importer doesn't have
        (lambda x: x.as_strided((2, 2), (1, 2), 1), r"aten\.as_strided\.default \(node 'as_strided'\)"),
    ],
    ids=["unknown", "refused"],
)
def test_the_operator_of_a_program_is_named(function: Callable[[Any], Any], operator: str, tmp_path: Path) -> None:
    model = torch_model(function, tmp_path / "net.pt2")
    with pytest.raises(ConversionError, match=rf"PyTorch importer can't take .*: it stops at operator {operator}: "):
        BACKEND.compile(model, {}, 2, tmp_path)


@pytest.mark.parametrize(
    ("function", "operator"),
    [
        (lambda x: tf.cumsum(x, 1, reverse=True), r"CUMSUM \(number 0\)"),
        (lambda x: tf.where(x > 0), r"WHERE \(number 1\)"),
    ],
    ids=["cumsum", "where"],
)
def test_the_operator_of_a_tflite_file_is_named(
    function: Callable[[Any], Any], operator: str, tmp_path: Path
) -> None:
    model = networks.TensorFlowCase(function, [(2, 3)], "").convert(tmp_path / "net.tflite")
    with pytest.raises(ConversionError, match=rf"TFLite importer can't take .*: it stops at operator {operator}: "):
        BACKEND.compile(model, {}, 2, tmp_path)


@pytest.mark.parametrize("form", ["tflite", "onnx"])
def test_loops_of_recurrent_layers_are_named_with_what_to_do(form: str, tmp_path: Path) -> None:
    steps = tf.keras.Input((8, 4), batch_size=1)
    network = tf.keras.Model(steps, tf.keras.layers.GRU(5, return_sequences=True)(steps))
    path = tmp_path / f"net.{form}"
    if form == "tflite":
        path.write_bytes(tf.lite.TFLiteConverter.from_keras_model(network).convert())
        words = r"SLICE \(number \d+\) inside of WHILE \(number \d+\): .*its operand \S+ is computed while"
    else:
        node = helper.make_node("GRU", ["x", "w", "r"], ["y"], hidden_size=5)
        weights = [numpy_helper.from_array(np.ones(shape, np.float32), name) for name, shape in GATES.items()]
        ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in ("x", "y")]
        ends[0] = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [8, 1, 4])
        graph = helper.make_graph([node], "net", ends[:1], ends[1:], weights)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
        words = "GRU"
    with pytest.raises(ConversionError, match=rf"it stops at operator {words}.*unroll=True"):
        BACKEND.compile(small.model_of(form, path), {}, 1, tmp_path)


@pytest.mark.parametrize(
    ("words", "operator"),
    [
        ("The following operators are not supported in frontend TFLite: 'CUMSUM', 'ROLL'\n", "CUMSUM, ROLL"),
        (
            "The following operators are likely to have dynamic range quantization: 'FULLY_CONNECTED'. If you are "
            "running an optimized graph, please turn off dynamic range quantization\n",
            "FULLY_CONNECTED",
        ),
        (
            "The following quantized TFLite operators are not supported in frontend TFLite yet: 'ROLL'. Quantized "
            "operators require explicit QDQ lowering\n",
            "ROLL",
        ),
        ("Unsupported function types ['_linalg_det.default']", "_linalg_det.default"),
    ],
)
def test_the_operators_that_an_importer_lists_are_named(words: str, operator: str) -> None:
    assert _operator(ValueError(words)) == operator


def test_an_open_size_is_asked_for(tmp_path: Path) -> None:
    tensor, kind = helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    shape = ["batch", "length"]
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])], "g", [tensor("x", kind, shape)], [tensor("y", kind, shape)]
    )
    path = small.save_onnx(tmp_path / "net.onnx", graph)
    with pytest.raises(ConversionError, match=r"x: float32\[batch, length\] leaves sizes open"):
        BACKEND.compile(small.model_of("onnx", path), {}, 2, tmp_path)
    assert np.array_equal(sorted(tmp_path.iterdir()), [path])
