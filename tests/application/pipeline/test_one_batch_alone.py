"""Targets whose inputs leave the batch open, and whose shapes hold it: found, named and repaired."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.parser import parse_model

from conrepair.application.cli import main
from conrepair.diagnosis.repairs.outcomes import PATCH
from conrepair.diagnosis.repairs.patch import read_patch
from conrepair.formats.models.model import Model

GRAPH = """<ir_version: 8, opset_import: ["" : 17]>
net (float[batch, 2, 4] x) => (float[batch, 3] y) {
  flat = Reshape(x, first)
  hidden = MatMul(flat, w)
  active = Relu(hidden)
  back = Reshape(active, second)
  turned = Transpose <perm = [0, 2, 1]> (back)
  last = Reshape(turned, third)
  y = MatMul(last, v)
}"""
RIGHT = {"first": [-1, 8], "second": [-1, 2, 3], "third": [-1, 6]}


def network(path: str, *, factor: float = 1.0, **shapes: list[int]) -> None:
    model = parse_model(GRAPH)
    generator = np.random.default_rng(0)
    arrays = {"w": generator.normal(size=(8, 6)).astype(np.float32), "v": generator.normal(size=(6, 3))}
    arrays["v"][:, 1] *= factor
    arrays["v"] = arrays["v"].astype(np.float32)
    arrays |= {name: np.array(shape, np.int64) for name, shape in (RIGHT | shapes).items()}
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in arrays.items())
    onnx.save(model, path)


def shape_in(path: str, name: str) -> list[int]:
    graph = onnx.load(path).graph
    node = next(node for node in graph.node if node.output[0] == name)
    return list(onnx.numpy_helper.to_array(next(item for item in graph.initializer if item.name == node.input[1])))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    network("right.onnx")


def said(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join("".join(capsys.readouterr()).split())


@pytest.mark.parametrize(
    ("place", "shape", "refused"),
    [
        ("second", [4, 2, 3], "batches of 1, 2, 3, 16 fail: batches of 4 alone fit: `back`"),
        ("second", [7, 2, 3], "batches of 1, 2, 3, 16 fail: batches of 7 alone fit: `back`"),
        ("first", [1, 8], "batches of 2, 3, 16 fail: batches of 1 alone fit: `flat`"),
        ("first", [16, 8], "batches of 1, 2, 3 fail: batches of 16 alone fit: `flat`"),
    ],
)
def test_batches_that_fail_are_found_and_repaired(
    place: str, shape: list[int], refused: str, capsys: pytest.CaptureFixture[str]
) -> None:
    network("target.onnx", **{place: shape})
    assert main(["compare", "right.onnx", "target.onnx", "-q"]) == 1
    told = said(capsys)
    assert refused in told
    assert "ONNXRuntimeError" not in told
    assert main(["localize", "right.onnx", "target.onnx", "-q"]) == 1
    layer = {"first": "flat", "second": "back"}[place]
    assert f"1. structure at `{layer}`" in said(capsys)
    assert main(["repair", "right.onnx", "target.onnx", "-q", "-o", "out"]) == 0
    assert shape_in("out/repaired.onnx", layer) == [0, *shape[1:]]
    assert main(["compare", "right.onnx", "out/repaired.onnx", "-q"]) == 0


@pytest.mark.parametrize("shape", [[4, -1, 3], [1, -1, 3], [2, -1, 3]])
def test_batches_that_mix_samples_are_named_and_repaired(
    shape: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    network("target.onnx", second=shape)
    assert main(["localize", "right.onnx", "target.onnx", "-q"]) == 1
    assert f"`back` (Reshape) has the shape {shape} written into it" in said(capsys)
    assert main(["repair", "right.onnx", "target.onnx", "-q", "-o", "out"]) == 0
    assert shape_in("out/repaired.onnx", "back") == [0, -1, 3]


def test_what_else_is_wrong_is_found_behind_it(capsys: pytest.CaptureFixture[str]) -> None:
    network("target.onnx", factor=1.4, second=[4, 2, 3])
    assert main(["repair", "right.onnx", "target.onnx", "-q", "-o", "out"]) == 0
    assert "repaired: 2 found, 0 left" in said(capsys)
    patch, sha256 = read_patch(Path("out") / PATCH)
    patch.apply(Model("onnx", str(Path("target.onnx").absolute()), sha256), Path(), "again")
    for repaired in ("out/repaired.onnx", "again.onnx"):
        assert main(["compare", "right.onnx", repaired, "-q"]) == 0


def test_what_the_source_does_as_well_is_no_fault(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one.onnx", "other.onnx"):
        network(name, second=[1, -1, 3])
    for verb in ("compare", "localize"):
        assert main([verb, "one.onnx", "other.onnx", "-q"]) == 0
    network("one.onnx", second=[4, 2, 3])
    network("other.onnx", second=[4, 2, 3])
    assert main(["compare", "one.onnx", "other.onnx", "-q"]) == 0


def test_a_failure_is_told_in_words_where_no_shape_says_it(capsys: pytest.CaptureFixture[str]) -> None:
    rows = {"right": "sizes", "wrong": "numbers"}
    for name, shape in rows.items():
        model = parse_model(
            """<ir_version: 8, opset_import: ["" : 17]>
            net (float[batch, 4] x) => (float[batch, 7] y) {
              shape = Shape(x)
              front = Slice(shape, zero, one)
              sizes = Concat <axis = 0> (front, three)
              rows = Expand(row, SIZES)
              y = Concat <axis = 1> (x, rows)
            }""".replace("SIZES", shape)
        )
        arrays = {"zero": [0], "one": [1], "three": [3], "numbers": [4, 3]}
        model.graph.initializer.extend(
            onnx.numpy_helper.from_array(np.array(numbers, np.int64), key) for key, numbers in arrays.items()
        )
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((1, 3), np.float32), "row"))
        onnx.save(model, f"{name}.onnx")
    assert main(["compare", "right.onnx", "wrong.onnx", "-q"]) == 1
    told = said(capsys)
    assert "batches of 1, 2, 3, 16 fail: running the model failed at Concat: Non concat axis dimensions" in told
