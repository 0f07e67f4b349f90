"""Two ONNX files of one network, the second with a fault in one layer, and what conrepair must say of them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from documents import localization_in
from onnx import TensorProto, helper, numpy_helper

GUILTY = "conv2"


def save_pair(folder: Path) -> tuple[Path, Path]:
    """Convolutions, a pooling and a product; the target's second convolution has 1.5 times its bias."""
    generator = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return generator.normal(size=shape).astype(np.float32)

    weights = {"w1": normal(4, 3, 3, 3), "w2": normal(4, 4, 3, 3), "b2": normal(4), "w3": normal(4, 5)}
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c1"], name="conv1", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r1"], name="relu1"),
        helper.make_node("Conv", ["r1", "w2", "b2"], ["c2"], name=GUILTY, pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c2"], ["r2"], name="relu2"),
        helper.make_node("GlobalAveragePool", ["r2"], ["p"], name="pool"),
        helper.make_node("Flatten", ["p"], ["f"], name="flatten"),
        helper.make_node("MatMul", ["f", "w3"], ["y"], name="scores"),
    ]
    paths = folder / "source.onnx", folder / "target.onnx"
    for path, factor in zip(paths, (1.0, 1.5), strict=True):
        values = weights | {"b2": weights["b2"] * np.float32(factor)}
        graph = helper.make_graph(
            nodes,
            "net",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3, 9, 6])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 5])],
            [numpy_helper.from_array(array, name) for name, array in values.items()],
        )
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return paths


def run(
    conrepair: Sequence[str], arguments: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, without what an outer test run sets for Python."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        [*conrepair, *arguments],
        cwd=folder,
        env=inherited | dict(environment or {}),
        capture_output=True,
        text=True,
        check=False,
    )


def check_verbs(conrepair: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> None:
    """Inspect, compare, localize and repair the two files; the repaired file must answer as its source does."""
    source, target = map(str, save_pair(folder))

    def expect(code: int, *arguments: str) -> str:
        result = run(conrepair, arguments, folder, environment)
        assert result.returncode == code, (arguments, result.stdout, result.stderr)
        return result.stdout

    assert "Conv 2" in expect(0, "inspect", source, "-q")
    assert "faulty" in expect(1, "compare", source, target, "-q", "-o", "compared")
    expect(1, "localize", source, target, "-q", "-o", "localized")
    found = localization_in(folder / "localized")["faults"]
    assert [fault["target_layers"] for fault in found] == [[GUILTY]]
    expect(0, "repair", source, target, "-q", "-o", "repaired")
    assert "1 equivalent" in expect(
        0, "compare", source, str(folder / "repaired" / "repaired.onnx"), "-q", "-o", "compared"
    )
