from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from conrepair.formats.converters.onnx_torch import CONVERTER
from conrepair.formats.models.model import Model
from conrepair.ground.runtime.onnx_session import open_session
from conrepair.ground.runtime.torchvision import import_torchvision
from conrepair.verdicts.truth.agreement import agreed
from conrepair.verdicts.truth.referees import CannotJudgeError, OnnxReference, OnnxRuntime, PyTorch, Referee
from conrepair.verdicts.truth.widening import doubled

import_torchvision()  # onnx2torch imports it
pytest.importorskip("onnx2torch")
Array = np.ndarray[Any, Any]
TEXT = "g (float[2, 3] x) => (float[2, 4] y) { h = MatMul (x, w) t = Tanh (h) y = Mul (t, c) }"


def _model(text: str, opset: int = 17, **weights: Array) -> onnx.ModelProto:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}, "my" : 1]> {text}')
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    return model


@pytest.fixture
def network() -> onnx.ModelProto:
    weights = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    return _model(TEXT, w=weights, c=np.array(0.3, np.float32))


@pytest.fixture
def convert(tmp_path: Path) -> Callable[[onnx.ModelProto], Model]:
    def run(model: onnx.ModelProto) -> Model:
        path = tmp_path / "model.onnx"
        onnx.save(model, path)
        name = CONVERTER.convert(Model("onnx", str(path), ""), tmp_path, {"opset": 17})
        return Model("torch", str(tmp_path / name), "")

    return run


FEEDS = {"x": np.random.default_rng(1).normal(size=(2, 3)).astype(np.float32)}


def test_all_three_agree_to_the_last_digits_on_tensors_on_the_way_too(
    network: onnx.ModelProto, convert: Callable[[onnx.ModelProto], Model]
) -> None:
    referees = [OnnxReference(), PyTorch(convert), OnnxRuntime()]
    found = agreed(referees, network, FEEDS)
    assert found.referees == ("ONNX's reference", "PyTorch", "ONNX Runtime")
    assert not found.disagreements
    weights = [numpy_helper.to_array(item).astype(float) for item in network.graph.initializer]
    product = FEEDS["x"].astype(float) @ weights[0]
    for truth in (referee.answers(network, FEEDS, ["h"]) for referee in referees):
        assert truth["y"].dtype == truth["h"].dtype == np.float64
        assert np.allclose(truth["h"], product, rtol=1e-14)
        assert np.allclose(truth["y"], np.tanh(product) * weights[1], rtol=1e-14)


class _Wrong(Referee):
    """Says something else at one place."""

    name = "somebody"

    def computed(self, model: onnx.ModelProto, feeds: Mapping[str, Array], tensors: Sequence[str]) -> Any:
        found = OnnxReference().answers(model, feeds, tensors)
        found["y"] = found["y"].copy()
        found["y"][1, 2] *= 1 + 1e-12
        return found


def test_who_is_alone_is_outvoted_and_told_where(network: onnx.ModelProto) -> None:
    found = agreed([_Wrong(), OnnxReference(), OnnxRuntime()], network, FEEDS)
    assert found.referees == ("ONNX's reference", "ONNX Runtime")
    (told,) = found.disagreements
    assert (told.tensor, told.index, told.count) == ("y", (1, 2), 1)
    assert told.over > 16
    assert told.bounds < 1e-3  # turns no verdict about float32
    assert str(told).startswith("y at [1, 2]: ONNX's reference says ")
    assert "somebody says" in str(told)


