"""Outputs of a device that computes in another arithmetic, beside a model in float32; PyTorch is the device."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import device_outputs
import numpy as np
import numpy.typing as npt
import pytest
import torch
from device_outputs import IMAGES, computed
from localized import WEIGHTS, Variant, pictures
from onnx import TensorProto, helper, numpy_helper, save
from torch.nn import functional

import conrepair
from conrepair.application.cli import main
from conrepair.application.pipeline.stages.localizing import _of_all_samples, is_proven
from conrepair.diagnosis.localization.result import Localization
from conrepair.verdicts.evaluate.verdict import Verdict
from conrepair.verdicts.judging.recognition import Fit

INNER = ["a", "b", "c", "d", "f", "scores"]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Variant().write(Path("net.onnx"))
    np.savez("in.npz", image=IMAGES)


def _recorded(arrays: Mapping[str, npt.NDArray[Any]], *names: str) -> str:
    np.savez("out.npz", **{name: arrays[name] for name in (*names, "y")})
    return "out.npz"


@pytest.mark.parametrize("name", ["bfloat16", "float16"])
def test_a_right_device_is_not_accused_and_its_arithmetic_named(name: str) -> None:
    arrays = computed(getattr(torch, name))
    compared = conrepair.compare("net.onnx", _recorded(arrays), data="in.npz", in_process=True)
    assert (compared.verdict, compared.arithmetic) == ("noise", name), compared.reason
    assert f"as if the device computed in {name}" in compared.reason
    assert "INFERENCE_PRECISION_HINT=f32" in compared.reason
    localized = conrepair.localize("net.onnx", _recorded(arrays, *INNER), data="in.npz", in_process=True)
    assert (localized.verdict, localized.arithmetic, localized.faults) == ("noise", name, ()), localized.reason


def _fused(factors: Mapping[str, float] | None = None) -> dict[str, npt.NDArray[Any]]:
    """What it gives where only what's multiplied is rounded to bfloat16, and the first layer isn't at all."""
    found = computed(torch.float32, factors)
    w = {name: torch.tensor(array * np.float32((factors or {}).get(name, 1.0))) for name, array in WEIGHTS.items()}

    def rounded(array: Any) -> torch.Tensor:
        return torch.as_tensor(array).to(torch.bfloat16).float()

    b = torch.tensor(found["b"])
    c = functional.conv2d(rounded(b), rounded(w["inner"]), padding=1)
    f = (b + c).mean((2, 3))
    scores = functional.linear(rounded(f), rounded(w["dense"]), w["shift"])
    y = functional.softmax(scores, dim=1)
    found |= {name: array.numpy() for name, array in {"c": c, "d": b + c, "f": f, "scores": scores, "y": y}.items()}
    return found


def test_tensors_on_the_way_tell_what_outputs_alone_leave_open() -> None:
    """They're no numbers of bfloat16, nor those of the simulation: a fault might have made them."""
    arrays = _fused()
    compared = conrepair.compare("net.onnx", _recorded(arrays), data="in.npz", in_process=True)
    assert (compared.verdict, compared.arithmetic) == ("undecided", "bfloat16"), compared.reason
    localized = conrepair.localize("net.onnx", _recorded(arrays, *INNER), data="in.npz", in_process=True)
    assert (localized.verdict, localized.arithmetic) == ("noise", "bfloat16"), localized.reason
    assert localized.run.rows[-1].verdict == "noise"
    wrong = conrepair.localize("net.onnx", _recorded(_fused({"dense": 1.03}), *INNER), data="in.npz", in_process=True)
    assert wrong.verdict == "faulty"
    assert [fault.source_layers for fault in wrong.faults] == [("scores",)]


@pytest.mark.parametrize(("weights", "layer"), [("first", "a"), ("inner", "c"), ("dense", "scores")])
@pytest.mark.parametrize("name", ["bfloat16", "float16"])
def test_a_fault_of_two_per_cent_on_such_a_device_is_found(name: str, weights: str, layer: str) -> None:
    arrays = computed(getattr(torch, name), {weights: 1.02})
    found = conrepair.localize("net.onnx", _recorded(arrays, *INNER), data="in.npz", in_process=True)
    assert (found.verdict, found.arithmetic) == ("faulty", name)
    assert [fault.source_layers for fault in found.faults] == [(layer,)]
    assert f"all other differences are as if the device computed in {name}" in found.reason


def test_one_layer_that_is_off_among_others_in_float32_is_no_arithmetic() -> None:
    """As much as bfloat16 makes, but not its numbers."""
    arrays = computed(torch.float32, {"inner": 1.003})
    found = conrepair.localize("net.onnx", _recorded(arrays, *INNER), data="in.npz", in_process=True)
    assert found.verdict == "faulty"
    assert [fault.source_layers for fault in found.faults] == [("c",)]


