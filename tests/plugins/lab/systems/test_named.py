"""What converters made answers by the names of the ONNX file."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

import numpy as np
import onnx
import pytest

from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import Model
from conrepair_lab.systems.system import Program, Setting, System

NETWORK = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 3, 5, 5] x, float[4, 1] y) => (float[2, 3, 5, 5] a, float[4, 1] b) { a = Tanh (x) b = Exp (y) }"""


class Converted(System):
    """What converters make of a file, in its own library."""

    name, plain, usual = "converted", "eager", "eager"
    settings = MappingProxyType({"eager": Setting("libraries")})

    def __init__(self, form: str) -> None:
        self.format = form

    def program(self, setting: Setting) -> Program:
        return Program("", "")


def model_of(text: str, folder: Path) -> Model:
    path = folder / "net.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    return Model("onnx", str(path), model_sha256(path))


@pytest.mark.parametrize("form", ["onnx", "torch", "keras", "tensorflow", "tflite"])
def test_a_system_answers_by_the_names_of_the_file(form: str, tmp_path: Path) -> None:
    model = model_of(NETWORK, tmp_path)
    x = np.linspace(-2, 2, 150, dtype=np.float32).reshape(2, 3, 5, 5)
    feeds = {"y": np.full((4, 1), 0.5, np.float32), "x": x}
    for _ in range(2):  # the second time what was converted is there
        found = Converted(form).open(model, Setting("libraries"), tmp_path).run(feeds)
        np.testing.assert_allclose(found["a"], np.tanh(feeds["x"]), atol=1e-6)
        np.testing.assert_allclose(found["b"], np.exp(feeds["y"]), atol=1e-6)


@pytest.mark.parametrize("form", ["onnx", "torch", "keras", "tensorflow", "tflite"])
def test_numbers_in_names_of_the_file_are_no_order(form: str, tmp_path: Path) -> None:
    """An output that's an input gets another name, and others keep theirs."""
    model = model_of(
        """<ir_version: 8, opset_import: ["" : 17]>
        g (float[2] t15, float[2] t3) => (float[2] t17, float[2] t15, float[2] t4)
        { t17 = Neg (t15) t4 = Exp (t3) }""",
        tmp_path,
    )
    feeds = {"t15": np.array([1, 2], np.float32), "t3": np.zeros(2, np.float32)}
    found = Converted(form).open(model, Setting("libraries"), tmp_path).run(feeds)
    assert {name: array.tolist() for name, array in found.items()} == {"t17": [-1, -2], "t15": [1, 2], "t4": [1, 1]}


@pytest.mark.parametrize("form", ["torch", "keras", "tensorflow", "tflite"])
def test_inputs_that_are_outputs_are_told_by_their_sizes(form: str, tmp_path: Path) -> None:
    """TFLite numbers them as outputs, and lists them by these numbers."""
    model = model_of(
        """<ir_version: 8, opset_import: ["" : 17]>
        g (float[3, 2] x, float[2] y) => (float[3, 2] a, float[2] b, float[3, 2] c)
        { a = Neg (x) b = Identity (y) c = Identity (x) }""",
        tmp_path,
    )
    feeds = {"x": np.ones((3, 2), np.float32), "y": np.array([1, 2], np.float32)}
    found = Converted(form).open(model, Setting("libraries"), tmp_path).run(feeds)
    assert {name: array.tolist() for name, array in found.items()} == {
        "a": [[-1, -1]] * 3,
        "b": [1, 2],
        "c": [[1, 1]] * 3,
    }
