"""Models whose layers are all right, and that give something else: a class more, an output less."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import flatbuffers
import keras
import numpy as np
import onnx
import pytest
from ai_edge_litert import schema_py_generated as schema
from crossed import slower
from localized import CLASSES, Variant
from onnx_networks import written

from conrepair.diagnosis.localization.align.layout import Layout
from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.diagnosis.repairs.edits import ExchangeOutputs, MoveOutputs
from conrepair.diagnosis.repairs.options import RepairOptions
from conrepair.diagnosis.repairs.outcomes import PATCH
from conrepair.diagnosis.repairs.patch import read_patch
from conrepair.diagnosis.repairs.proposals.ends import end_proposals
from conrepair.diagnosis.repairs.repair import repair_models
from conrepair.diagnosis.repairs.result import RepairResult
from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.editing.operation import Operation
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.data.feeds import DataReference
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.runtime.files.whole import sha256_of
from conrepair.verdicts.evaluate.verdict import Verdict
from tests.support.native_models import keras_file, tflite_file, torch_file
from tests.support.small_models import model_of


def repaired(source: Model, target: Model, folder: Path) -> RepairResult:
    described = [framework(model.framework).describe(model).inputs for model in (source, target)]
    data = DataReference("synthetic", 12, samples=described[0])
    sides = [FedModel(model, inputs, data, None) for model, inputs in zip((source, target), described, strict=True)]
    return repair_models(*sides, folder / "out", RepairOptions(Options(samples=4, batch_size=4), 60, unseen=8))


@pytest.mark.parametrize(
    ("kind", "where"),
    [
        *itertools.product(["onnx", "tflite", "torch"], ["first", "last"]),
        ("keras", "last"),
        *slower(("keras", "first")),
    ],
)
def test_a_class_more_is_cut_off(kind: str, where: str, tmp_path: Path) -> None:
    files = {"tflite": tflite_file, "keras": keras_file, "torch": torch_file}
    source = (
        files[kind]("image", tmp_path) if kind in files else Variant(size=(12, 12)).write(tmp_path / "right.onnx")
    )
    editor = open_editor(source)
    scores = editor.graph.outputs[0]
    pads = (0, 1, 0, 0) if where == "first" else (0, 0, 0, 1)
    editor.graft(
        scores, [Operation("Pad", (scores,), {"pads": pads, "mode": "constant", "value": 0.25})], "background"
    )
    result = repaired(source, editor.save(tmp_path, "more"), tmp_path)
    assert result.mended
    assert len(result.edits) == 1
    assert result.edits[0].startswith("Slice is put behind")
    assert result.unseen_after.error < 1e-5
    assert (result.model or source).framework == source.framework


def test_outputs_that_are_exchanged(tmp_path: Path) -> None:
    two = ", ".join(f"float[batch, {CLASSES}] {name}" for name in ("scores", "y"))
    source = Variant(size=(12, 12), outputs=two).write(tmp_path / "right.onnx")
    exchanged = Variant(size=(12, 12), scores="y", after="scores = Softmax <axis = 1> (y)", outputs=two)
    result = repaired(source, exchanged.write(tmp_path / "wrong.onnx"), tmp_path)
    assert result.mended
    assert read_patch(tmp_path / "out" / PATCH)[0].edits == (ExchangeOutputs(0, 1),)
    assert result.unseen_after.error == 0 < result.unseen_before.error
    assert result.model is not None
    assert [spec.name for spec in framework("onnx").describe(result.model).outputs] == ["scores", "y"]


def onnx_in_another_order(folder: Path) -> tuple[Model, Model]:
    two = ", ".join(f"float[batch, {CLASSES}] {name}" for name in ("scores", "y"))
    source = Variant(size=(12, 12), outputs=two).write(folder / "right.onnx")
    proto = onnx.load(source.path)
    proto.graph.output.reverse()
    onnx.save(proto, folder / "wrong.onnx")
    return source, model_of("onnx", folder / "wrong.onnx")


def tflite_in_another_order(folder: Path) -> tuple[Model, Model]:
    source = tflite_file("pair", folder)
    model = schema.ModelT.InitFromPackedBuf(Path(source.path).read_bytes(), 0)
    outputs = list(model.subgraphs[0].outputs)
    model.subgraphs[0].outputs = outputs[::-1]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    path = folder / "wrong.tflite"
    path.write_bytes(bytes(builder.Output()))
    return source, model_of("tflite", path)


@pytest.mark.parametrize("make", [onnx_in_another_order, tflite_in_another_order])
def test_outputs_in_another_order(make: Callable[[Path], tuple[Model, Model]], tmp_path: Path) -> None:
    source, target = make(tmp_path)
    wanted, given = ([spec.name for spec in framework(m.framework).describe(m).outputs] for m in (source, target))
    result = repaired(source, target, tmp_path)
    if wanted == given:  # the runtime takes them in the signature's order, whatever the graph's is
        assert result.before.verdict is Verdict.EQUIVALENT
        return
    assert result.mended
    assert read_patch(tmp_path / "out" / PATCH)[0].edits == (MoveOutputs(0, 1),)
    assert result.model is not None
    assert [spec.name for spec in framework(source.framework).describe(result.model).outputs] == wanted


def test_a_lost_output_is_given_again(tmp_path: Path) -> None:
    target = Variant(size=(12, 12)).write(tmp_path / "target.onnx")
    proto = onnx.load(target.path)
    inner = next(node for node in proto.graph.node if node.op_type == "Relu").output[0]
    described = onnx.shape_inference.infer_shapes(proto).graph.value_info
    proto.graph.output.append(next(value for value in described if value.name == inner))
    onnx.save(proto, tmp_path / "source.onnx")
    before = sha256_of(Path(target.path))
    result = repaired(model_of("onnx", tmp_path / "source.onnx"), target, tmp_path)
    assert result.mended
    assert result.edits == (f"`{inner}` is an output",)
    assert result.model is not None
    assert [spec.name for spec in framework("onnx").describe(result.model).outputs][-1] == inner
    assert np.isfinite(result.unseen_after.error)
    assert sha256_of(Path(target.path)) == before


@pytest.mark.parametrize("file", [keras_file, torch_file, tflite_file])
def test_a_lost_output_is_given_again_in_its_own_format(file: Callable[[str, Path], Model], tmp_path: Path) -> None:
    target = file("image", tmp_path)
    editor = open_editor(target)
    editor.add_output(next(node for node in editor.graph.nodes if node.op in {"Relu", "Clip"}).outputs[0])
    result = repaired(editor.save(tmp_path, "source"), target, tmp_path)
    assert not np.isfinite(result.unseen_before.error)
    assert result.mended
    assert len(result.edits) == 1
    assert result.edits[0].endswith("is an output")
    assert result.model is not None
    assert (result.model.framework, result.delivery) == (target.framework, None)
    assert len(framework(target.framework).describe(result.model).outputs) == 2


def test_a_lost_output_of_a_layer_that_is_wrong_too(tmp_path: Path) -> None:
    """The edit in front gives what stands for it another name, which the target's own file doesn't have."""
    right, wrong = Variant(size=(12, 12)), Variant(size=(12, 12), before="t = Neg (image)", begin="t")
    target, source = wrong.write(tmp_path / "target.onnx"), right.write(tmp_path / "right.onnx")
    proto = onnx.load(source.path)
    inner = next(node for node in proto.graph.node if node.op_type == "Relu").output[0]
    described = onnx.shape_inference.infer_shapes(proto).graph.value_info
    proto.graph.output.append(next(value for value in described if value.name == inner))
    onnx.save(proto, tmp_path / "source.onnx")
    result = repaired(model_of("onnx", tmp_path / "source.onnx"), target, tmp_path)
    assert result.mended
    assert len(result.edits) == 2
    assert result.unseen_after.error < 1e-5


TWO_HEADS = """two (float[n, 8, 6, 6] image) => (float[n, 5, 6, 6] scores, float[n, 4, 36] boxes)
<int64[3] flat = {0, 4, 36}> {
    shared = Relu (image)
    [one] first = Conv (shared, w)
    scores = Sigmoid (first)
    [two] second = Conv (shared, v)
    boxes = Reshape (second, flat)
}"""


@pytest.mark.parametrize("lost", ["scores", "boxes"])
def test_an_output_that_was_lost_with_what_computes_it_is_computed_again_in_its_place(
    lost: str, tmp_path: Path
) -> None:
    draw = np.random.default_rng(0).normal
    weights = {"w": draw(size=(5, 8, 1, 1)).astype(np.float32), "v": draw(size=(4, 8, 1, 1)).astype(np.float32)}
    source = model_of("onnx", written(tmp_path / "source.onnx", TWO_HEADS, weights))
    proto = onnx.load(source.path)
    for item in [output for output in proto.graph.output if output.name == lost]:
        proto.graph.output.remove(item)
    gone = {"scores": {"scores", "first"}, "boxes": {"boxes", "second"}}[lost]
    for node in [node for node in proto.graph.node if node.output[0] in gone]:
        proto.graph.node.remove(node)
    onnx.save(proto, tmp_path / "target.onnx")
    result = repaired(source, model_of("onnx", tmp_path / "target.onnx"), tmp_path)
    assert result.mended
    assert result.edits == (
        f"`{lost}` is an output, computed by Conv, {'Sigmoid' if lost == 'scores' else 'Reshape'}",
    )
    assert result.model is not None
    assert [spec.name for spec in framework("onnx").describe(result.model).outputs] == ["scores", "boxes"]
    assert result.unseen_after.error < 1e-5


@pytest.mark.parametrize("missing", ["Transpose", "Sigmoid and Transpose", "ArgMax"])
def test_what_is_missing_at_the_end_is_put_there(missing: str, tmp_path: Path) -> None:
    ends = {
        "Transpose": ("float[n, 6, 7, 5]", "y = Transpose <perm = [0, 2, 3, 1]> (c)"),
        "Sigmoid and Transpose": ("float[n, 6, 7, 5]", "s = Sigmoid (c)  y = Transpose <perm = [0, 2, 3, 1]> (s)"),
        "ArgMax": ("int64[n, 6, 7]", "y = ArgMax <axis = 1, keepdims = 0> (c)"),
        "": ("float[n, 5, 6, 7]", "y = Identity (c)"),
    }
    weights = {"w": np.random.default_rng(0).normal(size=(5, 8, 1, 1)).astype(np.float32)}
    models = []
    for end in (missing, ""):
        kind, words = ends[end]
        text = f"net (float[n, 8, 6, 7] image) => ({kind} y) {{ c = Conv (image, w)  {words} }}"
        models.append(model_of("onnx", written(tmp_path / f"{end or 'target'}.onnx", text, weights)))
    result = repaired(*models, tmp_path)
    assert result.mended
    assert all(name in " ".join(result.edits) for name in missing.split(" and "))


@pytest.mark.parametrize("wrong", [False, True])
def test_an_output_that_the_source_has_not_is_left_out(wrong: bool, tmp_path: Path) -> None:
    source = Variant(size=(12, 12)).write(tmp_path / "right.onnx")
    changes = {"before": "t = Neg (image)", "begin": "t"} if wrong else {}
    editor = open_editor(Variant(size=(12, 12), **changes).write(tmp_path / "target.onnx"))
    editor.add_output(next(node for node in editor.graph.nodes if node.op == "Relu").outputs[0])
    target = editor.save(tmp_path, "more")
    result = repaired(source, target, tmp_path)
    assert not np.isfinite(result.unseen_before.error)
    assert result.before.verdict is Verdict.FAULTY
    assert result.mended
    assert "the output 1 is removed" in result.edits
    assert len(result.edits) == (2 if wrong else 1)
    assert result.model is not None
    names = [[spec.name for spec in framework("onnx").describe(model).outputs] for model in (source, result.model)]
    assert names[0] == names[1]
    assert result.unseen_after.error < 1e-5


def test_a_transposition_that_is_lost_behind_an_input_is_put_there(tmp_path: Path) -> None:
    """All sizes are the same, so that the file runs; its format keeps inputs as they lie."""
    generator = np.random.default_rng(0)
    kernels = [generator.normal(size=(6, 6, 3, 3)).astype(np.float32) for _ in range(2)]
    pixels, answers = keras.Input((6, 6, 6)), [keras.layers.Conv2D(6, 3, padding="same") for _ in kernels]
    network = keras.Model(pixels, answers[1](keras.layers.ReLU()(answers[0](pixels))))
    for layer, kernel in zip(answers, kernels, strict=True):
        layer.set_weights([kernel.transpose(2, 3, 1, 0), np.zeros(6, np.float32)])
    network.save(tmp_path / "net.keras")
    text = """small (float[batch, 6, 6, 6] x) => (float[batch, 6, 6, 6] y) {
        c = Conv <pads = [1, 1, 1, 1]> (x, v)\n r = Relu (c)\n d = Conv <pads = [1, 1, 1, 1]> (r, w)
        y = Transpose <perm = [0, 2, 3, 1]> (d) }"""
    path = written(tmp_path / "net.onnx", text, dict(zip("vw", kernels, strict=True)))
    result = repaired(model_of("keras", tmp_path / "net.keras"), model_of("onnx", path), tmp_path)
    assert result.after.verdict.is_right
    assert tuple(result.edits) == ("Transpose [0, 3, 1, 2] is put behind `x`",)


@pytest.mark.parametrize(
    ("shape", "axes", "perm"),
    [((4, 8, 8, 4), (0, 3, 2, 1), (0, 2, 1, 3)), ((4, 4, 8, 8), (0, 1, 3, 2), (0, 1, 3, 2))],
)
def test_an_input_is_turned_from_the_order_that_it_is_fed_in(
    shape: tuple[int, ...], axes: tuple[int, ...], perm: tuple[int, ...]
) -> None:
    """Pictures that lie on their side, for a target with its channels last or first."""
    fault = SimpleNamespace(kind=Kind.INPUT, at_input=True, source_tensor="image", target_tensor="x", differences=())
    pair = Pair("image", "x", Layout((4, 4, 8, 8), (4, 4, 8, 8), axes, shape), 1.0, "")
    found = SimpleNamespace(
        result=SimpleNamespace(faults=(fault,)), alignment=SimpleNamespace(pairs=(pair,)), guilty=()
    )
    nothing = SimpleNamespace(inputs=(), outputs=(), tensors={}, nodes=())
    proposed = end_proposals(found, found, SimpleNamespace(graph=nothing), nothing, lambda _: (0.0, 1.0))
    assert [edit.operations for (edit,) in proposed] == [(Operation("Transpose", ("x",), {"perm": perm}),)]
