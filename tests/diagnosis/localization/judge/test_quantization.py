"""What bit widths explain of a quantized target, and what they don't."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import quantized_networks as networks
from onnx import numpy_helper
from onnx_networks import drawn, written
from quantized_faults import in_eight_bits
from saturating import exact_products
from small_models import model_of

from benchmarks.faults.steps import insert
from conrepair.diagnosis.localization.align.layout import layouts
from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.judge.quantization import (
    QuantizationErrors,
    _quantizes_activations,
    beyond_drawn,
    ranges_of,
    rounding_error,
)
from conrepair.diagnosis.localization.models import localize_models
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.result import Localization
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.diagnosis.localization.run.measurement import Cut, CutOff
from conrepair.diagnosis.localization.run.reference import RoundingFloor
from conrepair.diagnosis.repairs.options import RepairOptions
from conrepair.diagnosis.repairs.repair import repair_models
from conrepair.formats.converters.all_converters import converter
from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.data.feeds import DataReference
from conrepair.ground.data.tensor_spec import Quantization
from conrepair.ground.graph.layer_graph import LayerGraph, Node, Parameter, Tensor
from conrepair.ground.runtime.files.whole import sha256_of
from conrepair.verdicts.judging.numbers import DISTURBANCE

_WORDS, _COUNT = 40, 16
_TEXT = """small (int64[batch, 5] x) => (float[batch, 8] y) {
    e = Gather (table, x)
    p = Add (e, places)
    h = MatMul (p, w)
    r = Relu (h)
    m = ReduceMean <axes = [1], keepdims = 0> (r)
    y = MatMul (m, v)
}"""


@pytest.fixture
def models(tmp_path: Path) -> tuple[Model, Model]:
    """A network with an embedding, and its copy with weights, and the table, of eight bits."""
    weights = {
        "table": drawn(_WORDS, 16),
        "w": drawn(16, 32, seed=1),
        "v": drawn(32, 8, seed=2),
        "places": drawn(5, 16, seed=3),
    }
    right = model_of("onnx", written(tmp_path / "right.onnx", _TEXT, weights))
    step = converter("onnx-quantize-dynamic")
    (tmp_path / "made").mkdir()
    path = step.convert(right, tmp_path / "made", step.complete({}))
    return right, model_of("onnx", tmp_path / "made" / path)


def located(right: Model, target: Model, folder: Path) -> Localization:
    path = folder / "data.npz"
    np.savez(path, x=np.random.default_rng(0).integers(0, _WORDS, (_COUNT, 5)))
    data = DataReference("tensors", _COUNT, str(path), sha256_of(path))
    sides = (FedModel(item, framework("onnx").describe(item).inputs, data, None) for item in (right, target))
    return localize_models(*sides, folder / "work", Options(samples=_COUNT, batch_size=4, quantized=True))


def test_what_is_gathered_from_a_quantized_table_is_meant_to_be_in_few_bits(
    models: tuple[Model, Model], tmp_path: Path
) -> None:
    assert any("DequantizeLinear" in node.op for node in open_editor(models[1]).graph.nodes)
    assert not located(*models, tmp_path).faults


@pytest.mark.parametrize("step", [0.1, 0.02])
def test_an_activation_in_few_bits_is_not_where_layers_read_real_numbers(
    models: tuple[Model, Model], tmp_path: Path, step: float
) -> None:
    editor = open_editor(models[1])
    scale = [np.array(step, np.float32), np.array(0, np.int8)]
    insert(editor, "r", [("QuantizeLinear", {}, scale), ("DequantizeLinear", {}, scale)], "stored")
    (fault,) = located(models[0], editor.save(tmp_path, "wrong"), tmp_path).faults
    assert any("stored" in name for name in fault.target_layers)


@exact_products
@pytest.mark.parametrize("factor", [-1.0, 0.1])
def test_behind_a_fault_quantized_layers_are_proven_right(tmp_path: Path, factor: float) -> None:
    """No values are near the source's there; fed with the source's, each layer's are."""
    right = networks.source(tmp_path)
    made = networks.converted(right, "onnx-quantize-dynamic", tmp_path / "made")
    editor = open_editor(made)
    insert(editor, "b", [("Mul", {}, [np.array(factor, np.float32)])], "scaled")
    sides = (networks.subject(item, tmp_path) for item in (right, editor.save(tmp_path, "wrong")))
    found = localize_models(*sides, tmp_path / "work", Options(samples=8, batch_size=4, quantized=True))
    (row,) = [row for row in found.layers if row.guilty]
    assert row.source_tensor == "c"
    assert {"k", "y"} <= {row.source_tensor for row in found.layers}
    assert any("scaled" in name for name in found.faults[0].target_layers)


