"""Ways around a failure: the smallest first, what was asked for is kept, rewrites add up."""

from __future__ import annotations

from pathlib import Path

import small_models as small

from conrepair.diagnosis.repairs.conversion.remedies import RouteStep, all_rewritings, detours, exports, rewritings
from conrepair.formats.converters.all_converters import CONVERTERS, converter


def steps(*texts: str) -> list[RouteStep]:
    return [RouteStep(converter(text), {}) for text in texts]


def test_options_come_before_rewrites() -> None:
    ways = list(rewritings(steps("onnx2torch"), 0, ["Hardmax"]))
    assert ways[0].route == "onnx2torch,opset=13"
    assert "onnx-normalise,rewrite=one-hot+onnx2torch" in [way.route for way in ways]
    assert "onnx-normalise,expand=Hardmax+onnx2torch" in [way.route for way in ways]


def test_rewrites_add_up() -> None:
    first = next(way for way in rewritings(steps("onnx2torch"), 0, []) if "rewrite=flatten" in way.route)
    second = next(way for way in rewritings(first.steps, 1, []) if "gemm" in way.route)
    assert second.route == "onnx-normalise,rewrite=flatten,gemm+onnx2torch"
    assert second.words == "the graph is first rewritten (flatten, gemm)"
    assert second.begin == 0
    (everything,) = all_rewritings(second.steps, 1)
    assert everything.route.count("gemm") == 1


def test_only_onnx_is_rewritten() -> None:
    ways = [way.route for way in rewritings(steps("keras-tflite"), 0, [])]
    assert ways == ["keras-tflite,unfold=True"]
    assert not list(all_rewritings(steps("keras-tflite"), 0))


def test_other_options_of_the_steps_before() -> None:
    ways = [way.route for way in exports(steps("keras-onnx-tf2onnx", "onnx2torch"), 1)]
    assert ways == [f"keras-onnx-tf2onnx,opset={opset}+onnx2torch" for opset in (13, 18, 11)]


def test_detours(tmp_path: Path) -> None:
    source = small.model_of("onnx", small.onnx_convnet(tmp_path / "net.onnx"))
    ways = [tuple(step.converter.name for step in way.steps) for way in detours(steps("onnx2torch"), 0, source)]
    assert ("onnx-keras", "keras-torch") in ways
    assert not any("onnx2torch" in way for way in ways)
    assert all(CONVERTERS[name].environment is None for way in ways for name in way)
    assert len(set(ways)) == len(ways)
