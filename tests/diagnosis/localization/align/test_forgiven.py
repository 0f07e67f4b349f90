"""A mask that another type clips is forgiven by the softmax behind it: it's no fault, whatever lies elsewhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import conrepair

WIDTH, LENGTH = 16, 8
DRAWN = np.random.default_rng(0).normal(size=(4, WIDTH, WIDTH)).astype(np.float32) / 4


def _attention(path: Path, mask: float, *, half: bool, query: float = 1.0) -> str:
    kind = "float16" if half else "float"
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[n, {LENGTH}, {WIDTH}] x) => (float[n, {LENGTH}, {WIDTH}] y)
        <{kind} masked, {kind} none, {kind} limit> {{
        in = Cast <to = {10 if half else 1}> (x)
        q0 = MatMul (in, wq) q1 = Tanh (q0) k0 = MatMul (in, wk) k1 = Tanh (k0) v = MatMul (in, wv)
        turned = Transpose <perm = [0, 2, 1]> (k1) s = MatMul (q1, turned)
        mean = ReduceMean <axes = [2], keepdims = 1> (in) row = Transpose <perm = [0, 2, 1]> (mean)
        is = Greater (row, limit) mask = Where (is, masked, none) scores = Add (s, mask)
        p = Softmax <axis = -1> (scores) y0 = MatMul (p, v) y1 = MatMul (y0, wo) y = Cast <to = 1> (y1) }}"""
    )
    values = dict(zip(("wq", "wk", "wv", "wo"), DRAWN, strict=True))
    values |= {"wq": DRAWN[0] * np.float32(query), "masked": np.float32(mask)}
    values |= {"none": np.float32(0), "limit": np.float32(0.2)}
    for name, value in values.items():
        array = np.asarray(value, np.float16 if half else np.float32)
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    onnx.save(model, path)
    return str(path)


def test_a_clipped_mask_is_no_fault_of_a_conversion_to_half(tmp_path: Path) -> None:
    source = _attention(tmp_path / "source.onnx", -1e9, half=False)
    target = _attention(tmp_path / "target.onnx", -65504, half=True)
    found = conrepair.localize(source, target, in_process=True)
    assert (found.verdict, found.exit_code) == ("noise", 0)


@pytest.mark.parametrize("mask", [-1e9, -1e4])
def test_it_is_not_named_beside_a_fault(mask: float, tmp_path: Path) -> None:
    source = _attention(tmp_path / "source.onnx", -1e9, half=False)
    target = _attention(tmp_path / "target.onnx", mask, half=False, query=1.3)
    found = conrepair.localize(source, target, in_process=True)
    assert [fault.target_layers[0] for fault in found.faults] == ["q0"]
