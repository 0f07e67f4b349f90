"""What converters made answers by the names of the ONNX file."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

import numpy as np
import onnx
import pytest

from conrepair.frameworks.identity import model_sha256
from conrepair.frameworks.model import Model
from conrepair.systems.system import Setting, System

NETWORK = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 3, 5, 5] x, float[4, 1] y) => (float[2, 3, 5, 5] a, float[4, 1] b) { a = Tanh (x) b = Exp (y) }"""


@pytest.mark.parametrize("form", ["onnx", "torch", "keras", "tensorflow", "tflite"])
def test_a_system_answers_by_the_names_of_the_file(form: str, tmp_path: Path) -> None:
    class Converted(System):
        name, plain, usual, format = "converted", "eager", "eager", form
        settings = MappingProxyType({"eager": Setting("libraries")})

        def program(self, setting: Setting) -> str:
            return ""

    path = tmp_path / "net.onnx"
    onnx.save(onnx.parser.parse_model(NETWORK), path)
    model = Model("onnx", str(path), model_sha256(path))
    x = np.linspace(-2, 2, 150, dtype=np.float32).reshape(2, 3, 5, 5)
    feeds = {"y": np.full((4, 1), 0.5, np.float32), "x": x}
    for _ in range(2):  # the second time what was converted is there
        found = Converted().open(model, Setting("libraries"), tmp_path).run(feeds)
        np.testing.assert_allclose(found["a"], np.tanh(feeds["x"]), atol=1e-6)
        np.testing.assert_allclose(found["b"], np.exp(feeds["y"]), atol=1e-6)
