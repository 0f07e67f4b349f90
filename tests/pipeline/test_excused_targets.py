"""Int8 models that a budget excuses: `compare` looks into those that lost more than eight bits usually cost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from quantized_faults import FAULTS, in_eight_bits
from quantized_networks import source

from conrepair.cli import main


@pytest.mark.parametrize("times", [0, 5])
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
    assert ("a layer is at fault, which no budget excuses" in shown) is (times > 0), shown
