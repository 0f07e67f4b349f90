"""The passes together: what a consumer wants comes out, it computes the same, and a pass that errs is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir
import pytest
import small_models as small
from large_model import write_large_model
from onnx import helper, numpy_helper, parser

from conrepair.formats.onnx.passes import files
from conrepair.formats.onnx.passes import normalise as module
from conrepair.formats.onnx.passes.normalise import normalise, passes_for
from conrepair.formats.onnx.passes.wants import Wants
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import ConversionError
from conrepair.ground.runtime.notes import collected_notes
from conrepair.ground.runtime.onnx_session import open_session

FLOAT = onnx.TensorProto.FLOAT


def saved(text: str, path: Path, *, functions: str = "", opset: int = 18, **constants: Any) -> Path:
    """From x (float32 [batch, 3, length]) to y."""
    proto = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : {opset}, "mine" : 1]> '
        f"g (float[batch, 3, length] x) => (float[batch, 3, length] y) {{ {text} }} {functions}"
    )
    for name, value in constants.items():
        proto.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    onnx.save(proto, path)
    return path


def run(model: onnx_ir.Model, feeds: dict[str, small.Array]) -> list[small.Array]:
    results: list[small.Array] = open_session(onnx_ir.to_proto(model).SerializeToString()).run(None, feeds)
    return results


def operators(model: onnx_ir.Model) -> list[str]:
    return [node.op_type for node in model.graph.all_nodes()]


# --- What is wanted ---


@pytest.mark.parametrize("opset", [13, 17, 18, 21])
def test_a_network_in_another_opset(tmp_path: Path, opset: int) -> None:
    path = small.onnx_convnet(tmp_path / "net.onnx", opset=18)
    before = path.read_bytes()
    model = normalise(path, Wants(lowest=opset, highest=opset))
    assert model.opset_imports[""] == opset
    feeds = {"image": small.images(3)}
    np.testing.assert_allclose(run(model, feeds)[0], open_session(path).run(None, feeds)[0], rtol=1e-5, atol=1e-6)
    assert path.read_bytes() == before


def test_nothing_that_isnt_wanted(tmp_path: Path) -> None:
    path = saved("i = Identity(x) c = Exp(w) y = Mul(i, c)", tmp_path / "net.onnx", w=np.float32(1))
    assert operators(normalise(path, Wants(fold=False))) == ["Identity", "Exp", "Mul"]
    assert operators(normalise(path, Wants())) == ["Identity", "Mul"]
    assert operators(normalise(path, Wants(identities=False))) == ["Mul"]


def test_functions_of_the_model_are_inlined(tmp_path: Path) -> None:
    functions = """
        <domain: "mine", opset_import: ["" : 18, "mine" : 1]> Twice (a) => (b) { t = mine.Same(a) b = Add(t, t) }
        <domain: "mine", opset_import: ["" : 18]> Same (a) => (b) { b = Identity(a) }
    """
    path = saved("t = mine.Twice(x) y = mine.Twice(t)", tmp_path / "net.onnx", functions=functions)
    model = normalise(path, Wants(identities=False))
    assert operators(model) == ["Add", "Add"]
    assert not model.functions


def test_a_function_of_another_opset(tmp_path: Path) -> None:
    same = '<domain: "mine", opset_import: ["" : 15]> F (a) => (b) { b = Relu(a) }'
    assert operators(normalise(saved("y = mine.F(x)", tmp_path / "a.onnx", functions=same), Wants())) == ["Relu"]
    other = '<domain: "mine", opset_import: ["" : 13]> F (a) => (b) { b = ReduceMean<axes = [1]>(a) }'
    path = saved("y = mine.F(x)", tmp_path / "b.onnx", functions=other)
    with pytest.raises(
        ConversionError, match=r"function F is written in opset 13, the model in opset 18, .*ReduceMean"
    ):
        normalise(path, Wants())


def test_declared_sizes_make_shapes_static(tmp_path: Path) -> None:
    path = saved("s = Shape(x) y = Reshape(x, s)", tmp_path / "net.onnx")
    model = normalise(path, Wants(batch=4), [TensorSpec("other", ("batch", 3, 7), "float32")])
    assert operators(model) == ["Reshape"]
    assert [list(value.shape or []) for value in [*model.graph.inputs, *model.graph.outputs]] == [[4, 3, 7]] * 2
    unfit = normalise(path, Wants(), [TensorSpec("other", ("batch", 7), "float32")])
    assert not unfit.graph.inputs[0].shape.is_static()  # type: ignore[union-attr]


def test_outputs_get_nodes_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    proto = onnx.load(saved("a, y = Split<axis = 1, num_outputs = 2>(x)", path))
    for name in ("a", "x", "w"):
        proto.graph.output.append(helper.make_tensor_value_info(name, FLOAT, None))
    proto.graph.initializer.append(numpy_helper.from_array(np.ones(2, np.float32), "w"))
    onnx.save(proto, path)
    model = normalise(path, Wants(own_outputs=True))
    assert [len(value.producer().outputs) for value in model.graph.outputs] == [1] * 4  # type: ignore[union-attr]
    assert [value.name for value in model.graph.outputs][:2] == ["y", "a"]
    data = small.vectors(2, 9).reshape(2, 3, 3)
    results = run(model, {"x": data})
    np.testing.assert_array_equal(results[0], data[:, 2:])
    np.testing.assert_array_equal(results[1], data[:, :2])
    np.testing.assert_array_equal(results[2], data)
    np.testing.assert_array_equal(results[3], np.ones(2))


def test_two_outputs_of_a_scan_stay_two(tmp_path: Path) -> None:
    """Without the Identity between them, the states of all steps would be the last one's."""
    sums = [helper.make_tensor_value_info(name, FLOAT, [3]) for name in ("state", "item", "sum", "copy")]
    body = helper.make_graph(
        [helper.make_node("Add", ["state", "item"], ["sum"]), helper.make_node("Identity", ["sum"], ["copy"])],
        "body", sums[:2], sums[2:],
    )  # fmt: skip
    graph = helper.make_graph(
        [helper.make_node("Scan", ["start", "x"], ["last", "y"], body=body, num_scan_inputs=1)],
        "g",
        [helper.make_tensor_value_info("x", FLOAT, [4, 3])],
        [helper.make_tensor_value_info("last", FLOAT, [3]), helper.make_tensor_value_info("y", FLOAT, [4, 3])],
        [numpy_helper.from_array(np.zeros(3, np.float32), "start")],
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "net.onnx"
    )
    model = normalise(tmp_path / "net.onnx", Wants(identities=False))
    data = small.vectors(4, 3)
    np.testing.assert_allclose(run(model, {"x": data})[1], np.cumsum(data, axis=0), rtol=1e-6)


