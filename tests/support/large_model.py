"""A model of more than 2 GiB, which protobuf can't serialize as a whole."""

from pathlib import Path

import onnx
from onnx import TensorProto, helper

_SIZE, _COUNT = 8192, 9


def write_large_model(path: Path) -> int:
    """Write x + gelu(x W1 ... W9): matrices of 8192 x 8192 zeros, 2.25 GiB, in a sparse file beside the model.

    Args:
        path: Of the model, opset 20.

    Returns:
        The length of the rows that it takes ("x") and gives ("y").
    """
    data, length = path.with_suffix(".data"), 4 * _SIZE**2
    weights = []
    for index in range(_COUNT):
        tensor = TensorProto(name=f"w{index}", data_type=TensorProto.FLOAT, dims=[_SIZE, _SIZE])
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", data.name), ("offset", index * length), ("length", length)):
            tensor.external_data.add(key=key, value=str(value))
        weights.append(tensor)
    names = ["x", *(f"h{index}" for index in range(_COUNT - 1)), "sum"]
    nodes = [helper.make_node("MatMul", [names[i], f"w{i}"], [names[i + 1]]) for i in range(_COUNT)]
    nodes += [helper.make_node("Gelu", ["sum"], ["g"]), helper.make_node("Add", ["g", "x"], ["y"])]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", _SIZE]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], weights)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=8)
    onnx.save(proto, path)
    with data.open("wb") as stream:
        stream.truncate(_COUNT * length)
    return _SIZE
