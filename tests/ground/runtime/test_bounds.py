"""Files that are small only as long as nobody writes their functions out."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import helper
from tensorflow.core.framework import graph_pb2

import conrepair
from conrepair.formats.models.admission import admitted
from conrepair.formats.models.model import Model
from conrepair.formats.onnx.load.proto_file import read_proto
from conrepair.ground.runtime.errors import ModelLoadError


def _onnx(path: Path, depth: int, *, last: str | None = None) -> Path:
    """Functions that call the next one twice, and the last one Neg, or another of them."""
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    functions = []
    for place in range(depth):
        called, domain = (f"f{place + 1}", "own") if place + 1 < depth else (last or "Neg", "own" if last else "")
        nodes = [
            helper.make_node(called, ["x"], ["t"], domain=domain),
            helper.make_node(called, ["t"], ["y"], domain=domain),
        ]
        functions.append(helper.make_function("own", f"f{place}", ["x"], ["y"], nodes, imports))
    ends = [[helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 2])] for name in "xy"]
    graph = helper.make_graph([helper.make_node("f0", ["x"], ["y"], domain="own")], "graph", *ends)
    model = helper.make_model(graph, functions=functions, opset_imports=imports, ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def _frozen(path: Path, depth: int) -> Path:
    graph = graph_pb2.GraphDef()
    graph.node.add(name="x", op="Placeholder")
    graph.node.add(name="y", op="f0", input=["x"])
    for place in range(depth):
        function = graph.library.function.add()
        function.signature.name = f"f{place}"
        for name in ("a", "b"):
            if place + 1 == depth:
                function.node_def.add(name=name, op="Neg")
            elif place % 2:
                function.node_def.add(name=name, op=f"f{place + 1}")
            else:
                function.node_def.add(name=name, op="PartitionedCall").attr["f"].func.name = f"f{place + 1}"
    path.write_bytes(graph.SerializeToString())
    return path


def test_nested_functions_of_onnx_are_counted_before_they_are_written_out(tmp_path: Path) -> None:
    path = _onnx(tmp_path / "deep.onnx", 31)
    with pytest.raises(ModelLoadError, match=r"functions call one another so often .* Export the model without"):
        read_proto(path)
    assert conrepair.compare(path, path, in_process=True).exit_code == 3


def test_functions_that_call_themselves_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match="calls itself"):
        read_proto(_onnx(tmp_path / "round.onnx", 3, last="f0"))


def test_a_few_nested_functions_are_read(tmp_path: Path) -> None:
    assert len(read_proto(_onnx(tmp_path / "flat.onnx", 6)).functions) == 6


@pytest.mark.parametrize(("depth", "refused"), [(31, True), (6, False)])
def test_functions_of_tensorflow_are_counted(tmp_path: Path, depth: int, refused: bool) -> None:
    model = Model("tensorflow", str(_frozen(tmp_path / "graph.pb", depth)), "")
    if not refused:
        with admitted(model) as place:
            assert place.exists()
        return
    with pytest.raises(ModelLoadError, match="functions call one another so often"), admitted(model):
        pass
