"""Outputs that are integers or booleans: compared exactly, and what makes them is looked at."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from localizing import localize_networks
from onnx_networks import drawn, written
from rewritten_networks import opened

from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.result import Localization
from conrepair.verdicts.evaluate.verdict import Verdict

WEIGHTS = {
    "w": drawn(8, 12, seed=1), "b": drawn(12, seed=2), "k": np.array([3]), "zero": np.float32(0),
    "one": np.array([1]), "table": drawn(12, 12, seed=3),
}  # fmt: skip


def network(path: Path, ending: str, kind: str, shape: str) -> Path:
    text = f"""small (float[batch, 8] x) => ({kind}[batch{shape}] y) {{
        h = MatMul (x, w)
        s = Add (h, b)
        {ending}
    }}"""
    used = {
        name: array for name, array in WEIGHTS.items() if name in text.replace(",", " ").replace(")", " ").split()
    }
    used |= {"w": WEIGHTS["w"], "b": WEIGHTS["b"]}
    return written(path, text, used, opset=18)


def localized(source: Path, target: Path, folder: Path) -> Localization:
    batches = [({"x": drawn(8, 8, seed=seed, scale=1)},) * 2 for seed in range(2)]
    sides = opened(source, batches[0][0]), opened(target, batches[0][0])
    return localize_networks(*sides, batches, folder / "work", Options()).result


CASES = {
    "argmax": (
        "y = ArgMax <axis = 1, keepdims = 0> (s)", "y = ArgMin <axis = 1, keepdims = 0> (s)", "int64", ""
    ),
    "the last of equal ones": (
        "r = Relu (s)\n y = ArgMin <axis = 1, keepdims = 0> (r)",
        "r = Relu (s)\n y = ArgMin <axis = 1, keepdims = 0, select_last_index = 1> (r)", "int64", "",
    ),
    "the smallest in place of the largest": (
        "v, y = TopK <axis = 1, largest = 1> (s, k)", "v, y = TopK <axis = 1, largest = 0> (s, k)", "int64", ", 3"
    ),
    "greater": ("y = Greater (s, zero)", "y = Less (s, zero)", "bool", ", 12"),
    "and equal": (
        "r = Relu (s)\n y = Greater (r, zero)", "r = Relu (s)\n y = GreaterOrEqual (r, zero)", "bool", ", 12"
    ),
    "a cast that rounds": (
        "y = Cast <to = 7> (s)", "r = Round (s)\n y = Cast <to = 7> (r)", "int64", ", 12"
    ),
    "integers behind": (
        "a = ArgMax <axis = 1> (s)\n y = Add (a, one)", "a = ArgMax <axis = 1> (s)\n y = Sub (a, one)", "int64", ", 1"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_makes_integers_of_numbers_is_found(case: str, tmp_path: Path) -> None:
    ours, theirs, kind, shape = CASES[case]
    source, target = (
        network(tmp_path / f"{place}.onnx", text, kind, shape) for place, text in enumerate((ours, theirs))
    )
    right = localized(source, source, tmp_path)
    assert right.verdict is Verdict.EQUIVALENT
    assert right.coverage is not None
    assert right.coverage.nodes == right.coverage.all_nodes
    result = localized(source, target, tmp_path)
    assert result.verdict is Verdict.FAULTY, result.reason
    [fault] = result.faults
    assert fault.target_tensor == "y"
    assert fault.target_layers[0] in {"y", "v", "r"}


def test_a_fault_before_that_integers_hardly_show(tmp_path: Path) -> None:
    """The argmax is another one for some inputs; what's guilty is what computes the numbers."""
    ours = network(tmp_path / "s.onnx", "y = ArgMax <axis = 1, keepdims = 0> (s)", "int64", "")
    theirs = network(tmp_path / "t.onnx", "g = Tanh (s)\n y = ArgMax <axis = 1, keepdims = 0> (g)", "int64", "")
    assert localized(ours, theirs, tmp_path).verdict is Verdict.EQUIVALENT  # the same ones, exactly
    theirs = network(tmp_path / "t.onnx", "g = Sin (s)\n y = ArgMax <axis = 1, keepdims = 0> (g)", "int64", "")
    result = localized(ours, theirs, tmp_path)
    assert result.verdict is Verdict.FAULTY
    assert result.faults[0].target_layers[0] in {"g", "y"}
