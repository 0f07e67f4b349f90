"""Targets that a budget or rounding excuses: `compare` looks into them, as all verbs do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser
from onnxruntime.quantization import QuantType, quantize_static
from quantized_faults import FAULTS, Rows, in_eight_bits
from quantized_networks import source

import conrepair
from conrepair.application.cli import main
from conrepair.verdicts.evaluate.verdict import Verdict


@pytest.mark.parametrize("times", [0, 1, 5])
def test_no_budget_excuses_a_layer_at_fault(times: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = np.random.default_rng(2).normal(size=(48, 3, 12, 12)).astype(np.float32)
    ours = Path(source(tmp_path).path)
    theirs = in_eight_bits(ours, tmp_path / "int8.onnx", rows)
    proto = onnx.load(theirs)
    for _ in range(times):  # a weight's scale, by 1.1 each time
        FAULTS["scale"][0](proto.graph)
    onnx.save(proto, theirs)
    np.savez(tmp_path / "data.npz", x=rows[:16])
    files = [str(ours), str(theirs), "--data", str(tmp_path / "data.npz"), "-q"]
    codes = [main([verb, *files, "-o", str(tmp_path / verb)]) for verb in ("compare", "localize")]
    shown = capsys.readouterr().out
    assert codes == [int(times > 0)] * 2, shown
    assert ("a layer is faulty, though the outputs are within what is allowed" in shown) is (times > 0), shown


LARGE = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[N, 32] x) => (float[N, 8] y)
<float[32, 32] first, float[32] bias, float[32, 8] last, float large = {4e5}>
{
    h = MatMul (x, first)
    shifted = Add (h, bias)
    a = Tanh (shifted)
    up = Add (a, large)
    down = Sub (up, large)
    y = MatMul (down, last)
}
"""


def test_no_rounding_excuses_a_layer_at_fault(tmp_path: Path) -> None:
    """Large numbers that are taken off again round as much away as a wrong bias changes."""
    generator = np.random.default_rng(0)
    values = {"first": generator.normal(size=(32, 32)), "bias": np.full(32, 0.3), "last": np.ones((32, 8))}
    paths = [tmp_path / "source.onnx", tmp_path / "target.onnx"]
    for path, times in zip(paths, (1.0, 1.1), strict=True):
        model = parser.parse_model(LARGE)
        held = values | {"bias": values["bias"] * times}
        tensors = [numpy_helper.from_array(array.astype(np.float32), name) for name, array in held.items()]
        model.graph.initializer.extend(tensors)
        onnx.save(model, path)
    compared = conrepair.compare(*paths, in_process=True)
    assert compared.row.comparison is not None
    assert compared.row.comparison.verdict is Verdict.NOISE
    assert (compared.verdict, conrepair.localize(*paths, in_process=True).verdict) == (Verdict.FAULTY, Verdict.FAULTY)


def test_no_budget_accuses_a_target_on_drawn_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They saturate a tensor inside, as they may: nobody knows what it was calibrated on."""
    rows = np.random.default_rng(2).normal(size=(48, 3, 12, 12)).astype(np.float32)
    ours = Path(source(tmp_path).path)
    theirs = in_eight_bits(ours, tmp_path / "int8.onnx", rows)
    proto = onnx.load(theirs)
    inner = [node for node in proto.graph.node if node.op_type == "QuantizeLinear" and node.input[0] != "x"]
    names = {node.input[1] for node in inner[:2]}
    for scale in proto.graph.initializer:
        if scale.name in names:
            scale.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(scale) / 100, scale.name))
    onnx.save(proto, theirs)
    np.savez(tmp_path / "data.npz", x=rows[:16])
    files = [str(ours), str(theirs), "-q"]
    verdicts = []
    for data in ([], ["--data", str(tmp_path / "data.npz")]):
        for verb in ("compare", "localize", "repair"):
            assert main([verb, *files, *data, "-o", str(tmp_path / f"{verb}-{len(data)}")]) == int(
                verb != "repair" or not data
            )
            verdicts.append("undecided" in capsys.readouterr().out)
    assert verdicts == [True, True, True, False, False, False]


@pytest.mark.parametrize(("factor", "told"), [(1.0, False), (0.1, True)])
def test_ordinary_inputs_show_a_calibration_on_too_small_ones(
    factor: float, told: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the source doesn't say which inputs it's for, those of the target's calibration aren't taken for them."""
    rows = np.random.default_rng(2).normal(size=(48, 3, 12, 12)).astype(np.float32)
    ours = Path(source(tmp_path).path)
    theirs = in_eight_bits(ours, tmp_path / "int8.onnx", rows * np.float32(factor))
    for verb in ("compare", "localize"):
        assert main([verb, str(ours), str(theirs), "-o", str(tmp_path / verb)]) == int(told)
        shown = " ".join("".join(capsys.readouterr()).split())
        assert "drawn from -1 to 1. Try your own (--data)" in shown
        assert ("undecided" in shown, "tensors clip" in shown) == (told, told), shown


def test_metadata_that_one_file_has_is_told(tmp_path: Path) -> None:
    right = source(tmp_path).path
    model = onnx.load(right)
    for key, value in (("names", "{0: 'person'}"), ("onnx.infer", "a converter's own"), ("labels", "x" * 500)):
        entry = model.metadata_props.add()
        entry.key, entry.value = key, value
    onnx.save(model, tmp_path / "named.onnx")
    about = conrepair.inspect(tmp_path / "named.onnx", in_process=True)
    assert about.metadata["names"] == "{0: 'person'}"
    assert "500 bytes, sha256" in about.metadata["labels"]
    notes = " ".join(conrepair.compare(tmp_path / "named.onnx", right, in_process=True).notes)
    assert "its metadata names is missing, that of the original {0: 'person'}" in notes
    assert "onnx.infer" not in notes
    assert "metadata" not in " ".join(conrepair.compare(right, right, in_process=True).notes)


@pytest.mark.parametrize(("activations", "reduced", "told"), [("QUInt8", 0, 1), ("QUInt8", 1, 0), ("QInt8", 0, 0)])
def test_products_that_saturate_on_other_processors_are_told(
    activations: str, reduced: int, told: int, tmp_path: Path
) -> None:
    right = Path(source(tmp_path).path)
    rows = np.random.default_rng(0).normal(size=(8, 3, 12, 12)).astype(np.float32)
    kinds = {"activation_type": QuantType[activations], "weight_type": QuantType.QInt8}
    path = tmp_path / "target.onnx"
    quantize_static(right, path, Rows("x", rows), reduce_range=bool(reduced), **kinds)
    about = conrepair.inspect(path, in_process=True)
    assert len(about.warnings) == told
    assert all("without VNNI" in text and "4 weights that use all of int8" in text for text in about.warnings)
    notes = " ".join(conrepair.compare(right, path, in_process=True).notes)
    assert ("without VNNI" in notes) == bool(told)
