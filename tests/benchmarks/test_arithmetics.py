"""Devices' arithmetics are what they're called, faults are where they're said to be, cases are counted rightly."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from benchmarks.arithmetics import trial as trial_module
from benchmarks.arithmetics.cases import RIGHT, Case, networks, plan
from benchmarks.arithmetics.devices import Missing, opened
from benchmarks.arithmetics.faults import FAULTS, faulty
from benchmarks.arithmetics.networks import Network
from benchmarks.arithmetics.prepared import Prepared, part_exactly, relative
from benchmarks.arithmetics.rounding import ARITHMETICS, Arithmetic, on_grid
from benchmarks.arithmetics.simulated import simulated
from benchmarks.arithmetics.tables import OUTPUTS, RECORDED, is_wrong, sums, tables
from benchmarks.arithmetics.trial import Trial
from benchmarks.common.models import DEVELOPMENT_SEEDS, REPORTING_SEEDS

F32, I64 = TensorProto.FLOAT, TensorProto.INT64
DRAW = np.random.default_rng(3)
Arrays = dict[str, Any]


def _model(nodes: list[onnx.NodeProto], constants: Arrays, kind: int = F32) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", kind, None)],
        [helper.make_tensor_value_info("y", kind, None)],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _array(*shape: int) -> Any:
    return DRAW.standard_normal(shape).astype(np.float32)


def _run(model: onnx.ModelProto, x: Any) -> Any:
    return onnxruntime.InferenceSession(model.SerializeToString()).run(["y"], {"x": x})[0]


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("flushed", [1e-39, -1e-39, 2.0**-126, 1.0], [0, -0.0, 2.0**-126, 1.0]),
        ("float16", [1 + 2.0**-11, 1 + 3 * 2.0**-11, 1e6], [1, 1 + 2 * 2.0**-10, np.inf]),
        ("bfloat16", [1 + 2.0**-8, 1 + 3 * 2.0**-8, 1e6], [1, 1 + 2 * 2.0**-7, 999424]),
    ],
)
def test_numbers_are_rounded_to_the_type(name: str, given: list[float], expected: list[float]) -> None:
    rounded = ARITHMETICS[name].stored(np.array(given, np.float32))
    np.testing.assert_array_equal(rounded, np.array(expected, np.float32))
    assert rounded.dtype == np.float32


def test_tf32_has_ten_bits_and_rounds_ties_to_even() -> None:
    given = np.array([1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-10, -3e38, np.inf, np.nan], np.float32)
    rounded = ARITHMETICS["tf32"].operands(given)
    np.testing.assert_array_equal(rounded[:3], np.array([1, 1 + 2 * 2.0**-10, 1 + 2.0**-10], np.float32))
    assert abs(rounded[3] / given[3] - 1) < 2.0**-11
    assert np.isposinf(rounded[4])
    assert np.isnan(rounded[5])
    values = _array(1000)
    assert np.abs(ARITHMETICS["tf32"].operands(values) / values - 1).max() <= 2.0**-11


def test_a_grid_has_256_numbers_among_them_nought() -> None:
    given = np.append(_array(5000) - 0.7, np.float32(0))
    rounded = on_grid(given)
    assert len(np.unique(rounded)) <= 256
    assert rounded[-1] == 0
    assert np.abs(rounded - given).max() <= 1.01 * (given.max() - given.min()) / 255
    weights = _array(4, 30) * np.array([[1], [10], [100], [0]], np.float32)
    by_row = on_grid(weights, 0)
    assert all(len(np.unique(row)) <= 255 for row in by_row)
    assert np.abs(by_row[0] - weights[0]).max() <= np.abs(weights[0]).max() / 254 * 1.01


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("operator", ["LSTM", "GRU"])
def test_steps_of_recurrent_layers_make_the_whole(operator: str, direction: str) -> None:
    gates, ways = 4 if operator == "LSTM" else 3, 1 + (direction == "bidirectional")
    more = {"linear_before_reset": 1} if operator == "GRU" else {}
    node = helper.make_node(operator, ["x", "w", "r", "b"], ["y"], hidden_size=5, direction=direction, **more)
    constants = {"w": _array(ways, gates * 5, 3), "r": _array(ways, gates * 5, 5), "b": _array(ways, gates * 10)}
    model, x = _model([node], constants), _array(7, 2, 3)
    assert relative(_run(model, x), simulated(model, {"x": x}, ARITHMETICS["float32"])["y"]) < 1e-6
    half = relative(_run(model, x), simulated(model, {"x": x}, ARITHMETICS["bfloat16"])["y"])
    assert 1e-4 < half < 3e-2


@pytest.mark.parametrize(
    ("node", "constants", "shape"),
    [
        (
            ("Conv", {"pads": [1, 0, 1, 2], "strides": [2, 1], "dilations": [1, 2], "group": 2}),
            (6, 2, 3, 2),
            (2, 4, 9, 8),
        ),
        (("Conv", {"pads": [1, 1]}), (6, 4, 3), (2, 4, 9)),
        (("Gemm", {"transB": 1, "alpha": 0.5}), (6, 4), (3, 4)),
        (("MatMul", {}), (4, 6), (2, 3, 4)),
    ],
)
def test_sums_in_steps_are_the_sums(
    node: tuple[str, Any], constants: tuple[int, ...], shape: tuple[int, ...]
) -> None:
    operator, attributes = node
    held = {"w": _array(*constants)} | ({} if operator == "MatMul" else {"b": _array(6)})
    model, x = _model([helper.make_node(operator, ["x", *held], ["y"], **attributes)], held), _array(*shape)
    exact = _run(model, x)
    steps = Arithmetic("", accumulated=True)  # rounded to float32 at each step
    assert relative(exact, simulated(model, {"x": x}, steps)["y"]) < 1e-6
    once, each = (simulated(model, {"x": x}, ARITHMETICS[f"bfloat16{end}"])["y"] for end in ("", "-accumulated"))
    assert relative(exact, once) < relative(exact, each) < 0.1


def test_whole_numbers_of_32_bits_overflow() -> None:
    nodes = [helper.make_node("Mul", ["x", "large"], ["z"]), helper.make_node("Mod", ["z", "few"], ["y"])]
    model = _model(nodes, {"large": np.int64(99_991), "few": np.int64(61)}, I64)
    x = np.array([3, 99_991], np.int64)
    found = simulated(model, {"x": x}, ARITHMETICS["int32"])
    assert found["z"].tolist() == [299_973, 99_991**2 - 2 * 2**32]
    assert simulated(model, {"x": x}, ARITHMETICS["bfloat16"])["y"].tolist() == (x * 99_991 % 61).tolist()


class _Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.active = nn.Conv2d(2, 6, 3, padding=1), nn.BatchNorm2d(6), nn.SiLU()
        self.last, self.ends = nn.Linear(6, 4), nn.LayerNorm(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.ends(self.last(self.active(self.norm(self.first(x))).mean((2, 3))))


@pytest.fixture(name="small")
def _small(tmp_path: Path) -> Prepared:
    torch.manual_seed(0)
    module = _Small().eval()
    with torch.no_grad():
        module.norm.running_var.mul_(0.01)
    return Prepared(Network("small", module, _array(12, 2, 5, 6), folded=False), tmp_path / "small.onnx")


@pytest.mark.parametrize(("fault", "layers"), [
    ("weights 3 %", {"/first/Conv", "/last/Gemm"}),
    ("no activation", {"/active/Sigmoid", "/active/Mul"}),
    ("no bias", {"/first/Conv", "/last/Gemm"}),
    ("epsilon", {"/norm/BatchNormalization", "/ends/LayerNormalization"}),
])  # fmt: skip
def test_a_fault_is_in_its_layer_alone(small: Prepared, tmp_path: Path, fault: str, layers: set[str]) -> None:
    found = faulty(small.network.module, fault, np.random.default_rng(0))
    assert found is not None
    wrong = Prepared(Network("wrong", found.module, small.network.feed, folded=False), tmp_path / "wrong.onnx")
    at_fault = set(small.layers_of(wrong.model, found.place))
    assert at_fault
    assert at_fault <= layers
    assert all(found.place in layer for layer in at_fault)
    effect = part_exactly(small.network.module, found.module, found.place, small.network.feed)
    assert effect > small.cost_at(sorted(at_fault), "float32")
    assert relative(small.exact, wrong.exact) > 1e-4
    if fault == "weights 3 %":
        assert effect == pytest.approx(0.03, rel=0.5)


def test_faults_of_nested_parts_are_found(tmp_path: Path) -> None:
    torch.manual_seed(0)
    inner = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.ReLU(), nn.Linear(4, 4)), nn.ReLU())
    module = nn.Sequential(nn.Linear(4, 4), inner, nn.Linear(4, 4)).eval()
    one = Prepared(Network("nested", module, _array(12, 4), folded=True), tmp_path / "one.onnx")
    for number in range(8):
        found = faulty(module, "no bias", np.random.default_rng(number))
        assert found is not None
        wrong = Prepared(Network("wrong", found.module, one.network.feed, folded=True), tmp_path / "wrong.onnx")
        (layer,) = one.layers_of(wrong.model, found.place)
        assert layer.split("/")[-2] in {found.place, found.place.rpartition(".")[2], found.place.removeprefix("1.")}


def test_a_network_without_a_place_for_a_fault() -> None:
    assert faulty(nn.Sequential(nn.Linear(2, 2, bias=False)), "no bias", DRAW) is None
    assert faulty(nn.Sequential(nn.Linear(2, 2)), "epsilon", DRAW) is None


@pytest.mark.parametrize("device", ["own", "pytorch"])
def test_devices_compute_as_asked(
    small: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    monkeypatch.setattr(trial_module, "network", lambda *_: small.network)
    one = Trial(tmp_path, {device: opened(device, {})})
    right = one.run(Case("small", device, "bfloat16", RIGHT), tmp_path)
    assert right["status"] == "measured"
    assert 1e-4 < right["cost"] < 5e-2
    wrong = one.run(Case("small", device, "bfloat16", "weights 10 %"), tmp_path)
    assert wrong["effect"] > wrong["cost"] / 3
    assert wrong["part_effect"] > 3 * wrong["part_cost"]
    assert wrong["recorded"]["verdict"] == "faulty"
    with np.load(tmp_path / "recorded.npz") as recorded:
        assert {"/first/Conv_output_0", "made"} <= set(recorded)
        assert {len(recorded[name]) for name in recorded} == {12}


def test_a_device_that_is_not_there_is_said() -> None:
    with pytest.raises(Missing, match="no interpreter is given by --openvino"):
        opened("openvino", {})
    with pytest.raises(Missing, match="its interpreter ended with"):
        opened("qnn", {"qnn": sys.executable})


def test_every_case_is_named_once_and_splits_share_no_network() -> None:
    found = {seeds: plan(seeds) for seeds in (DEVELOPMENT_SEEDS, REPORTING_SEEDS)}
    for cases in found.values():
        assert len({case.name for case in cases}) == len(cases)
        assert {case.fault for case in cases} == {RIGHT, *FAULTS}
        assert {case.arithmetic for case in cases} == set(ARITHMETICS)
    assert not set(networks(DEVELOPMENT_SEEDS)) & set(networks(REPORTING_SEEDS))
    assert len(networks(DEVELOPMENT_SEEDS)) >= 30


def _row(fault: str, verdict: str, *, named: str = "", effect: float = 0.0, faults: Any = ()) -> dict[str, Any]:
    said = {"verdict": verdict, "reason": "", "arithmetic": named, "faults": faults}
    about = {"effect": effect, "cost": 0.01, "part_effect": effect, "part_cost": 0.001, "layers": ["a"]}
    told = {OUTPUTS: said, RECORDED: said, "seconds": [0.1, 0.2], "status": "measured", "words": ""}
    case = Case("n-1", "own", "bfloat16", fault)
    return {"name": case.name, **dataclasses.asdict(case), **about, **told}


def test_what_counts_and_how() -> None:
    rows = [
        _row(RIGHT, "noise", named="bfloat16"),
        _row(RIGHT, "faulty"),
        _row(RIGHT, "undecided", named="float16"),
        _row("epsilon", "faulty", effect=0.02, faults=[["b", "a"], ["c"]]),
        _row("no bias", "noise", effect=0.04),
        _row("no bias", "faulty", effect=0.04, faults=[["c"], ["a"]]),
    ]
    alone, recorded = sums(rows, OUTPUTS), sums(rows, RECORDED)
    assert (alone.right, alone.named, alone.misnamed, alone.accused, alone.undecided) == (3, 1, 1, 1, 1)
    assert (alone.above, alone.found, alone.below) == (2, 1, 1)
    assert (recorded.above, recorded.found, recorded.first, recorded.below) == (3, 2, 1, 0)
    assert [is_wrong(row) for row in rows] == [False, True, False, False, True, False]
    text = tables([*rows, {**rows[0], "status": "missing", "words": "not here"}], ["own: it"])
    assert "1 missing: not here" in text
    assert "accused: 1" in text