def test_turns_of_a_loop_are_worth_as_much_as_one() -> None:
    table = Parameter("w", (4, 4), "int8", lambda: np.eye(4, dtype=np.float32), 8, (1 / 127,))
    names = [f"h{turn}" for turn in range(9)]
    tensors = {name: Tensor(name, (2, 4), "float32") for name in names}

    def expected(turns: int) -> float:
        row = [Node(b, b, "MatMul", "", (a,), (b,), {}, {"weight": table}) for a, b in itertools.pairwise(names)]
        graph = LayerGraph(("h0",), (names[turns],), tensors, tuple(row[:turns]))
        cut = Cut(Pair("y", names[turns], layouts((2, 4), (2, 4))[0], 1.0, ""))
        cut.introduced.add(np.ones((2, 4), np.float32), np.ones((2, 4), np.float32))
        return QuantizationErrors(graph, [cut]).expected(cut, graph.nodes, ("h0",))

    assert expected(1) == pytest.approx(expected(8))


@pytest.mark.parametrize(
    ("factor", "inputs_drawn", "is_guilty"),
    [(1.0, False, False), (1.5, False, True), (1.5, True, False), (4.0, True, True)],
)
def test_values_beyond_what_calibration_has_seen(
    tmp_path: Path, factor: float, inputs_drawn: bool, is_guilty: bool
) -> None:
    """Drawn inputs may have somewhat larger values than those that a target was calibrated on."""
    right = networks.source(tmp_path)
    target = networks.converted(right, "onnx-quantize-static", tmp_path / "qdq")
    path = tmp_path / "larger.npz"
    rows = np.random.default_rng(3).normal(size=(networks.COUNT, 3, 12, 12)).astype(np.float32)
    np.savez(path, x=rows * np.float32(factor))
    data = DataReference("tensors", networks.COUNT, str(path), sha256_of(path))
    sides = (FedModel(item, framework("onnx").describe(item).inputs, data, None) for item in (right, target))
    options = Options(samples=_COUNT, batch_size=8, quantized=True, drawn=inputs_drawn)
    assert bool(localize_models(*sides, tmp_path / "work", options).faults) == is_guilty


WHOLE = Parameter("w", (4, 4), "int8", lambda: np.ones((4, 4)))
EIGHT = Parameter("v", (4, 4), "int8", lambda: np.ones((4, 4)), 8, (0.5,))


@pytest.mark.parametrize(
    ("reads", "meant"),
    [("", True), ("r", False), ("q", True), ("d", True), ("rq", True), ("rrq", False), ("rqd", True)],
)
def test_activations_are_quantized_where_half_of_the_layers_read_such(reads: str, meant: bool) -> None:
    tensors = {name: Tensor(name, (4, 4), "float32") for name in "rdx"}
    tensors["q"] = Tensor("q", (4, 4), "int8", Quantization(0.1, 0))
    nodes = [Node("d", "d", "DequantizeLinear", "", ("q",), ("d",))]
    for place, name in enumerate(reads):
        weight = {"weight": WHOLE if place % 2 else EIGHT}
        nodes.append(Node(f"m{place}", "", "MatMul", "", (name,), (f"y{place}",), {}, weight))
    nodes.append(
        Node(
            "plain",
            "",
            "MatMul",
            "",
            ("r",),
            ("y",),
            {},
            {"weight": Parameter("p", (4, 4), "float32", lambda: np.ones(4))},
        )
    )
    assert _quantizes_activations(LayerGraph(("r", "q"), (), tensors, tuple(nodes))) is meant


def of_integers(most: int) -> Parameter:
    return Parameter("v", (4, 4), "int8", lambda: np.linspace(-most, most, 16).reshape(4, 4), 8, (1.0,))