# --- Verification ---


def spoil(model: onnx_ir.Model) -> None:
    (weight,) = (value for value in model.graph.initializers.values() if value.name == "w")
    weight.const_value = onnx_ir.tensor(weight.const_value.numpy() * np.float32(1.01), name="w")  # type: ignore[union-attr]


def test_a_pass_that_changes_outputs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "fold_shapes", spoil)
    path = saved("y = Mul(x, w)", tmp_path / "net.onnx", w=np.float32(2))
    with pytest.raises(ConversionError, match=r"pass fold_shapes changed .*net\.onnx .*output y differs by 0\.01"):
        normalise(path, Wants())


def test_a_pass_that_breaks_the_model_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "remove_unused", lambda model: model.graph.outputs.clear())
    path = saved("y = Mul(x, w)", tmp_path / "net.onnx", w=np.float32(2))
    with pytest.raises(ConversionError, match="pass remove_unused changed"):
        normalise(path, Wants())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("n = RandomNormalLike(x) y = Add(x, n)", "draws random numbers (RandomNormalLike)"),
        ("s = Shape(x) b = Squeeze(s, zero) y = Reshape(x, s)", "doesn't run on drawn inputs"),
        ("k = Constant<value_float = 1e12>() b = Mul(x, k) y = Sin(b)", "changes its outputs by"),
    ],
    ids=["random", "doesn't run", "chaotic"],
)
def test_what_cant_be_compared_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, reason: str
) -> None:
    def rounding(model: onnx_ir.Model) -> None:
        for node in model.graph:
            if node.op_type == "Mul":
                scale = numpy_helper.from_array(np.float32(1e12 * (1 + 1e-6)), "w2")
                node.replace_input_with(1, model.graph.register_initializer(_constant(scale)) or _last(model))

    monkeypatch.setattr(module, "remove_unused", rounding)
    with collected_notes() as notes:
        normalise(saved(text, tmp_path / "net.onnx", zero=np.array([0])), Wants(fold=False))
    assert len(notes) == 1
    assert "was not compared with the original: " in notes[0]
    assert reason in notes[0]


