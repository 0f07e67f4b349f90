"""An epsilon that half precision has no number for: named where it shows, and where it doesn't."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_networks
import pytest
from localizing import localize_networks
from onnx_networks import drawn
from rewritten_networks import opened

import conrepair
from conrepair.diagnosis.localization.options import Options
from conrepair.verdicts.evaluate.verdict import Verdict

NORMALIZED = """s = Mul (r, r) va = ReduceMean <axes = [1], keepdims = 1> (s)
    ve = Add (va, eps) sd = Sqrt (ve) n = Div (r, sd)"""
ENTROPY = "n0 = Clip (r, eps) n = Log (n0)"


def written(path: Path, body: str, eps: float, half: bool) -> Path:
    text = f"""<ir_version: 8, opset_import: ["": 17]> g (float[16, 32] x) => (float[16, 4] y) {{
        x0 = {"Cast <to = 10> (x)" if half else "Identity (x)"} h = MatMul (x0, w) r = Relu (h) {body}
        y0 = MatMul (n, v) y = {"Cast <to = 1> (y0)" if half else "Identity (y0)"} }}"""
    model = onnx.parser.parse_model(text)
    numbers = {"w": drawn(32, 32, seed=1, scale=0.5), "v": drawn(32, 4, seed=2), "eps": np.float32(eps)}
    given = {name: array.astype(np.float16 if half else np.float32) for name, array in numbers.items()}
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in given.items())
    onnx.save(model, path)
    return path


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("body", [NORMALIZED, ENTROPY], ids=["normalization", "logarithm"])
def test_an_epsilon_that_became_zero(body: str, zeros: bool, tmp_path: Path) -> None:
    feeds = {"x": drawn(16, 32, seed=3)}
    if zeros:
        feeds["x"][::4] = 0
    paths = [written(tmp_path / f"{half}.onnx", body, 1e-8, half) for half in (False, True)]
    sides = [opened(path, feeds) for path in paths]
    found = localize_networks(*sides, [(feeds, feeds)], tmp_path / "work", Options(precision="float16")).result
    named = [fault.words for fault in (*found.faults, *found.latent)]
    assert sum("is 0 in the converted model, 1e-08 in the original" in words for words in named) == 1
    assert not any("rounded" in words for words in named)
    shown = zeros or body == ENTROPY  # where a ReLU gives 0, a logarithm of 0 is taken
    assert (found.verdict is Verdict.FAULTY) == shown


def test_a_copy_in_half_precision_that_is_right(tmp_path: Path) -> None:
    feeds = {"x": drawn(16, 32, seed=3)}
    paths = [written(tmp_path / f"{half}.onnx", NORMALIZED, 1e-4, half) for half in (False, True)]
    sides = [opened(path, feeds) for path in paths]
    found = localize_networks(*sides, [(feeds, feeds)], tmp_path / "work", Options(precision="float16")).result
    assert (found.faults, found.latent) == ((), ())


_LOWEST = -3.4e38


def _masked(path: Path, kind: str, bound: float) -> Path:
    text = f"""g ({kind}[1, 8] x, {kind}[1, 8] mask) => ({kind}[1, 4] y) {{
        a = MatMul (x, w)
        hidden = Sub (one, mask)
        p = Mul (hidden, bound)
        scores = Add (a, p)
        e = Softmax <axis = -1> (scores)
        y = MatMul (e, v)
    }}"""
    stored = np.float16 if kind == "float16" else np.float32
    values = {"w": drawn(8, 8, seed=1), "v": drawn(8, 4, seed=2), "one": 1, "bound": np.float32(bound)}
    with np.errstate(over="ignore"):
        weights = {name: np.asarray(array).astype(stored) for name, array in values.items()}
    return onnx_networks.written(path, text, weights)


def test_a_bound_that_became_infinite_is_named_and_repaired(tmp_path: Path) -> None:
    source, target = _masked(tmp_path / "a.onnx", "float", _LOWEST), _masked(tmp_path / "b.onnx", "float16", _LOWEST)
    repaired = conrepair.repair(source, target, in_process=True)
    assert "(bound) of `p` is infinite in the converted model, -3.4e+38 in the original" in str(repaired)
    assert repaired.verdict is Verdict.NOISE
    assert "the operand of `p` is -6.55e+04" in str(repaired)


@pytest.mark.parametrize("bound", [-65504.0, -1e4])
def test_the_lowest_number_of_float16_stands_for_what_is_below(bound: float, tmp_path: Path) -> None:
    right = bound if bound > -65504 else _LOWEST
    source, target = _masked(tmp_path / "a.onnx", "float", right), _masked(tmp_path / "b.onnx", "float16", bound)
    found = conrepair.localize(source, target, in_process=True, latent=True)
    assert found.verdict is Verdict.NOISE
    assert not found.faults
