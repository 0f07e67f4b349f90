"""Activations that were calibrated on smaller values than the source has."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx_networks import drawn, written
from quantized_faults import in_eight_bits
from quantized_networks import source, subject
from rescaled import as_int8, pictures, trained
from small_models import model_of

import conrepair
from conrepair.diagnosis.localization.judge.quantized_rules import SATURATES, SHIFTED
from conrepair.diagnosis.localization.judge.saturation import _as_read, is_small
from conrepair.diagnosis.localization.models import localize_models
from conrepair.diagnosis.localization.numbers.judging import BEYOND
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.diagnosis.repairs.options import RepairOptions
from conrepair.diagnosis.repairs.repair import repair_models
from conrepair.formats.models.registry import framework
from conrepair.ground.data.feeds import DataReference
from conrepair.ground.data.tensor_spec import Quantization
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import LayerGraph, Node, Tensor
from conrepair.ground.runtime.files.whole import sha256_of
from conrepair.verdicts.evaluate.verdict import Verdict

Change = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
_OPTIONS = Options(samples=8, batch_size=8, quantized=True)


def rows(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, 3, 12, 12)).astype(np.float32)


def quantized(folder: Path, form: str, factor: float) -> tuple[FedModel, FedModel]:
    """The network, and what it is in eight bits when it was calibrated on inputs so many times as large."""
    made = source(folder)
    path = in_eight_bits(Path(made.path), folder / "int8.onnx", rows(40, 2) * np.float32(factor), form)
    return subject(made, folder), subject(model_of("onnx", path), folder)


@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
def test_it_is_named_and_no_weight_is_accused(form: str, tmp_path: Path) -> None:
    found = localize_models(*quantized(tmp_path, form, 1 / 50), tmp_path / "at", _OPTIONS)
    assert found.verdict is Verdict.FAULTY
    assert SATURATES in found.reason
    assert [fault.kind for fault in found.faults] == [Kind.PRECISION], "said once"
    assert len(found.faults[0].target_layers) > 2, "with the tensors under it"
    words = " ".join(text for fault in found.faults for text in fault.evidence)
    assert "`x` clips: its quantization range is -0.0" in words
    assert "of them are clipped" in words
    assert "weights" not in words


@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
@pytest.mark.parametrize("factor", [1, 1.2, 3])
def test_a_right_calibration_isnt(form: str, factor: float, tmp_path: Path) -> None:
    found = localize_models(*quantized(tmp_path, form, factor), tmp_path / "at", _OPTIONS)
    assert (found.verdict, found.faults) == (Verdict.QUANTIZED, ())


@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
def test_a_new_calibration_fixes_it_at_once(form: str, tmp_path: Path) -> None:
    options = RepairOptions(_OPTIONS, seconds=120, unseen=16)
    result = repair_models(*quantized(tmp_path, form, 1 / 50), tmp_path / "out", options)
    assert not result.after.faults
    assert result.tried <= 16
    assert result.storage is not None
    assert result.storage.quantized == result.storage.quantized_before


def test_a_keras_network_of_bytes_that_was_calibrated_on_portions_of_one(tmp_path: Path) -> None:
    trained().save(tmp_path / "right.keras")
    photos, small = pictures(32, seed=5)[0], pictures(100)[0] / 255
    np.savez(tmp_path / "photos.npz", photos)
    sides = []
    for name, path in (
        ("keras", tmp_path / "right.keras"),
        ("tflite", as_int8(tmp_path / "wrong.tflite", small, stored=True)),
    ):
        model = model_of(name, path)
        inputs = framework(name).describe(model).inputs
        np.savez(tmp_path / f"{name}.npz", **{inputs[0].name: photos})
        data = tmp_path / f"{name}.npz"
        samples = sides[0].inputs if sides else inputs
        sides.append(
            FedModel(model, inputs, DataReference("tensors", 32, str(data), sha256_of(data), samples=samples), None)
        )
    found = localize_models(*sides, tmp_path / "at", _OPTIONS)
    assert SATURATES in found.reason
    assert len(found.faults) == 1, "no weights are accused beside it, of layers whose values are cut off by a little"
    assert "its quantization range is 0 to 1, the original's values there are 0 to 255" in found.faults[0].evidence[0]
    result = repair_models(*sides, tmp_path / "out", RepairOptions(_OPTIONS, seconds=120, unseen=16))
    assert not result.after.faults
    assert result.tried <= 16
    assert result.unseen_after.top1_differing == 0


def narrowed(scale: np.ndarray, zero: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A twelfth of a range."""
    return scale / np.float32(12), zero


