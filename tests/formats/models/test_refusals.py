"""What ONNX Runtime refuses, in words."""

from __future__ import annotations

from pathlib import Path

import narrow_networks
import pytest
from onnx import TensorProto

from conrepair.formats.models.model import Model
from conrepair.formats.models.refusals import refusal


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            "[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : Could not find an implementation for MatMul(13) node with "
            "name 'product'",
            "no kernel for MatMul of bfloat16 on the CPU (`product`). Convert it to float32",
        ),
        ("MLDataType for: tensor(complex64) is not currently registered", "no tensors of complex64. Convert it"),
        (
            ":<lambda()> Failed to construct locale with name:en_US.UTF-8:locale::facet::_S_create_c_locale name "
            "not valid:Please, install necessary language-pack-XX and configure locales",
            "needs the locale en_US.UTF-8, which this system doesn't have. Install it (Debian: "
            "`apt install locales`, then `localedef -i en_US -f UTF-8 en_US.UTF-8`)",
        ),
    ],
)
def test_words(message: str, words: str, tmp_path: Path) -> None:
    path = narrow_networks.computed_in(tmp_path / "a.onnx", TensorProto.BFLOAT16)
    found = refusal(Model("onnx", str(path), ""), message)
    assert found is not None
    assert words in found


def test_other_messages_stay(tmp_path: Path) -> None:
    path = narrow_networks.computed_in(tmp_path / "a.onnx")
    assert refusal(Model("onnx", str(path), ""), "out of memory") is None
    assert refusal(Model("tflite", str(path), ""), "tensor(complex64)") is None
