"""A right file is equivalent, what tract hasn't is said, and a campaign judges it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import conrepair

pytest.importorskip("tract", reason="tract isn't installed: pip install tract")
pytest.importorskip("conrepair_tract", reason="the plug-in isn't installed: pip install plugins/tract")

_NET = """<ir_version: 8, opset_import: ["" : 17]>
net (float[n, 1, 8, 8] x, float[1] s) => (float[n, 1, 4, 4] y, float[n, 1, 8, 8] z)
{ z = Mul (x, s) t = Sigmoid (z) y = AveragePool <kernel_shape = [2, 2], strides = [2, 2]> (t) }"""


def _saved(folder: Path, text: str) -> Path:
    onnx.save(onnx.parser.parse_model(text), folder / "net.onnx")
    return folder / "net.onnx"


def test_a_right_file_with_open_sizes_and_several_inputs(tmp_path: Path) -> None:
    assert conrepair.execute(_saved(tmp_path, _NET), backend="tract").verdict == "equivalent"


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(conrepair.ConrepairError, match="tract has no options"):
        conrepair.execute(_saved(tmp_path, _NET), backend="tract", options={"level": "O3"})


def test_a_campaign_finds_what_is_wrong(tmp_path: Path) -> None:
    look = pytest.importorskip("conrepair_lab.fuzz.looking").look
    from conrepair_lab.cases.case import Case
    from conrepair_lab.systems.registry import entry

    asked = entry("tract")

    def verdict(op: str, shape: str = "") -> str:
        text = f'<ir_version: 8, opset_import: ["" : 17]> net (float[2, 2] x) => (float{shape} y) {{ y = {op} (x) }}'
        case = Case.of(onnx.parser.parse_model(text), {"x": np.ones((2, 2), np.float32)})
        return str(look(case, asked.runs, asked.chosen, tmp_path).verdict)

    assert verdict("Tanh", "[2, 2]") == "right"
    assert verdict("Celu <alpha = -3.78>", "[2, 2]") == "suspect"  # of tract 0.23
    assert verdict("Det") == "refused"