def test_a_declared_arithmetic_is_the_only_one() -> None:
    """What eight bits or bfloat16 would explain, float16 doesn't."""
    wrong = _recorded(computed(torch.float16, {"first": 1.03}))
    for name in ("float16", "float32"):
        found = conrepair.compare("net.onnx", wrong, data="in.npz", arithmetic=name, in_process=True)
        assert (found.verdict, found.arithmetic) == ("faulty", "")
    right = _recorded(computed(torch.float16))
    found = conrepair.compare("net.onnx", right, data="in.npz", arithmetic="float16", in_process=True)
    assert (found.verdict, found.arithmetic) == ("noise", "float16")
    with pytest.raises(conrepair.ConrepairError, match="float17"):
        conrepair.compare("net.onnx", right, data="in.npz", arithmetic="float17", in_process=True)


def test_what_a_model_run_here_differs_by_is_no_other_arithmetic(capsys: pytest.CaptureFixture[str]) -> None:
    Variant(weights={"inner": WEIGHTS["inner"] * np.float32(1.003)}).write(Path("wrong.onnx"))
    assert main(["compare", "net.onnx", "wrong.onnx", "--data", "in.npz", "-q", "--format", "json"]) == 1
    result = json.loads(capsys.readouterr().out)
    assert result["rows"][-1]["verdict"] == "faulty"
    assert result["rows"][-1]["comparison"]["arithmetic"] == ""


def test_a_target_is_right_where_the_sources_runtime_is_off() -> None:
    """ONNX Runtime's sigmoid has no right digits in its tail: exact values say so, and clear what has them."""
    x = np.random.default_rng(0).uniform(-40, -8, (8, 5)).astype(np.float32)
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 5]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Sigmoid", ["x"], ["y"], "gate")], "net", ends[:1], ends[1:])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "tail.onnx")
    right = (1 / (1 + np.exp(-x.astype(np.float64)))).astype(np.float32)
    wrong = np.where(np.arange(5) == 2, right * np.float32(1.01), right)
    for values, verdict in ((right, "noise"), (wrong, "faulty")):
        found = conrepair.compare("tail.onnx", {"y": values}, data={"x": x}, arithmetic="float32", in_process=True)
        assert found.verdict == verdict, found.reason
        [output] = found.row.comparison.outputs
        assert any(
            "the original model's own runtime is inaccurate: Sigmoid (layer `gate`)" in note for note in output.notes
        )


def test_probabilities_that_were_rounded_are_still_probabilities() -> None:
    """Ten classes in bfloat16 don't add up to 1 within a thousandth: they aren't taken for scores."""
    arrays = computed(torch.float32)
    values = torch.tensor(arrays["y"]).to(torch.bfloat16).float().numpy()
    assert np.abs(values.sum(axis=1) - 1).max() > 1e-3
    found = conrepair.compare("net.onnx", _recorded({"y": values}), data="in.npz", in_process=True)
    assert found.row.comparison.outputs[0].error.relative_l2 < 3e-3, found.reason


def test_one_channel_among_others_in_float32_is_a_fault() -> None:
    """The error of all is as large as eight bits make, but these would change all channels."""
    arrays = computed(torch.float32)
    arrays["c"][:, 1] *= 1.03
    arrays |= {"d": arrays["b"] + arrays["c"]}
    arrays["f"] = arrays["d"].mean((2, 3))
    found = conrepair.localize("net.onnx", _recorded(arrays, *INNER[:-1]), data="in.npz", in_process=True)
    assert found.verdict == "faulty"
    assert ("c",) in [fault.source_layers for fault in found.faults]
    assert found.arithmetic == ""


def test_a_fault_that_outputs_alone_cannot_tell_is_undecided() -> None:
    """Numbers of float32 that are as far off as bfloat16's would be, and aren't those of the simulation."""
    arrays = computed(torch.float32, {"first": 1.004, "inner": 0.997})
    found = conrepair.compare("net.onnx", _recorded(arrays), data="in.npz", in_process=True)
    assert found.verdict in {"undecided", "faulty"}, found.reason
    assert "record more tensors" in found.reason or found.verdict == "faulty"


