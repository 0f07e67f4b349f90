"""The rewriting as a converter: on its own, only when pinned, with the same outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import small_models as small

from conrepair.formats.converters.all_converters import converter
from conrepair.formats.converters.base import Converter
from conrepair.formats.converters.routes import find_route, pinned_route, reachable
from conrepair.formats.onnx.load.framework import OnnxFramework, OnnxRunnable
from conrepair.ground.runtime.errors import ConfigError, ConversionError


def normalised(source: Path, folder: Path, **options: Any) -> Path:
    step = converter("onnx-normalise")
    return folder / step.convert(small.model_of("onnx", source), folder, step.complete(options))


@pytest.mark.parametrize("kind", ["convnet", "pair", "twins", "text"])
@pytest.mark.parametrize("opset", [0, 13, 19])
def test_networks(tmp_path: Path, kind: str, opset: int) -> None:
    source = getattr(small, f"onnx_{kind}")(tmp_path / "net.onnx")
    (tmp_path / "out").mkdir()
    path = normalised(source, tmp_path / "out", opset=opset)
    onnx.checker.check_model(path, full_check=True)
    framework = OnnxFramework()
    one, two = (framework.describe(small.model_of("onnx", item)) for item in (source, path))
    assert two.opset == (opset or one.opset)
    assert (two.inputs, [spec.name for spec in two.outputs]) == (one.inputs, [spec.name for spec in one.outputs])
    feeds = {
        spec.name: np.random.default_rng(0)
        .integers(0, 5, [size if isinstance(size, int) else 3 for size in spec.shape])
        .astype(spec.dtype)
        for spec in one.inputs
    }
    expected, results = (OnnxRunnable(small.model_of("onnx", item)).run(feeds) for item in (source, path))
    for name, array in expected.items():
        np.testing.assert_allclose(results[name], array, rtol=1e-4, atol=1e-5)


def test_a_fixed_batch(tmp_path: Path) -> None:
    source = small.onnx_convnet(tmp_path / "net.onnx")
    (tmp_path / "out").mkdir()
    runnable = OnnxRunnable(small.model_of("onnx", normalised(source, tmp_path / "out", batch=4)))
    assert runnable.inputs[0].shape[0] == 4


def test_what_an_opset_cannot_express(tmp_path: Path) -> None:
    node = onnx.helper.make_node("Trilu", ["x"], ["y"], "lower")
    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [3, 3]) for name in "xy"]
    graph = onnx.helper.make_graph([node], "g", values[:1], values[1:])
    source = small.save_onnx(tmp_path / "net.onnx", graph, opset=17)
    (tmp_path / "out").mkdir()
    with pytest.raises(ConversionError, match="Trilu 'lower' can't be expressed in opset 13"):
        normalised(source, tmp_path / "out", opset=13)


def test_it_is_used_only_when_pinned() -> None:
    assert find_route("onnx", "torch").name == "onnx2torch"
    assert find_route("onnx", "onnx").name != "onnx-normalise"
    assert pinned_route(["onnx-normalise", "onnx2torch"], "onnx").name == "onnx-normalise+onnx2torch"

    def edge(automatic: bool) -> Converter:
        return Converter("edge", "a", "b", ("pip",), lambda *_: "", automatic=automatic)

    assert reachable("a", [edge(True)]) == {"b"}
    assert reachable("a", [edge(False)]) == set()
    with pytest.raises(ConfigError, match="there is no route from a to b"):
        find_route("a", "b", [edge(False)])