@pytest.mark.parametrize(
    ("parameter", "values", "step"),
    [
        (EIGHT, np.full((4, 4), 254.0), 0.5),
        (EIGHT, np.full((4, 4), 12.7), 0.1),  # finer steps would do
        (Parameter("v", (2,), "int32", lambda: np.ones(2), 32, (0.5,)), np.full(2, 1.0), 0.5),  # a bias's say nothing
        (Parameter("v", (2,), "int16", lambda: np.ones(2), 16, (0.5,)), np.full(2, 32.767), 1e-3),
        (Parameter("v", (2,), "int8", lambda: np.ones(2), 8, (3.0, 4.0)), np.full(2, 1e6), 12.5**0.5),
        (WHOLE, np.full((4, 4), 100.0), 100 / 127),
        (WHOLE, np.full((4, 4), 1000.0), 1.0),
        (Parameter("b", (4,), "int8", lambda: np.ones(4)), np.full(4, 100.0), 0.0),
        (Parameter("w", (4, 4), "float32", lambda: np.ones(4)), np.full(4, 100.0), 0.0),
        (of_integers(64), np.full((4, 4), 64.0), 1.0),  # a bit is left open
        (of_integers(127), np.full((4, 4), 64.0), 64 / 127),
        (of_integers(30), np.full((4, 4), 30.0), 30 / 127),  # a scale for larger numbers
        (EIGHT, np.zeros((4, 4)), 0.0),
        (EIGHT, np.zeros((0, 4)), 0.0),
    ],
)
def test_what_the_bits_of_a_weight_explain(parameter: Parameter, values: np.ndarray, step: float) -> None:
    size = float(np.abs(values).max(initial=0.0)) or 1.0
    assert rounding_error(parameter, values) == pytest.approx(step / 12**0.5 / size)


@pytest.mark.parametrize(
    ("op", "role"), [("Conv", "bias"), ("MatMul", "bias"), ("Add", "operand"), ("Mul", "operand")]
)
def test_what_is_added_is_rounded_as_a_share_of_the_sum(op: str, role: str) -> None:
    """However small a bias is itself: its steps are those of the product."""
    small = Parameter("b", (4,), "int32", lambda: np.full(4, 1e-6), 32, (1e-4,))
    tensors = {name: Tensor(name, (4, 4), "float32") for name in "ry"}
    node = Node("n", "n", op, "", ("r",), ("y",), {}, {role: small})
    cut = Cut(Pair("s", "y", layouts((4, 4), (4, 4))[0], 1.0, ""))
    cut.introduced.add(np.full((4, 4), 2.0), np.full((4, 4), 2.0))
    errors = QuantizationErrors(LayerGraph(("r",), ("y",), tensors, (node,)), [cut])
    assert errors.of_weights(cut, [node]) == pytest.approx(1e-4 / 12**0.5 / (1e-6 if op == "Mul" else 2.0))


def test_ranges_are_those_of_the_same_values() -> None:
    tensors = {name: Tensor(name, (4, 4), "float32") for name in "rdyz"}
    tensors["q"] = Tensor("q", (4, 4), "int8", Quantization(0.5, 1))
    nodes = (
        Node("quantize", "", "QuantizeLinear", "", ("r",), ("q",)),
        Node("dequantize", "", "DequantizeLinear", "", ("q",), ("d",)),
        Node("relu", "", "Relu", "", ("q",), ("y",)),
    )
    low, high = tensors["q"].stored or (0.0, 0.0)
    assert (low, high) == (-129 * 0.5, 126 * 0.5)
    assert ranges_of(LayerGraph(("r",), ("y",), tensors, nodes)) == dict.fromkeys("qdr", (low, high))


@pytest.mark.parametrize(
    ("beyond", "inputs_drawn", "explained"),
    [
        (1.0, False, True),
        (1.25, False, True),
        (1.3, False, False),
        (1.3, True, True),
        (2.0, True, True),
        (2.1, True, False),
    ],
)
def test_somewhat_larger_values_than_calibration_met_are_cut_off(
    beyond: float, inputs_drawn: bool, explained: bool
) -> None:
    """The range is -2 to 2, in steps of 4 / 255; what a range doesn't hold is half of all."""
    step = 4 / 255
    tensors = {"q": Tensor("q", (4, 4), "uint8", Quantization(step, 128)), "r": Tensor("r", (4, 4), "float32")}
    graph = LayerGraph(("r",), ("q",), tensors, (Node("n", "n", "QuantizeLinear", "", ("r",), ("q",)),))
    values = np.full((4, 4), 2.0, np.float32)
    cut = Cut(
        Pair("s", "q", layouts((4, 4), (4, 4))[0], 1.0, ""),
        cut_off=CutOff(-2.0, 2.0, beyond, _lost=1.0, _squares=4.0),
    )
    cut.introduced.add(values, values)
    found = QuantizationErrors(graph, [cut], drawn=inputs_drawn).expected(cut, (), ("q",))
    rounding = step / 12**0.5 / 2.0
    assert found == pytest.approx(np.hypot(rounding, 0.5 if explained else 0.0), rel=0.02)
    cut.floor = RoundingFloor(99 * DISTURBANCE, carried=3 * DISTURBANCE)  # what a norm hides is judged by nobody
    amplified = QuantizationErrors(graph, [cut], drawn=inputs_drawn).expected(cut, (), ("q",))
    assert amplified == pytest.approx(3 * found)


