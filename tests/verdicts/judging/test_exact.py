"""Exact values, and who is further from them than rounding explains."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper

from conrepair.formats.models.model import Model
from conrepair.formats.networks.network import Network, open_network
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.verdicts.judging import numbers
from conrepair.verdicts.judging.exact import exact_values, first_wrong_kernel
from conrepair.verdicts.truth.referees import reference_of

SHAPE = (4, 6)


def _network(folder: Path, *nodes: onnx.NodeProto, output: str) -> Network:
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPE) for name in ("x", output)]
    graph = helper.make_graph(list(nodes), "net", ends[:1], ends[1:])
    path = folder / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return open_network(Model("onnx", str(path), "0" * 64), [TensorSpec("x", SHAPE, "float32")])


def test_the_kernel_that_is_off_is_named(tmp_path: Path) -> None:
    """ONNX Runtime's sigmoid has no right digit in the tail; Neg before it and Abs behind it are exact."""
    nodes = [
        helper.make_node(*item) for item in (("Neg", ["x"], ["a"]), ("Sigmoid", ["a"], ["b"]), ("Abs", ["b"], ["y"]))
    ]
    network = _network(tmp_path, *nodes, output="y")
    feeds = {"x": np.random.default_rng(0).uniform(20, 40, SHAPE).astype(np.float32)}
    exact = exact_values(network, feeds, ["y"])
    assert exact is not None
    assert np.allclose(exact.values["y"], 1 / (1 + np.exp(feeds["x"].astype(np.float64))), rtol=1e-12)
    kernel = first_wrong_kernel(network, exact)
    assert kernel is not None
    assert (kernel.operator, kernel.layer) == ("Sigmoid", "b")
    assert kernel.bounds > 100


def test_right_kernels_are_not(tmp_path: Path) -> None:
    nodes = [helper.make_node(*item) for item in (("Exp", ["x"], ["a"]), ("Sqrt", ["a"], ["y"]))]
    network = _network(tmp_path, *nodes, output="y")
    exact = exact_values(network, {"x": np.ones(SHAPE, np.float32)}, ["y"])
    assert exact is not None
    assert first_wrong_kernel(network, exact) is None


def test_too_much_work_is_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = _network(tmp_path, helper.make_node("Exp", ["x"], ["y"]), output="y")
    monkeypatch.setattr(numbers, "WORK", 1.0)
    assert exact_values(network, {"x": np.ones(SHAPE, np.float32)}, ["y"]) is None


@pytest.mark.parametrize(
    ("channels", "filters", "attributes"),
    [
        (3, 4, {"pads": [1, 2, 0, 1], "strides": [2, 1]}),
        (4, 8, {"group": 4, "dilations": [2, 1]}),
        (4, 6, {"group": 2, "auto_pad": "SAME_LOWER", "strides": [2, 3]}),
        (2, 3, {"auto_pad": "SAME_UPPER"}),
        (2, 3, {"auto_pad": "VALID"}),
    ],
)
def test_convolutions_are_those_of_others(channels: int, filters: int, attributes: dict[str, object]) -> None:
    """By PyTorch in float64 where it has the pads, else by ONNX's own evaluator."""
    generator = np.random.default_rng(1)
    group = int(attributes.get("group", 1))  # type: ignore[call-overload]
    weight, bias = generator.normal(size=(filters, channels // group, 3, 2)), generator.normal(size=filters)
    x = generator.normal(size=(2, channels, 9, 8))
    node = helper.make_node("Conv", ["x", "w", "b"], ["y"], **attributes)
    infos = [helper.make_tensor_value_info(name, TensorProto.DOUBLE, None) for name in ("x", "w", "b", "y")]
    graph = helper.make_graph([node], "conv", infos[:3], infos[3:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    feeds = {"x": x, "w": weight, "b": bias}
    [found] = reference_of(model).run(None, feeds)
    pads = attributes.get("pads")
    if "auto_pad" in attributes:
        [right] = onnx.reference.ReferenceEvaluator(model).run(None, feeds)
    else:
        top, left, bottom, right_pad = pads or (0, 0, 0, 0)  # type: ignore[misc]
        padded = torch.nn.functional.pad(torch.tensor(x), (left, right_pad, top, bottom))
        more = {"stride": attributes.get("strides", 1), "dilation": attributes.get("dilations", 1), "groups": group}
        right = torch.nn.functional.conv2d(padded, torch.tensor(weight), torch.tensor(bias), **more).numpy()  # type: ignore[arg-type]
    assert np.allclose(found, right, rtol=1e-12, atol=1e-12)
