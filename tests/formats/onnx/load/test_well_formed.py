"""ONNX files that are refused for how they're written: what is put right, and what nobody can know."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

import conrepair
from benchmarks.common.node_cases import node_cases
from conrepair.formats.onnx.load.well_formed import make_well_formed
from conrepair.ground.runtime.errors import ConrepairError, ModelLoadError

LOOP = """<ir_version: 8, opset_import: ["": 17]>
g (float[4] x) => (float[4] y) <float[4] d = {1, 2, 3, 4}, float[4] e = {5, 6, 7, 8}> {
  n = Constant<value = int64 {3}>()
  t = Constant<value = bool {1}>()
  z = Loop (n, t, x) <body = b (int64 i, bool k, float[4] h) => (bool k2, float[4] h2) <float[4] c = {1, 0.5, 2, 3}> {
    k2 = Identity(k) a = Mul (h, c) h2 = Add (a, d) }>
  y = Mul (z, e)
}"""
Change = Callable[[onnx.ModelProto], None]


def body(model: onnx.ModelProto) -> onnx.GraphProto:
    return next(node for node in model.graph.node if node.op_type == "Loop").attribute[0].g


def twice_in_the_body(model: onnx.ModelProto) -> None:
    again = body(model).initializer.add()
    again.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(body(model).initializer[0]), "c"))


def twice_in_the_graph(model: onnx.ModelProto) -> None:
    model.graph.initializer.append(model.graph.initializer[0])


def a_node_twice(model: onnx.ModelProto) -> None:
    again = model.graph.node.add()
    again.CopyFrom(model.graph.node[-2])
    again.name = "again"


def backwards(model: onnx.ModelProto) -> None:
    for graph in (model.graph, body(model)):
        nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in graph.node]
        del graph.node[:]
        graph.node.extend(reversed(nodes))


def one_name(model: onnx.ModelProto) -> None:
    for node in model.graph.node:
        node.name = "same"


def answer(model: onnx.ModelProto) -> np.ndarray:
    onnx.checker.check_model(model)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"x": np.arange(4, dtype=np.float32)})
    return np.asarray(found)


@pytest.mark.parametrize("change", [twice_in_the_body, twice_in_the_graph, a_node_twice, backwards, one_name])
def test_a_file_that_is_refused_for_its_form_computes_the_same_in_another(change: Change, tmp_path: Path) -> None:
    right, wrong = onnx.parser.parse_model(LOOP), onnx.parser.parse_model(LOOP)
    change(wrong)
    with pytest.raises(Exception, match=r"unique|twice|sorted|multiple|same node name"):
        answer(wrong)
    onnx.save(right, tmp_path / "right.onnx")
    onnx.save(wrong, tmp_path / "wrong.onnx")
    assert make_well_formed(wrong)
    np.testing.assert_array_equal(answer(wrong), answer(right))
    assert not make_well_formed(wrong)

    done = conrepair.repair(
        tmp_path / "right.onnx", tmp_path / "wrong.onnx", output=tmp_path / "out", in_process=True
    )
    assert done.mended
    assert done.exit_code == 0
    np.testing.assert_array_equal(answer(onnx.load(tmp_path / "out" / "repaired.onnx")), answer(right))
    assert done.about.target.path == str(tmp_path / "wrong.onnx")
    with pytest.raises(ConrepairError, match=r"`conrepair repair SOURCE wrong.onnx` writes a copy"):
        conrepair.localize(tmp_path / "right.onnx", tmp_path / "wrong.onnx", in_process=True)


def test_what_is_wrong_besides_is_repaired_in_the_copy(tmp_path: Path) -> None:
    right, wrong = onnx.parser.parse_model(LOOP), onnx.parser.parse_model(LOOP.replace("5, 6, 7, 8", "5, 6, 7, 9"))
    twice_in_the_body(wrong)
    onnx.save(right, tmp_path / "right.onnx")
    onnx.save(wrong, tmp_path / "wrong.onnx")
    done = conrepair.repair(
        tmp_path / "right.onnx", tmp_path / "wrong.onnx", output=tmp_path / "out", in_process=True
    )
    assert done.mended
    assert done.result is not None
    assert len(done.result.edits) == 2
    assert done.result.patch is None, "it would be for a file that nobody has"
    np.testing.assert_allclose(answer(onnx.load(tmp_path / "out" / "repaired.onnx")), answer(right), rtol=1e-6)


def test_of_two_that_differ_none_is_taken(tmp_path: Path) -> None:
    wrong = onnx.parser.parse_model(LOOP)
    body(wrong).initializer.append(numpy_helper.from_array(np.zeros(4, np.float32), "c"))
    with pytest.raises(
        ModelLoadError, match=r"the body of Loop `z` defines `c` twice.*begins 1, 0.5, 2.*begins 0, 0, 0"
    ):
        make_well_formed(wrong)
    onnx.save(onnx.parser.parse_model(LOOP), tmp_path / "right.onnx")
    onnx.save(wrong, tmp_path / "wrong.onnx")
    with pytest.raises(ModelLoadError, match=r"nothing says which"):
        conrepair.repair(tmp_path / "right.onnx", tmp_path / "wrong.onnx", in_process=True)


def test_onnx_own_networks_stay_as_they_are() -> None:
    for name, case in node_cases(expanded=True).items():
        assert make_well_formed(case.model) == (), name


def test_a_file_that_is_cut_off_is_said_to_be(tmp_path: Path) -> None:
    onnx.save(onnx.parser.parse_model(LOOP), tmp_path / "right.onnx")
    (tmp_path / "wrong.onnx").write_bytes((tmp_path / "right.onnx").read_bytes()[:-20])
    with pytest.raises(ConrepairError, match=r"wrong.onnx can't be loaded as an ONNX model"):
        conrepair.repair(tmp_path / "right.onnx", tmp_path / "wrong.onnx", in_process=True)
