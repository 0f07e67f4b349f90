"""Weights that ONNX Runtime has in two to eight bits: the numbers that it computes with."""

import contextlib
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from small_models import model_of

from conrepair.formats.networks.network import open_network
from conrepair.formats.onnx.read import session
from conrepair.formats.onnx.read.blocks import packed, unpacked
from conrepair.ground.graph.slices import slices_of

ROWS, COLUMNS, SIZE = 40, 6, 16


def _saved(path: Path, node: onnx.NodeProto, constants: dict[str, np.ndarray], input_: tuple[str, int, list]) -> Path:
    graph = helper.make_graph(
        [node],
        "blocks",
        [helper.make_tensor_value_info(*input_)],
        [helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(constants["scales"].dtype), None)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
    return path


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_packing_is_undone(bits: int) -> None:
    integers = np.random.default_rng(0).integers(0, 2**bits, (3, 8)).astype(np.uint8)
    assert np.array_equal(unpacked(packed(integers, bits), bits), integers)


@pytest.mark.parametrize("zeros", [True, False])
@pytest.mark.parametrize("bits", [4, 8])
def test_a_product_has_the_weights_that_it_multiplies_by(tmp_path: Path, bits: int, zeros: bool) -> None:
    random, count = np.random.default_rng(1), -(-ROWS // SIZE)
    constants = {
        "b": packed(random.integers(0, 2**bits, (COLUMNS, count, SIZE)), bits),
        "scales": random.uniform(0.1, 1, (COLUMNS, count)).astype(np.float32).reshape(-1),
    }
    if zeros:
        constants["zeros"] = packed(random.integers(0, 2**bits, (COLUMNS, count)), bits).reshape(-1)
    node = helper.make_node(
        "MatMulNBits", ["x", *constants], ["y"], domain="com.microsoft", K=ROWS, N=COLUMNS, bits=bits, block_size=SIZE
    )
    path = _saved(tmp_path / "m.onnx", node, constants, ("x", TensorProto.FLOAT, [ROWS, ROWS]))
    (found,) = open_network(model_of("onnx", path), []).graph.nodes
    weight = found.parameters["weight"]
    (product,) = onnxruntime.InferenceSession(path).run(None, {"x": np.eye(ROWS, dtype=np.float32)})
    assert (found.op, weight.bits, weight.shape, weight.blocks) == ("MatMul", bits, (ROWS, COLUMNS), (SIZE, 1))
    np.testing.assert_allclose(weight.numpy(), product, rtol=1e-5, atol=1e-6)
    (way,) = slices_of(weight, weight.shape)
    assert np.array_equal(way.put(way.rows(weight.numpy())), weight.numpy())
    assert np.array_equal(way.peaks(weight.numpy()), np.abs(way.rows(weight.numpy())).max(axis=1))
    steps = way.rows(weight.numpy()) / way.scales[:, None]
    assert np.abs(steps - np.rint(steps)).max() < 1e-3


@pytest.mark.parametrize("zeros", ["none", "whole", "halves", "large"])
@pytest.mark.parametrize("kind", [np.float32, np.float16])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_weights_are_those_of_64_bits_rounded_once(tmp_path: Path, bits: int, kind: type, zeros: str) -> None:
    random, count, columns = np.random.default_rng(3), -(-ROWS // SIZE), 70
    integers = random.integers(0, 2**bits, (columns, count, SIZE))
    scales = random.normal(0, 1, (columns, count)).astype(kind)
    points = {
        "none": np.full((columns, count), 2.0 ** (bits - 1)),
        "whole": random.integers(-3, 20, (columns, count)).astype(np.float64),
        "halves": random.integers(0, 20, (columns, count)) + 0.1,
        "large": random.integers(0, 20, (columns, count)) + 2.0 ** (24 if kind is np.float32 else 12),
    }[zeros].astype(kind)
    constants = {"b": packed(integers, bits), "scales": scales.reshape(-1)}
    if zeros != "none":
        constants["zeros"] = points.reshape(-1)
    node = helper.make_node(
        "MatMulNBits", ["x", *constants], ["y"], domain="com.microsoft", K=ROWS, N=columns, bits=bits, block_size=SIZE
    )
    path = _saved(
        tmp_path / "m.onnx", node, constants, ("x", helper.np_dtype_to_tensor_dtype(np.dtype(kind)), [1, ROWS])
    )
    (found,) = open_network(model_of("onnx", path), []).graph.nodes
    weight = found.parameters["weight"]
    wide = (integers - points.astype(np.float64)[..., None]) * scales.astype(np.float64)[..., None]
    meant = wide.reshape(columns, -1)[:, :ROWS].T.astype(np.float32)
    assert weight.numpy().tobytes() == np.ascontiguousarray(meant).tobytes()
    assert list(weight.scales) == [float(scale) for scale in scales.T.reshape(-1)]


def test_a_table_has_the_rows_that_are_gathered(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    constants = {
        "data": packed(random.integers(0, 16, (5, 2 * SIZE)), 4),
        "scales": random.uniform(0.1, 1, (5, 2)).astype(np.float32),
    }
    inputs = ["data", "x", "scales"]
    node = helper.make_node(
        "GatherBlockQuantized", inputs, ["y"], domain="com.microsoft", quantize_axis=1, block_size=SIZE, bits=4
    )
    held = {name: constants[name] for name in ("data", "scales")}
    path = _saved(tmp_path / "g.onnx", node, held, ("x", TensorProto.INT64, [5]))
    (found,) = open_network(model_of("onnx", path), []).graph.nodes
    (rows,) = onnxruntime.InferenceSession(path).run(None, {"x": np.arange(5)})
    table = found.parameters["table"]
    assert (found.op, table.bits, table.blocks) == ("Gather", 4, (1, SIZE))
    np.testing.assert_allclose(table.numpy(), rows, rtol=1e-6)


@pytest.mark.parametrize(("operator", "unpacked"), [("MatMulNBits", False), ("MatMul", True)])
def test_only_weights_in_few_bits_are_packed_anew_in_large_networks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operator: str, unpacked: bool
) -> None:
    monkeypatch.setattr(session, "_PACKED", 0)
    constants = {"b": np.ones((COLUMNS, 1, SIZE // 2), np.uint8), "scales": np.ones(COLUMNS, np.float32)}
    node = helper.make_node(
        "MatMulNBits", ["x", *constants], ["y"], domain="com.microsoft", K=SIZE, N=COLUMNS, bits=4, block_size=SIZE
    )
    if operator == "MatMul":
        constants = {"scales": np.ones((SIZE, COLUMNS), np.float32)}
        node = helper.make_node("MatMul", ["x", "scales"], ["y"])
    path = _saved(tmp_path / "m.onnx", node, constants, ("x", TensorProto.FLOAT, [1, SIZE]))
    opened = []
    piece = session.OpenPiece
    monkeypatch.setattr(session, "OpenPiece", lambda made, held: opened.append(made) or piece(made, held))
    open_network(model_of("onnx", path), []).segment(("x",), ("y",))
    with contextlib.nullcontext() if unpacked else pytest.raises(RuntimeError):  # which it has no entry for
        assert opened[-1].get_session_options().get_session_config_entry("session.disable_prepacking") == "1"