def shifted(scale: np.ndarray, zero: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A range that's wide enough and begins far below, so that large values are cut off."""
    return scale * np.float32(1.5), np.full_like(zero, 115)


def moved(scale: np.ndarray, zero: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A range that's somewhat wider and begins lower, so that few values are cut off."""
    return scale * np.float32(1.05), np.clip(zero.astype(np.int32) + 40, -128, 127).astype(zero.dtype)


def test_an_input_that_is_cut_off_by_its_zero_point_is_told_alone(tmp_path: Path) -> None:
    """What's drawn are the values that files say: a grid that would hold them by another zero point is wrong."""
    ours, theirs = quantized(tmp_path, "QDQ", 1.0)
    network = onnx.load(theirs.model.path)
    (first,) = [node for node in network.graph.node if node.op_type == "QuantizeLinear" and node.input[0] == "x"]
    constants = {item.name: item for item in network.graph.initializer}
    of_range = [constants[name] for name in first.input[1:]]
    for item, value in zip(of_range, moved(*map(onnx.numpy_helper.to_array, of_range)), strict=True):
        item.CopyFrom(onnx.numpy_helper.from_array(value, item.name))
    onnx.save(network, tmp_path / "wrong.onnx")
    target = subject(model_of("onnx", tmp_path / "wrong.onnx"), tmp_path)
    found = localize_models(ours, target, tmp_path / "at", dataclasses.replace(_OPTIONS, drawn=True))
    (fault,) = found.faults
    assert "`x` clips by a shifted range, as by another zero point" in fault.evidence[0]


def test_between_two_quantized_files_one_scale_for_all_channels_is_told_and_repaired(tmp_path: Path) -> None:
    """What the source's own grid cuts off is no reason to call the target's too small."""
    path = tmp_path / "right.onnx"
    in_eight_bits(Path(source(tmp_path).path), path, rows(40, 2), per_channel=True)
    network = onnx.load(path)
    made = {name: node for node in network.graph.node for name in node.output}
    constants = {item.name: item for item in network.graph.initializer}
    (layer,) = [node for node in network.graph.node if node.op_type == "Conv" and "w1" in node.input[1]]
    scales = constants[made[layer.input[1]].input[1]]
    right = onnx.numpy_helper.to_array(scales)
    scales.CopyFrom(onnx.numpy_helper.from_array(np.full_like(right, right.max()), scales.name))
    onnx.save(network, tmp_path / "wrong.onnx")
    sides = [subject(model_of("onnx", tmp_path / name), tmp_path) for name in ("right.onnx", "wrong.onnx")]
    result = repair_models(*sides, tmp_path / "out", RepairOptions(_OPTIONS, seconds=60, unseen=16))
    told = " ".join(text for fault in result.before.faults for text in fault.evidence)
    assert "are scaled by 1.0" in told
    assert "of 16 slices of axis 0" in told
    assert SATURATES not in told
    assert not result.after.faults


@pytest.mark.parametrize(
    ("change", "rule"), [(narrowed, SATURATES), (shifted, SHIFTED)], ids=lambda value: getattr(value, "__name__", "")
)
@pytest.mark.parametrize(("of_the_input", "drawn"), [(False, True), (False, False), (True, True)])
def test_drawn_inputs_say_nothing_of_a_range_inside(
    of_the_input: bool, drawn: bool, change: Change, rule: str, tmp_path: Path
) -> None:
    """Noise may be unlike what calibration has seen; a range of the input itself contradicts what it's made for."""
    ours, theirs = quantized(tmp_path, "QDQ", 1.0)
    network = onnx.load(theirs.model.path)
    read = [node for node in network.graph.node if node.op_type == "QuantizeLinear"]
    chosen = next(node for node in read if (node.input[0] == "x") is of_the_input)
    constants = {item.name: item for item in network.graph.initializer}
    of_range = [constants[name] for name in chosen.input[1:]]
    for item, value in zip(of_range, change(*map(onnx.numpy_helper.to_array, of_range)), strict=True):
        item.CopyFrom(onnx.numpy_helper.from_array(value, item.name))
    onnx.save(network, tmp_path / "wrong.onnx")
    target = subject(model_of("onnx", tmp_path / "wrong.onnx"), tmp_path)
    found = localize_models(ours, target, tmp_path / "at", dataclasses.replace(_OPTIONS, drawn=drawn))
    if drawn and not of_the_input:
        assert (found.verdict, found.faults) == (Verdict.UNDECIDED, ())
        assert "clips" in found.reason
        assert "--data" in found.reason
    else:
        assert found.verdict is Verdict.FAULTY
        assert rule in {words for fault in found.faults for words, _ in fault.differences}


def test_what_is_needed_of_values_is_what_clips_leave_of_them() -> None:
    """A grid clips as well: what a quantized source cuts off is no reason to call the target's range too small."""
    chain = ["x", "a", "b", "c", "d", "e"]
    tensors = {name: Tensor(name, (1,), "float32") for name in chain}
    tensors["c"] = Tensor("c", (1,), "uint8", Quantization(0.02, 0))
    kinds = ("Conv", "Clip", "QuantizeLinear", "DequantizeLinear", "Conv")
    nodes = [
        Node(two, two, op, op, (one,), (two,))
        for op, (one, two) in zip(kinds, itertools.pairwise(chain), strict=True)
    ]
    graph = LayerGraph(("x",), ("e",), tensors, tuple(nodes))
    assert [_as_read(name, graph) for name in chain] == ["x", "d", "d", "d", "d", "e"]
    assert _as_read("a", LayerGraph(("x",), ("a", "e"), tensors, tuple(nodes))) == "a", "who reads it gets all"


def test_ranges() -> None:
    assert is_small((0.0, 1.0), 0.0, 255.0, BEYOND)
    assert is_small((-1.0, 0.0), -1.0, 1.0, BEYOND)
    assert not is_small((0.0, 1.0), -1.0, 1.2, BEYOND), "a range that begins at zero is a ReLU"
    assert not is_small((-1.0, 1.0), -1.2, 1.2, BEYOND), "samples have somewhat larger values"


def _residual(path: Path, kind: str, factor: float) -> Path:
    """What's added and made small again; a sigmoid in its parts behind it."""
    text = f"""g ({kind}[1, 8] x) => ({kind}[1, 4] y) {{
        a = MatMul (x, w)
        b = Mul (a, large)
        c = Add (b, b)
        d = Div (c, twice)
        steep = Mul (d, twelve)
        e = Exp (steep)
        f = Add (e, one)
        g = Reciprocal (f)
        h = Add (g, d)
        y = MatMul (h, v)
    }}"""
    values = {"w": drawn(8, 8, seed=1), "v": drawn(8, 4, seed=2), "large": factor, "twice": 2 * factor}
    stored = np.float16 if kind == "float16" else np.float32
    weights = {name: np.asarray(array, stored) for name, array in {**values, "twelve": 12, "one": 1}.items()}
    return written(path, text, weights)


@pytest.mark.parametrize("factor", [50.0, 30000.0])
def test_what_float16_cannot_hold_is_named_though_onnx_runtime_computes_it(factor: float, tmp_path: Path) -> None:
    source, target = (_residual(tmp_path / f"{kind}.onnx", kind, factor) for kind in ("float", "float16"))
    found = conrepair.compare(source, target, in_process=True)
    assert (found.verdict is Verdict.FAULTY) is (factor > 50)
    assert ("`c` overflows: values are beyond 65504" in str(found)) is (factor > 50)
    assert "`e` overflows" not in str(found)  # 1 / (1 + infinity) is 0, as it should be