def test_refusals_name_the_operator(network: onnx.ModelProto) -> None:
    with pytest.raises(CannotJudgeError, match="Erf") as raised:
        OnnxRuntime().answers(_model("g (float[2, 3] x) => (float[2, 3] y) { y = Erf (x) }"), FEEDS)
    assert raised.value.operator == "Erf"
    unknown = _model("g (float[2, 3] x) => (float[2, 3] y) { y = my.Foo (x) }")
    assert not agreed([OnnxReference(), OnnxRuntime()], unknown, FEEDS).referees
    for referee in (OnnxReference(), OnnxRuntime()):
        with pytest.raises(CannotJudgeError, match="Foo"):
            referee.answers(unknown, FEEDS)
    clipped = "g (float[2, 1, 3] x) => (float[a, b, c, d] y) { y = RNN <hidden_size = 2, clip = 0.5> (x, w, r) }"
    with pytest.raises(CannotJudgeError, match="left out") as raised:
        OnnxReference().answers(_model(clipped), FEEDS)
    assert raised.value.operator == "RNN"
    pooled = 'AveragePool <auto_pad = "VALID", dilations = [2], kernel_shape = [2]> (x)'
    with pytest.raises(CannotJudgeError, match="pads by itself"):
        OnnxReference().answers(_model(f"g (float[1, 2, 3] x) => (float[1, 2, 1] y) {{ y = {pooled} }}", 19), FEEDS)


@pytest.mark.parametrize(
    "text",
    [
        """g (float[2, 3] x) => (float[2, 3] y) <int64 n = {1}> { y = Loop (n, "", x) <body = b (int64 i, bool c,
        float[2, 3] v) => (bool d, float[2, 3] w) { d = Identity (c) w = Relu (v) }> }""",
        "g (float[1, 2, 3] x) => (float[1, 2, 2] z, int64[1, 2, 2] y) { z, y = MaxPool <kernel_shape = [2]> (x) }",
        """g (float[1, 1, 2, 3] x, float[1, 1, 1, 2] w) => (float[1, 1, 1, 1] y)
        { y = GridSample <mode = "cubic", padding_mode = "border"> (x, w) }""",
    ],
    ids=["Loop", "MaxPool", "GridSample"],
)
def test_what_the_reference_computes_otherwise_than_all_others_is_refused(
    text: str, request: pytest.FixtureRequest
) -> None:
    with pytest.raises(CannotJudgeError) as raised:
        OnnxReference().answers(_model(text), {})
    assert raised.value.operator == request.node.callspec.id


def test_what_pytorch_would_fold_in_float32_is_computed_in_float64(
    convert: Callable[[onnx.ModelProto], Model],
) -> None:
    text = "g (float[2, 3] x) => (float[2, 3] y) { e = Exp (w) y = Mul (x, e) }"
    model = _model(text, w=np.array([0.1, 0.2, 0.3], np.float32))
    given = PyTorch(convert).answers(model, FEEDS)["y"]
    assert np.allclose(given, OnnxReference().answers(model, FEEDS)["y"], rtol=1e-14, atol=0)
    window = "g (float[2, 4] x) => (float[2, 4] y) { e = HannWindow (n) y = Mul (x, e) }"
    with pytest.raises(CannotJudgeError, match="folded") as raised:
        PyTorch(convert).answers(_model(window, n=np.array(4)), {})
    assert raised.value.operator == "HannWindow"


CORRECTED = {
    "ConvTranspose <group = 2, strides = [2, 2]> (x, w)": ((1, 4, 3, 3), {"w": (4, 3, 3, 3)}),
    'ConvTranspose <auto_pad = "SAME_LOWER", strides = [2, 3]> (x, w, b)': (
        (1, 2, 3, 4),
        {"w": (2, 2, 3, 4), "b": (2,)},
    ),
    "ConvTranspose <output_padding = [1], strides = [2], pads = [2, 0], dilations = [2]> (x, w)": (
        (2, 2, 4),
        {"w": (2, 1, 3)},
    ),
    "ConvTranspose <output_shape = [8], strides = [2]> (x, w)": ((1, 2, 4), {"w": (2, 3, 3)}),
    "AffineGrid (x, size)": ((2, 2, 3), {"size": (2, 1, 4, 5)}),
    "AffineGrid <align_corners = 1> (x, size)": ((1, 3, 4), {"size": (1, 1, 2, 3, 4)}),
    "DeformConv <pads = [1, 0, 2, 1], strides = [1, 2], dilations = [2, 1]> (x, w, o)": (
        (2, 2, 6, 5),
        {"w": (3, 2, 2, 3), "o": (2, 12, 7, 2)},
    ),
    "DeformConv <group = 2, offset_group = 2> (x, w, o, b, m)": (
        (1, 4, 4, 3),
        {"w": (6, 2, 2, 2), "o": (1, 16, 3, 2), "b": (6,), "m": (1, 8, 3, 2)},
    ),
    "GlobalMaxPool (x)": ((2, 3, 4), {}),
    "LpNormalization <p = 1> (x)": ((2, 5), {}),
    "LRN <size = 5> (x)": ((1, 3, 2, 2), {}),
    "LpPool <kernel_shape = [2, 2], pads = [1, 0, 1, 0], p = 3> (x)": ((1, 2, 4, 5), {}),
    'LpPool <kernel_shape = [3], auto_pad = "SAME_UPPER", strides = [2]> (x)': ((1, 2, 6), {}),
    "Mean (w, x)": ((2, 3), {"w": (3,)}),
    "Pad (x, pads)": ((2, 5), {"pads": (0, -1, 1, 2)}),
    'Pad <mode = "reflect"> (x, pads)': ((2, 5), {"pads": (0, 2, 1, -1)}),
    'GridSample <mode = "bilinear"> (x, w)': ((1, 2, 3, 4), {"w": (1, 2, 2, 2)}),
    "GlobalLpPool <p = 3> (x)": ((2, 3, 4), {}),
    "GroupNormalization <num_groups = 2> (x, s, b)": ((2, 4, 3), {"s": (4,), "b": (4,)}),
    "MeanVarianceNormalization (x)": ((2, 3, 4, 4), {}),
    "Softmax <axis = 1> (x)": ((2, 3, 4), {}),
}