def test_whole_numbers_are_those_of_the_simulation_or_wrong() -> None:
    ends = [helper.make_tensor_value_info(name, TensorProto.INT64, ["n", 4]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Mul", ["x", "x"], ["y"])], "net", ends[:1], ends[1:])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "square.onnx")
    x = np.random.default_rng(0).integers(60000, 99000, (8, 4))
    narrow = (x * x).astype(np.int32).astype(np.int64)
    off = (x * x) + (np.arange(4) == 1)
    for values, verdict, name in ((narrow, "noise", "int32"), (off, "faulty", "")):
        found = conrepair.compare("square.onnx", {"y": values}, data={"x": x}, in_process=True)
        assert (found.verdict, found.arithmetic) == (verdict, name), found.reason


def test_a_simulation_that_fails_leaves_the_others() -> None:
    """In float16 an index overflows, which no table has a row for; bfloat16 is fine."""
    nodes = [
        helper.make_node("Mul", ["x", "k"], ["a"]),
        helper.make_node("Cast", ["a"], ["i"], to=TensorProto.INT64),
        helper.make_node("Gather", ["t", "i"], ["r"]),
        helper.make_node("MatMul", ["r", "w"], ["y"]),
    ]
    generator = np.random.default_rng(0)
    table, weight = (generator.normal(size=shape).astype(np.float32) for shape in ((70001, 8), (8, 3)))
    weights = [numpy_helper.from_array(array, name) for array, name in ((table, "t"), (weight, "w"))]
    ends = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])]
    ends += [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])]
    weights += [numpy_helper.from_array(np.float32(70000), "k")]
    graph = helper.make_graph(nodes, "net", ends[:1], ends[1:], weights)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "table.onnx")
    x = np.linspace(0.9, 1, 8).astype(np.float32)
    rows, columns = (
        torch.tensor(array).to(torch.bfloat16) for array in (table[(x * 70000).astype(np.int64)], weight)
    )
    found = conrepair.compare("table.onnx", {"y": (rows @ columns).float().numpy()}, data={"x": x}, in_process=True)
    assert found.row.problem is None
    assert {"bfloat16"} <= {of.arithmetic for of in found.row.comparison.outputs[0].fits}


def test_samples_that_differ_most_are_looked_at_though_the_others_are_in_an_arithmetic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    last = 23  # behind those that are looked at first
    images = pictures(last + 1)
    monkeypatch.setattr(device_outputs, "IMAGES", images)
    np.savez("in.npz", image=images)
    arrays = _fused()
    wrong = {name: array.copy() for name, array in arrays.items()}
    wrong["c"][last] *= 1.5
    wrong["d"][last] = wrong["b"][last] + wrong["c"][last]
    wrong["f"][last] = wrong["d"][last].mean((1, 2))
    wrong["scores"][last] = wrong["f"][last] @ WEIGHTS["dense"].T + WEIGHTS["shift"]
    wrong["y"][last] = np.exp(wrong["scores"][last]) / np.exp(wrong["scores"][last]).sum()
    found = conrepair.localize("net.onnx", _recorded(wrong, *INNER), data="in.npz", in_process=True)
    assert found.verdict == "faulty", found.reason
    assert [fault.source_layers for fault in found.faults] == [("c",)]


@pytest.mark.parametrize(
    ("verdict", "reason", "arithmetic", "proven"),
    [
        ("undecided", "", "bfloat16", True),
        ("undecided", "", "bfloat16-accumulated", True),
        ("undecided", "", "float16", False),
        ("undecided", "a metric of mine failed (its outputs: ", "bfloat16", False),  # which no layer answers
        ("noise", "", "bfloat16", False),  # the outputs are certain: something else is in doubt, as labels
    ],
)
def test_layers_prove_what_the_arithmetic_left_open_alone(
    verdict: str, reason: str, arithmetic: str, proven: bool
) -> None:
    fit = Fit("bfloat16", 1e-3, 1e-3, 1e-3, explains=True)
    output = SimpleNamespace(verdict=Verdict(verdict), reason=f"{reason}{fit}. To check that", fits=(fit,))
    compared = SimpleNamespace(verdict=Verdict.UNDECIDED, arithmetic="bfloat16", outputs=(output,))
    result, row = SimpleNamespace(is_right=True, arithmetic=arithmetic), SimpleNamespace(comparison=compared)
    assert is_proven(cast("Any", result), cast("Any", row)) is proven


@pytest.mark.parametrize(("layers", "verdict"), [(1, "noise"), (2, "faulty")])
def test_a_few_samples_of_outputs_alone_accuse_nobody_whom_all_excuse(layers: int, verdict: str) -> None:
    compared = SimpleNamespace(verdict=Verdict.NOISE, reason="noise", arithmetic="bfloat16", outputs=(1,))
    found = Localization(verdict=Verdict.FAULTY, reason="off", layers=cast("Any", (0,) * layers), samples=8)
    result = _of_all_samples(found, cast("Any", SimpleNamespace(comparison=compared)))
    assert result.verdict == verdict
    compared.verdict = Verdict.FAULTY  # another signature, say
    assert _of_all_samples(found, cast("Any", SimpleNamespace(comparison=compared))) is found