@pytest.mark.parametrize(
    ("beyond", "limit"),
    [
        ([1.1, 2.1, 2.5, 2.3, 3.3], 4.6),  # uniform pictures through a network that was calibrated on photos
        ([1.0, 1.0, 1.1, 3.0], 2.1),  # one scale is wrong
        ([1.0, 0.9, 1.0, 9.0], 2.0),
        ([50.0] * 5, 8.0),  # calibrated on other inputs by far
        ([3.0, 3.0], 2.0),  # too few to say
    ],
)
def test_most_tensors_say_how_far_drawn_inputs_are_from_those_of_calibration(
    beyond: list[float], limit: float
) -> None:
    layout = layouts((4, 4), (4, 4))[0]
    cuts = [Cut(Pair("s", "q", layout, 1.0, ""), cut_off=CutOff(-1.0, 1.0, item)) for item in beyond]
    without = Cut(Pair("t", "r", layout, 1.0, ""))
    assert beyond_drawn([*cuts, without]) == pytest.approx(limit)


@pytest.mark.parametrize("shared", [False, True])
def test_steps_for_much_larger_values_are_not_explained(shared: bool) -> None:
    """A tensor that can't be observed says nothing of others that are quantized alike."""
    alike = Quantization(1.0, 128)
    tensors = {"q": Tensor("q", (4, 4), "uint8", alike), "r": Tensor("r", (4, 4), "float32")}
    if shared:
        tensors["within"] = Tensor("within", (4, 4), "uint8", alike, observable=False)
    graph = LayerGraph(("r",), ("q",), tensors, (Node("n", "n", "Relu", "", ("r",), ("q",)),))
    cut = Cut(Pair("s", "q", layouts((4, 4), (4, 4))[0], 1.0, ""))
    cut.introduced.add(np.full((4, 4), 0.01), np.full((4, 4), 0.01))
    found = QuantizationErrors(graph, [cut]).expected(cut, (), ("q",))
    assert found == pytest.approx(1 / 128 / 12**0.5)


def test_between_the_parts_of_a_fused_operator_nothing_is_rounded() -> None:
    """A tensor that can't be observed has the steps of what's behind it, which say nothing of its own values."""
    steps = Quantization(0.5, 0)
    tensors = {"x": Tensor("x", (4, 4), "float32"), "inner": Tensor("inner", (4, 4), "int8", steps, observable=False)}
    tensors["y"] = Tensor("y", (4, 4), "int8", steps)
    nodes = (Node("s", "s", "Sub", "", ("x",), ("inner",)), Node("q", "q", "Square", "", ("inner",), ("y",)))
    cut = Cut(Pair("s", "y", layouts((4, 4), (4, 4))[0], 1.0, ""))
    cut.introduced.add(np.full((4, 4), 63.5), np.full((4, 4), 63.5))
    found = QuantizationErrors(LayerGraph(("x",), ("y",), tensors, nodes), [cut])
    assert found.expected(cut, nodes, ("x",)) == pytest.approx(0.5 / 12**0.5 / 63.5, rel=0.02)


def test_a_range_that_is_measured_as_it_runs_has_half_as_many_steps_each_way() -> None:
    tensors = {name: Tensor(name, (4, 4), "float32") for name in "ry"}
    node = Node("n", "n", "DynamicQuantizeLinear", "", ("r",), ("y",))
    graph = LayerGraph(("r",), ("y",), tensors, (node,))
    values = np.full((4, 4), 2.0, np.float32)
    values[0, 0] = 8.0
    read, end = (Cut(Pair("s", name, layouts((4, 4), (4, 4))[0], 1.0, "")) for name in "ry")
    read.introduced.add(values, values)
    size = float(np.sqrt(np.mean(values**2)))
    found = QuantizationErrors(graph, [read, end]).expected(end, [node], ())
    assert found == pytest.approx(8.0 / 127 / 12**0.5 / size)
    assert QuantizationErrors(graph, [end]).expected(end, [node], ()) == 0.0, "nothing is known"