def _opsets(text: str) -> tuple[int, ...]:
    """Those in which it can be written so."""
    since = {"GridSample": 16, "AffineGrid": 20, "DeformConv": 19, "GroupNormalization": 21}
    first = since.get(text.split()[0])
    return (11, 21) if first is None else (first,)


@pytest.mark.parametrize(("text", "opset"), [(text, opset) for text in CORRECTED for opset in _opsets(text)])
def test_the_reference_computes_what_onnxruntime_does_and_in_float64(text: str, opset: int) -> None:
    shape, weights = CORRECTED[text]
    generator = np.random.default_rng(2)
    arrays = {
        name: np.array(size) if name in {"pads", "size"} else generator.normal(size=size).astype(np.float32)
        for name, size in weights.items()
    }
    sizes = ", ".join(map(str, shape))
    model = _model(f"g (float[{sizes}] x) => (float y) {{ y = {text} }}", opset, **arrays)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    feeds = {"x": generator.normal(size=shape).astype(np.float32)}
    truth = OnnxReference().answers(model, feeds)["y"]
    given = open_session(model.SerializeToString(), threads=1, quiet=True).run(None, feeds)[0]
    assert truth.shape == given.shape
    assert np.allclose(truth, given, rtol=1e-5, atol=1e-6)
    assert "Max" in text or "Pad" in text or (truth != truth.astype(np.float32)).any()


def test_scales_of_resize_stay_float32_and_constants_are_widened() -> None:
    nodes = "k = Constant <value_float = 0.1> () r = Resize (x, , s) y = Mul (r, k)"
    text = f"g (float[1, 1, 2, 2] x) => (float[a, b, c, d] y) {{ {nodes} }}"
    wide = doubled(_model(text, s=np.array([1, 1, 2, 2], np.float32)))
    assert wide.graph.initializer[0].data_type == onnx.TensorProto.FLOAT
    assert wide.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.DOUBLE
    value = wide.graph.node[0].attribute[0]
    assert (value.name, value.t.data_type) == ("value", onnx.TensorProto.DOUBLE)
    assert numpy_helper.to_array(value.t) == np.float32(0.1)


def test_branches_are_widened() -> None:
    branch = "then_branch = a () => (float[2, 3] z) { z = Cast <to = 1> (i) }"
    other = "else_branch = b () => (float[2, 3] z) { z = Neg (x) }"
    text = f"g (float[2, 3] x, bool c) => (float[2, 3] y) {{ i = Cast <to = 7> (x) y = If <{branch}, {other}> (c) }}"
    given = OnnxReference().answers(_model(text), {"x": FEEDS["x"], "c": np.array(False)})
    assert given["y"].dtype == np.float64
    assert (given["y"] == -FEEDS["x"].astype(float)).all()
