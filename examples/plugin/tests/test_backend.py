"""The runtime computes what others do, and says what's wrong with its options."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from conrepair_onnx_reference import BACKEND

import conrepair
from conrepair.plugins import Model

_NET = """<ir_version: 8, opset_import: ["" : 17]> net (float[n, 1, 4, 4] x) => (float[n, 2, 4, 4] y)
<float[2, 1, 3, 3] w = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 2, 3, 4, 5, 6, 7, 8, 9}>
{ c = Conv <pads = [1, 1, 1, 1]> (x, w) y = Relu (c) }"""


@pytest.fixture
def net(tmp_path: Path) -> Path:
    onnx.save(onnx.parser.parse_model(_NET), tmp_path / "net.onnx")
    return tmp_path / "net.onnx"


def test_it_computes_what_onnx_runtime_does(net: Path) -> None:
    done = conrepair.execute(net, backend="onnx-reference")
    assert done.verdict == "equivalent"


def test_numbers_by_hand(net: Path) -> None:
    runnable = BACKEND.load(Model("onnx", str(net), ""), {})
    found = runnable.run({"x": np.ones((1, 1, 4, 4), np.float32)})["y"]
    assert found[0, 0, 1, 1] == pytest.approx(4.5)
    assert found[0, 1, 0, 0] == pytest.approx(5 + 6 + 8 + 9)


def test_an_option_that_there_is_not(net: Path) -> None:
    with pytest.raises(conrepair.ConrepairError, match="onnx-reference has no options, and is given threads"):
        conrepair.execute(net, backend="onnx-reference", options={"threads": 2})
