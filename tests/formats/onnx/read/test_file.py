"""ONNX files that are loaded without their weights: the same models, wherever they have their tensors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import onnx_ir
import onnx_networks
import pytest
from onnx import TensorProto, helper, numpy_helper

from conrepair.formats.onnx.read.file import load_mapped, load_plain

VALUES = np.random.default_rng(0).standard_normal((40, 50)).astype(np.float32)


def written(path: Path) -> Path:
    """Tensors in initializers, attributes, a branch and a function; stored as bytes and as numbers."""
    kinds = (TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.INT8, TensorProto.INT4, TensorProto.BOOL)
    weights = [numpy_helper.from_array(VALUES, "raw"), helper.make_tensor("typed", 1, [40, 50], VALUES.reshape(-1))]
    weights += [helper.make_tensor(f"kind-{kind}", kind, [2000], np.arange(2000) % 5) for kind in kinds]
    weights += [numpy_helper.from_array(VALUES.astype(kind), kind) for kind in ("float16", "float64", "int8", "bool")]
    weights += [numpy_helper.from_array(np.array([2], np.int64), "small")]
    weights += [helper.make_tensor("text", TensorProto.STRING, [300], [b"many words"] * 300)]
    constant = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(VALUES, "in a node"))
    own = numpy_helper.from_array(2 * VALUES, "own")
    branch = helper.make_graph(
        [helper.make_node("Add", ["own", "raw"], ["r"])], "b", [], [helper.make_empty_tensor_value_info("r")], [own]
    )
    choice = helper.make_node("If", ["flag"], ["d"], then_branch=branch, else_branch=branch)
    custom = helper.make_node("Custom", ["x"], ["e"], domain="own", several=[numpy_helper.from_array(VALUES)] * 2)
    inner = [
        helper.make_node("Constant", [], ["k"], value=numpy_helper.from_array(3 * VALUES)),
        helper.make_node("Add", ["v", "k"], ["w"]),
    ]
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]
    function = helper.make_function("own", "Shifted", ["v"], ["w"], inner, opsets)
    nodes = [constant, choice, custom, helper.make_node("Shifted", ["x"], ["y"], domain="own")]
    inputs = [helper.make_tensor_value_info("x", 1, [40, 50]), helper.make_tensor_value_info("flag", 9, [])]
    outputs = [helper.make_empty_tensor_value_info(name) for name in "cdey"]
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    onnx.save(helper.make_model(graph, opset_imports=opsets, functions=[function], ir_version=10), path)
    return path


def tensors(model: onnx_ir.Model) -> Iterator[onnx_ir.TensorProtocol]:
    """All of a model's, in order."""
    for graph in model.graphs():
        yield from (value.const_value for value in graph.initializers.values() if value.const_value is not None)
    for nodes in [model.graph.all_nodes(), *(function.all_nodes() for function in model.functions.values())]:
        for node in nodes:
            for attribute in node.attributes.values():
                if attribute.type == onnx_ir.AttributeType.TENSOR:
                    yield attribute.as_tensor()
                elif attribute.type == onnx_ir.AttributeType.TENSORS:
                    yield from attribute.as_tensors()


def test_the_same_model(tmp_path: Path) -> None:
    path = written(tmp_path / "model.onnx")
    expected, loaded = onnx_ir.load(path), load_mapped(path)[0]
    pairs = list(zip(tensors(expected), tensors(loaded), strict=True))
    assert len(pairs) == 19
    for one, two in pairs:
        assert (one.name or None, one.dtype, one.shape) == (two.name or None, two.dtype, two.shape)
        np.testing.assert_array_equal(two.numpy(), one.numpy())
    mapped = [two.numpy() for _, two in pairs if isinstance(two, onnx_ir.Tensor)]
    assert len(mapped) >= 10
    assert not any(array.flags.writeable for array in mapped)
    for model in (expected, loaded):
        model.graph.name = "g"
    assert onnx_ir.to_proto(loaded).SerializeToString() == onnx_ir.to_proto(expected).SerializeToString()


def test_a_function_has_numbers_outside_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proto = onnx.load(written(tmp_path / "model.onnx"))
    constant = proto.functions[0].node[0].attribute[0].t
    (tmp_path / "weights").write_bytes(constant.raw_data)
    onnx.external_data_helper.set_external_data(constant, "weights", 0, len(constant.raw_data))
    constant.ClearField("raw_data")
    (tmp_path / "outside.onnx").write_bytes(proto.SerializeToString())
    monkeypatch.chdir("/")
    for load in (load_mapped, load_plain):
        (function,) = load(tmp_path / "outside.onnx")[0].functions.values()
        np.testing.assert_array_equal(function.graph.node(0).attributes["value"].as_tensor().numpy(), 3 * VALUES)


def test_the_arrays_outlive_the_model(tmp_path: Path) -> None:
    path = written(tmp_path / "model.onnx")
    array = load_mapped(path)[0].graph.initializers["raw"].const_value.numpy()
    path.unlink()
    np.testing.assert_array_equal(array, VALUES)


def test_a_tensor_with_too_few_numbers_is_refused(tmp_path: Path) -> None:
    proto = onnx.load(written(tmp_path / "model.onnx"))
    proto.graph.initializer[0].dims[0] = 41
    onnx.save(proto, tmp_path / "other.onnx")
    with pytest.raises(ValueError, match="reshape"):
        load_mapped(tmp_path / "other.onnx")


def test_what_is_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    content = written(tmp_path / "model.onnx").read_bytes()
    part = tmp_path / "part.onnx"
    for size in range(0, len(content) - 64, len(content) // 40):
        part.write_bytes(content[:size])
        with pytest.raises(Exception):  # noqa: B017, PT011 (of whichever type)
            load_mapped(part)


def test_weights_that_were_changed_for_a_run_are_mapped_no_more(tmp_path: Path) -> None:
    text = "small (float[2, 64] x) => (float[2, 64] y) { y = MatMul (x, w) }"
    path, weight = tmp_path / "model.onnx", onnx_networks.drawn(64, 64)
    model = onnx.load(onnx_networks.written(path, text, {"w": weight}))
    onnx.save(model, path, save_as_external_data=True, location="weights", size_threshold=65)
    feeds = {"x": onnx_networks.drawn(2, 64)}
    found = onnx_networks.model_of("onnx", path)
    network = onnx_networks.open_network(found, onnx_networks.specs(found, feeds))
    run = network.with_weights(lambda array: 2 * array).segment(["x"], ["y"]).run(feeds)
    np.testing.assert_allclose(run["y"], 2 * feeds["x"] @ weight, rtol=1e-4)
    assert str(tmp_path / "weights") not in Path("/proc/self/maps").read_text(encoding="utf-8")
