"""ONNX networks whose weights don't fit into a message, or shouldn't be held twice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from large_model import write_large_model
from onnx import helper, numpy_helper

_PIECE = """
import sys
import numpy as np
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.formats.models.model import Model
from conrepair.formats.onnx.read.network import open_network

def held():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("RssAnon"))

path, size = sys.argv[1], int(sys.argv[2])
before = held()
network = open_network(Model("onnx", path, ""), [TensorSpec("x", (2, size), "float32")])
segments = [network.segment(["x", "h3"], ["h3", "h6"]), network.segment(["x", "h6"], ["y"])]
ones = np.ones((2, size), "float32")
feeds = {"x": ones, "h3": ones, "h6": 0 * ones}
results = {name: array for segment in segments for name, array in segment.run(feeds).items()}
assert sorted(results) == ["h3", "h6", "y"]
assert not results["h3"].any() and not results["h6"].any()
assert (results["y"] == 1).all()
weight = next(node for node in network.graph.nodes if node.outputs == ("h5",)).parameters["weight"]
assert weight.numpy().shape == weight.shape == (size, size)
print(held() - before)
"""


@pytest.mark.slow
def test_cuts_models_above_two_gigabytes_without_holding_their_weights(tmp_path: Path) -> None:
    path = tmp_path / "large.onnx"
    size = write_large_model(path)
    done = subprocess.run(
        [sys.executable, "-c", _PIECE, str(path), str(size)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 200  # MB; the pieces' weights have 1,800


_SHARED = (
    _PIECE.split("path, size")[0]
    + """
from pathlib import Path
import onnx
from onnx import helper

rows, count = 4096, 3
weights = [helper.make_tensor(f"w{i}", 1, [rows, rows], np.full(rows * rows, i, "<f4").tobytes(), raw=True)
           for i in range(count)]
nodes = [helper.make_node("Gather", [f"w{i}", "x"], [f"y{i}"]) for i in range(count)]
outputs = [helper.make_empty_tensor_value_info(f"y{i}") for i in range(count)]
graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 7, ["n"])], outputs, weights)
proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.save(proto, sys.argv[1])
del proto, graph, weights
network = open_network(Model("onnx", sys.argv[1], ""), [TensorSpec("x", (1,), "int64")])
before = held()
segments = [network.segment(["x"], [f"y{i}" for i in range(count)]) for _ in range(5)]
for segment in segments:
    assert all((segment.run({"x": np.zeros(1, np.int64)})[f"y{i}"] == i).all() for i in range(count))
print(held() - before)
"""
)


def test_segments_share_the_weights_inside_a_file(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _SHARED, str(tmp_path / "model.onnx")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 64  # MB; the weights have 192, and five segments read all of them


_HELD = (
    _PIECE.split("path, size")[0]
    + """
import resource
from pathlib import Path
from conrepair.formats.onnx.read.file import load_mapped

path, size = sys.argv[1], int(sys.argv[2])
lines = open("/proc/self/status").read().splitlines()
data = next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmData"))
before = held()
resource.setrlimit(resource.RLIMIT_DATA, (data + (24 << 20), resource.RLIM_INFINITY))
loaded = load_mapped(Path(path))  # fails where the weights come by the heap
resource.setrlimit(resource.RLIMIT_DATA, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
network = open_network(Model("onnx", path, ""), [TensorSpec("x", (2, size), "float32")])
other = network.second_opinion()
feeds = {"x": np.ones((2, size), "float32")}
segment = network.segment(["x"], ["y"])
assert (segment.run(feeds)["y"] == 2).all()
print(held() - before)
second = other.segment(["x"], ["y"])
assert (second.run(feeds)["y"] == 2).all()
"""
)

_CALLS = [
    ("Gather", ["w", "first"], ["row"]),  # kernels of products hold packed weights
    ("Add", ["x", "row"], ["sum"]),
    ("Gather", ["c", "first"], ["other"]),
    ("Mul", ["sum", "other"], ["y"]),
]


def test_weights_inside_a_file_are_never_on_the_heap(tmp_path: Path) -> None:
    """Initializers, and what constant nodes bring along."""
    size = 4096
    weight = np.ones((size, size), np.float32)
    constant = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(weight))
    nodes = [constant, *(helper.make_node(*call) for call in _CALLS)]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", size])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", size])],
        [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(np.zeros(1, np.int64), "first")],
    )
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    done = subprocess.run(
        [sys.executable, "-c", _HELD, str(path), str(size)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 40  # MB; the weights have 128
