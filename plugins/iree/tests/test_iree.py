"""A right file is equivalent at each level; levels and flags that there aren't are said; types keep their sign."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest

import conrepair

pytest.importorskip("iree.compiler", reason="IREE isn't installed: pip install iree-base-compiler iree-base-runtime")
pytest.importorskip("conrepair_iree", reason="the plug-in isn't installed: pip install plugins/iree")

_NET = """<ir_version: 8, opset_import: ["" : 17]>
net (float[2, 1, 8, 8] x) => (float[2, 1, 4, 4] y, uint8[2, 1, 4, 4] z)
<float s = {0.01}, uint8 p = {3}>
{ t = Sigmoid (x) y = AveragePool <kernel_shape = [2, 2], strides = [2, 2]> (t) z = QuantizeLinear (y, s, p) }"""


@pytest.fixture
def net(tmp_path: Path) -> Path:
    onnx.save(onnx.parser.parse_model(_NET), tmp_path / "net.onnx")
    return tmp_path / "net.onnx"


@pytest.mark.parametrize("options", [{"level": "O0"}, {"level": "O3", "off": ["iree-opt-data-tiling"]}])
def test_a_right_file(net: Path, options: dict[str, Any]) -> None:
    assert conrepair.execute(net, backend="iree", options=options).verdict == "equivalent"


@pytest.mark.parametrize(
    ("options", "words"),
    [({"levl": "O1"}, "has no option"), ({"level": "O9"}, "is one of O0"), ({"off": ["x"]}, "has no flag 'x'")],
)
def test_what_is_not_there_is_said(net: Path, options: dict[str, Any], words: str) -> None:
    with pytest.raises(conrepair.ConrepairError, match=words):
        conrepair.execute(net, backend="iree", options=options)