@pytest.mark.parametrize(
    ("op", "reads", "weight", "runs", "stored"),
    [
        ("MatMul", "r", EIGHT, True, True),
        ("MatMul", "q", EIGHT, False, True),  # it's in few bits already
        ("MatMul", "m", EIGHT, False, True),  # likewise, by what stands in front
        ("MatMul", "r", Parameter("p", (4, 4), "float32", lambda: np.ones(4)), False, False),
        ("Mul", "r", EIGHT, False, True),
    ],
)
def test_layers_that_make_integers_of_what_they_read(
    op: str, reads: str, weight: Parameter, runs: bool, stored: bool
) -> None:
    """Those with weights in few bits do, where they read real numbers."""
    tensors = {name: Tensor(name, (4, 4), "float32") for name in "rmdy"}
    tensors["q"] = Tensor("q", (4, 4), "int8", Quantization(0.1, 0))
    before = (
        Node("m", "m", "DynamicQuantizeLinear", "", ("r",), ("m",)),
        Node("d", "d", "DequantizeLinear", "", ("q",), ("d",)),
    )
    node = Node("n", "n", op, "", (reads,), ("y",), {}, {"weight": weight})
    graph = LayerGraph(("r", "q"), ("y",), tensors, (*before, node))
    end = Cut(Pair("s", "y", layouts((4, 4), (4, 4))[0], 1.0, ""))
    end.introduced.add(np.full((4, 4), 2.0), np.full((4, 4), 2.0))
    found = QuantizationErrors(graph, [end]).expected(end, [node], ())
    step = 1 / 127 / 12**0.5  # of ones, and of twos
    assert found == pytest.approx(step * np.sqrt(int(runs) + int(stored)))


_FORMS: dict[str, tuple[str, dict[str, Any]]] = {
    "all in int16": ("QInt16", {"ActivationSymmetric": True, "WeightSymmetric": True}),
    "weights quantized as it runs": ("QInt8", {"AddQDQPairToWeight": True}),
    "weights in int16 quantized as it runs": ("QInt16", {"AddQDQPairToWeight": True, "ActivationSymmetric": True}),
    "ONNX Runtime's own operators": ("QInt8", {"UseQDQContribOps": True}),
    "biases as real numbers": ("QInt8", {"QuantizeBias": False}),
}


def in_integers(folder: Path, form: str) -> tuple[Model, Model]:
    kind, extra = _FORMS[form]
    right = networks.source(folder)
    rows = np.random.default_rng(3).normal(size=(networks.COUNT, 3, 12, 12)).astype(np.float32)
    path = in_eight_bits(Path(right.path), folder / "target.onnx", rows, kind=kind, **extra)
    return right, model_of("onnx", path)


@pytest.mark.parametrize("form", _FORMS)
def test_every_form_of_a_right_quantization_is_one(form: str, tmp_path: Path) -> None:
    right, target = in_integers(tmp_path, form)
    assert framework("onnx").describe(target).quantized
    sides = tuple(networks.subject(item, tmp_path) for item in (right, target))
    found = localize_models(*sides, tmp_path / "work", Options(samples=8, batch_size=4, quantized=True))
    assert (str(found.verdict), found.faults) == ("quantized", ())


@pytest.mark.parametrize("form", ["all in int16", "biases as real numbers"])
def test_layers_of_real_numbers_owe_nothing_to_what_they_read(form: str, tmp_path: Path) -> None:
    """What they're fed was rounded by what quantizes it; they round nothing as they run."""
    right, target = in_integers(tmp_path, form)
    sides = tuple(networks.subject(item, tmp_path) for item in (right, target))
    found = localize_models(*sides, tmp_path / "work", Options(samples=8, batch_size=4, quantized=True))
    (row,) = [row for row in found.layers if row.source_tensor == "k"]
    assert row.noise_floor < (1e-4 if "16" in form else 1e-2)


