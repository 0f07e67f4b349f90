"""A right file is equivalent, a wrong one is named at its layer, ONNX files run under options."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import conrepair

openvino = pytest.importorskip("openvino", reason="OpenVINO isn't installed: pip install openvino")
pytest.importorskip("conrepair_openvino", reason="the plug-in isn't installed: pip install plugins/openvino")

_NUMBERS = ", ".join(f"{(place * 7919 % 23 - 11) / 12:.4f}" for place in range(36))
_NET = f"""<ir_version: 8, opset_import: ["" : 17]> net (float[n, 1, 8, 8] x) => (float[n, 4] y)
<float[4, 1, 3, 3] w = {{{_NUMBERS}}}, float[4] b = {{0.1, -0.2, 0.3, 0.4}}>
{{ c = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (x, w, b) r = Relu (c)
a = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (r) e = Sigmoid (a)
y = ReduceMax <keepdims = 0, axes = [2, 3]> (e) }}"""

_WINDOW = 'dilations="1, 1" pads_begin="{0}, {0}" pads_end="{1}, {1}"'


@pytest.fixture
def net(tmp_path: Path) -> Path:
    onnx.save(onnx.parser.parse_model(_NET), tmp_path / "net.onnx")
    return tmp_path / "net.onnx"


def _ir(net: Path, name: str = "net", change: str = "") -> Path:
    path = net.with_name(f"{name}.xml")
    openvino.save_model(openvino.convert_model(net), path, compress_to_fp16=False)
    text = path.read_text()
    old, _, new = change.partition(" -> ")
    assert old in text
    path.write_text(text.replace(old, new))
    return path


def test_a_right_file(net: Path) -> None:
    assert conrepair.localize(net, _ir(net)).verdict == "equivalent"


@pytest.mark.parametrize(
    ("change", "layer", "words"),
    [
        (
            f"{_WINDOW.format(1, 1)} -> {_WINDOW.format(0, 2)}",
            "c",
            "pads",
        ),
        ('exclude-pad="true" -> exclude-pad="false"', "a", "count_include_pad"),
    ],
)
def test_a_wrong_one_is_named_at_its_layer(net: Path, change: str, layer: str, words: str) -> None:
    found = conrepair.localize(net, _ir(net, "wrong", change))
    (fault,) = found.faults
    assert found.verdict == "faulty"
    assert layer in {*fault.source_layers, fault.source_tensor}
    assert any(words in line for line in fault.evidence)


@pytest.mark.parametrize(("precision", "verdict"), [("f32", "equivalent"), ("bf16", "noise")])
def test_an_onnx_file_runs_in_a_precision(tmp_path: Path, precision: str, verdict: str) -> None:
    numbers = ", ".join(f"{(place * 7919 % 2003 - 1001) / 1000:.3f}" for place in range(64 * 32))
    text = f"""<ir_version: 8, opset_import: ["" : 17]> net (float[n, 64] x) => (float[n, 32] y)
    <float[64, 32] w = {{{numbers}}}> {{ y = MatMul (x, w) }}"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "net.onnx")
    done = conrepair.execute(tmp_path / "net.onnx", backend="openvino", options={"precision": precision})
    assert done.verdict == verdict


@pytest.mark.parametrize(
    ("options", "words"), [({"precison": "f32"}, "has no option"), ({"device": "TPU"}, "no device TPU here")]
)
def test_what_is_not_there_is_said(net: Path, options: dict[str, str], words: str) -> None:
    with pytest.raises(conrepair.ConrepairError, match=words):
        conrepair.execute(net, backend="openvino", options=options)


def test_weights_beside_the_graph_belong_to_it(net: Path) -> None:
    path = _ir(net)
    first = conrepair.compare(net, path)
    weights = path.with_suffix(".bin")
    weights.write_bytes(bytes(len(weights.read_bytes())))
    assert (first.verdict, conrepair.compare(net, path).verdict) == ("equivalent", "faulty")


def test_an_audit_converts_to_it(net: Path) -> None:
    made = conrepair.convert(net, to="openvino", output=net.with_name("made.xml"))
    assert made.verdict == "equivalent"


def test_a_layer_that_it_computes_wrongly_is_named(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 18]> net (float[n, 2, 9, 9] x) => (float[n, 2, 4, 4] y)
    <float[4] sizes = {1.0, 1.0, 0.5, 0.5}>
    { e = Sigmoid (x) z = Resize <mode = "linear", antialias = 1> (e, , sizes) y = Tanh (z) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "net.onnx")
    found = conrepair.localize(tmp_path / "net.onnx", tmp_path / "net.onnx", backend="openvino")
    if found.verdict == "equivalent":
        pytest.skip("this OpenVINO smooths as it shrinks")
    (fault,) = found.faults
    assert (fault.kind, fault.source_tensor) == ("compilation", "z")


def test_layers_that_it_computes_rightly_are_not_at_fault(net: Path) -> None:
    assert conrepair.localize(net, net, backend="openvino").verdict == "equivalent"
    narrow = conrepair.localize(net, net, backend="openvino", options={"precision": "bf16"})
    assert (narrow.verdict, narrow.faults) == ("noise", ())