def _constant(proto: onnx.TensorProto) -> onnx_ir.Value:
    tensor = onnx_ir.from_proto(proto)
    return onnx_ir.Value(
        name=proto.name, type=onnx_ir.TensorType(tensor.dtype), shape=onnx_ir.Shape(tensor.shape), const_value=tensor
    )


def _last(model: onnx_ir.Model) -> onnx_ir.Value:
    return list(model.graph.initializers.values())[-1]


def test_integer_inputs_stay_within_their_table(tmp_path: Path) -> None:
    with collected_notes() as notes:
        normalise(small.onnx_text(tmp_path / "net.onnx"), Wants(highest=13))
    assert notes == []


# --- Large models ---


@pytest.mark.parametrize("limit", [100, 1 << 30], ids=["large", "small"])
def test_weights_in_other_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    """Those of large models stay in files; nothing is looked for in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(files, "_INSIDE", limit)
    path = tmp_path / "in" / "net.onnx"
    path.parent.mkdir()
    whole = small.onnx_convnet(tmp_path / "whole.onnx", opset=18)
    onnx_ir.save(onnx_ir.load(whole), path, external_data="weights")
    model = normalise(path, Wants(highest=13))
    files.save(model, tmp_path / "out.onnx")
    assert (tmp_path / "out.onnx.data").exists() == (limit == 100)
    feeds = {"image": small.images(3)}
    expected = open_session(whole).run(None, feeds)[0]
    np.testing.assert_allclose(open_session(tmp_path / "out.onnx").run(None, feeds)[0], expected, rtol=1e-5)


@pytest.mark.slow
def test_a_model_of_more_than_two_gibibytes(tmp_path: Path) -> None:
    size = write_large_model(tmp_path / "net.onnx")
    model = normalise(tmp_path / "net.onnx", Wants(highest=13))
    assert "Gelu" not in operators(model)
    files.save(model, tmp_path / "out.onnx")
    assert (tmp_path / "out.onnx.data").stat().st_size > 2**31
    data = np.ones((1, size), np.float32)
    np.testing.assert_array_equal(open_session(tmp_path / "out.onnx").run(None, {"x": data})[0], data)


def test_bodies_do_not_take_names_that_other_graphs_have(tmp_path: Path) -> None:
    """Mean2D is a value in LayerNormalization's body, and here one of a branch behind it."""
    text = """
        <ir_version: 8, opset_import: ["" : 17]>
        g (float[2, 3] x, bool c) => (float[2, 3] y) <float[3] s = {1.0, 2.0, 3.0}> {
            n = LayerNormalization (x, s)
            y = If (c) <
                then_branch = t () => (float[2, 3] Mean2D) { Mean2D = Neg (n) },
                else_branch = e () => (float[2, 3] Mean2E) { Mean2E = Identity (n) }
            >
        }
    """
    onnx.save(parser.parse_model(text), tmp_path / "net.onnx")
    model = normalise(tmp_path / "net.onnx", Wants(highest=13))
    assert "LayerNormalization" not in operators(model)


def test_the_long_name_of_the_default_domain(tmp_path: Path) -> None:
    text = '<ir_version: 8, opset_import: ["ai.onnx" : 20]> g (float[2, 3] x) => (float[2, 3] y) { y = Gelu (x) }'
    onnx.save(parser.parse_model(text), tmp_path / "net.onnx")
    model = normalise(tmp_path / "net.onnx", Wants(highest=13))
    assert "Gelu" not in operators(model)
    assert model.opset_imports[""] == 13


def test_passes_have_names() -> None:
    names = [name for name, _ in passes_for(Wants(highest=13, identities=False, own_outputs=True))]
    assert names.index("fold_constants") < names.index("lower_opset") < names.index("separate_outputs")