def with_a_bias_cut_off(folder: Path, form: str, bits: int) -> tuple[Model, Model]:
    """A layer with weights so small that the steps of its bias, the product of both scales, hold too little."""
    right, target = in_integers(folder, form)
    model, proto = onnx.load(right.path), onnx.load(target.path)
    numbers = {item.name: numpy_helper.to_array(item).copy() for item in model.graph.initializer}
    numbers["w1"][:4] *= np.float32(1e-6 if bits == 16 else 1e-10)
    held = {item.name: item for item in proto.graph.initializer}
    made = {name: node for node in proto.graph.node for name in node.output}
    (layer,) = [node for node in proto.graph.node if node.op_type == "Conv" and "w1" in node.input[1]]
    data, weight, bias = (made[name] for name in layer.input)
    most = 2 ** (bits - 1) - 1
    scales = np.abs(numbers["w1"]).max(axis=(1, 2, 3)) / np.float32(most)
    steps = float(numpy_helper.to_array(held[data.input[1]])) * scales.astype(np.float64)
    kinds = {8: np.int8, 16: np.int16}
    changed = {
        weight.input[0]: np.rint(numbers["w1"] / scales.reshape(-1, 1, 1, 1)).astype(kinds[bits]),
        weight.input[1]: scales,
        weight.input[2]: np.zeros(16, kinds[bits]),
        bias.input[0]: np.clip(np.rint(numbers["b1"] / steps), -(2**31), 2**31 - 1).astype(np.int32),
        bias.input[1]: steps.astype(np.float32),
        bias.input[2]: np.zeros(16, np.int32),
    }
    for name, array in changed.items():
        held[name].CopyFrom(numpy_helper.from_array(array, name))
    for node in (weight, bias):
        node.attribute.append(onnx.helper.make_attribute("axis", 0))
    for item in model.graph.initializer:
        item.CopyFrom(numpy_helper.from_array(numbers[item.name], item.name))
    onnx.save(model, folder / "small.onnx")
    onnx.save(proto, folder / "cut.onnx")
    return model_of("onnx", folder / "small.onnx"), model_of("onnx", folder / "cut.onnx")


@pytest.mark.parametrize(("form", "bits"), [("all in int16", 16), ("ONNX Runtime's own operators", 8)])
def test_a_bias_beyond_the_integers_that_hold_it_is_named_alone(form: str, bits: int, tmp_path: Path) -> None:
    right, target = with_a_bias_cut_off(tmp_path, form, bits)
    sides = tuple(networks.subject(item, tmp_path) for item in (right, target))
    found = localize_models(*sides, tmp_path / "work", Options(samples=8, batch_size=4, quantized=True))
    (fault,) = found.faults
    assert "clipped at the bounds of int32 in " in fault.words
    assert "holds values up to" in fault.words


_DETECTOR = """detector (float[batch, 3, 12, 12] x) => (float[batch, 6, 144] y) {
    a = Conv <pads = [1, 1, 1, 1]> (x, w0, b0)
    b = Relu (a)
    c = Conv (b, w1)
    d = Sigmoid (c)
    e = Reshape (d, shape)
    f = Mul (e, size)
    g = Conv (b, w2)
    h = Sigmoid (g)
    i = Reshape (h, shape)
    y = Concat <axis = 1> (f, i)
}"""


@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
def test_scores_beside_boxes_are_lost_at_the_concat_and_repaired(form: str, tmp_path: Path) -> None:
    weights = {"w0": drawn(16, 3, 3, 3, scale=0.3), "b0": drawn(16, seed=1), "w1": drawn(4, 16, 1, 1, seed=2)}
    weights |= {"w2": drawn(2, 16, 1, 1, seed=3), "size": np.float32(640), "shape": np.array([0, 0, -1])}
    right = model_of("onnx", written(tmp_path / "right.onnx", _DETECTOR, weights))
    rows = np.random.default_rng(3).normal(size=(networks.COUNT, 3, 12, 12)).astype(np.float32)
    target = model_of("onnx", in_eight_bits(Path(right.path), tmp_path / "int8.onnx", rows, form))
    left, given = (networks.subject(item, tmp_path) for item in (right, target))
    options = Options(samples=8, batch_size=8, quantized=True)
    result = repair_models(left, given, tmp_path / "out", RepairOptions(options, seconds=60, unseen=16))
    (fault,) = result.before.faults
    assert "Concat" in fault.target_layers[0] or fault.target_layers[0].startswith("y")
    assert "4 and 5 along axis 1 of `y` became constant: the quantization step is 2.5" in fault.evidence[0]
    assert not result.after.faults
