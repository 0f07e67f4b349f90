"""ONNX files whose ends or weights are of types that numpy hasn't, through the verbs with no option."""

from __future__ import annotations

from pathlib import Path

import narrow_networks
import numpy as np
import pytest
from onnx import TensorProto

import conrepair
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.verdicts.evaluate.compare import compare_outputs
from conrepair.verdicts.evaluate.run import HeldRun
from conrepair.verdicts.evaluate.tolerance import Tolerance
from conrepair.verdicts.evaluate.verdict import Verdict


def test_values_are_those_that_the_type_has(tmp_path: Path) -> None:
    path = narrow_networks.ends_in(tmp_path / "a.onnx", TensorProto.FLOAT, given=TensorProto.FLOAT8E4M3FN)
    data = np.random.default_rng(0).normal(size=(3, 16)).astype(np.float32)
    import ml_dtypes

    rounded = data.astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
    one, two = (conrepair.execute(path, data=item, in_process=True).outputs["y"] for item in (data, rounded))
    np.testing.assert_array_equal(one, two)


def test_what_has_no_kernel_is_refused_in_words(tmp_path: Path) -> None:
    path = narrow_networks.computed_in(tmp_path / "a.onnx")
    with pytest.raises(conrepair.ConrepairError, match=r"no kernel for MatMul of bfloat16 on the CPU \(`product`\)"):
        conrepair.execute(path, in_process=True)


def test_complex_numbers_are_refused_in_words(tmp_path: Path) -> None:
    path = narrow_networks.ends_in(tmp_path / "a.onnx", TensorProto.COMPLEX64)
    with pytest.raises(conrepair.ConrepairError, match="ONNX Runtime has no tensors of complex64"):
        conrepair.execute(path, in_process=True)


def run(name: str, dtype: str, values: np.ndarray) -> HeldRun:
    specs = (TensorSpec("y", ("batch", 8), dtype),)
    return HeldRun(name=name, outputs=specs, folder=Path(), count=len(values), held={"y": values}, operators=3)


@pytest.mark.parametrize(
    ("types", "flipped", "verdict"),
    [
        (("float8_e4m3fn", "float8_e4m3fn"), 1, Verdict.NOISE),
        (("float8_e4m3fn", "float8_e4m3fn"), 100, Verdict.FAULTY),
        (("float32", "float32"), 1, Verdict.FAULTY),
        (("float8_e4m3fn", "bfloat16"), 100, Verdict.NOISE),
    ],
)
def test_a_number_between_two_of_a_type_may_be_either(types: tuple[str, str], flipped: int, verdict: Verdict) -> None:
    values = np.random.default_rng(0).uniform(1, 2, (32, 8)).astype(np.float32)
    other = values.copy()
    other.reshape(-1)[:flipped] *= 1.06
    found = compare_outputs(run("source", types[0], values), run("target", types[1], other), Tolerance.of())
    assert found.verdict is verdict
