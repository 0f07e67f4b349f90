"""ONNX files of versions that the installed ONNX Runtime doesn't read, with sizes that say nothing, without data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import small_models as small
from onnx import numpy_helper

import conrepair
from conrepair.application.jobs.probes import probe
from conrepair.formats.models.model import Model
from conrepair.formats.onnx.load.framework import FRAMEWORK
from conrepair.formats.onnx.load.readable import newest_read, read_copy
from conrepair.ground.runtime.errors import ModelLoadError

NEWEST = (onnx.IR_VERSION, onnx.defs.onnx_opset_version())
PLAIN = "h = MatMul (x, w) y = Relu (h)"
WEIGHT = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)


def write(
    path: Path,
    body: str = PLAIN,
    *,
    versions: tuple[int, int] = (8, 17),
    size: int | str = "N",
    factor: float = 1.0,
    external: bool = False,
    listed: bool = False,
) -> Model:
    """A network of one weight."""
    text = f'<ir_version: {versions[0]}, opset_import: ["" : {versions[1]}]> g (float[N, 4] x) => (float[N, 3] y)'
    proto = onnx.parser.parse_model(f"{text} {{ {body} }}")
    proto.graph.initializer.append(numpy_helper.from_array(WEIGHT * np.float32(factor), "w"))
    for node in proto.graph.node:
        node.ClearField("domain")  # as other writers leave it
    if listed:
        proto.graph.input.insert(0, onnx.helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, [4, 3]))
    if isinstance(size, int):
        for value in (proto.graph.input[-1], proto.graph.output[0]):
            value.type.tensor_type.shape.dim[0].dim_value = size
    data = f"{path.name}.data"
    onnx.save(proto, path, save_as_external_data=external, location=data if external else None, size_threshold=0)
    model: Model = small.model_of("onnx", path)
    return model


def given(model: Model) -> np.ndarray:
    [spec] = FRAMEWORK.describe(model).inputs
    return FRAMEWORK.load(model).run({spec.name: small.vectors(5, 4)})["y"]


@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("versions", [NEWEST, (NEWEST[0], 17), (8, NEWEST[1])])
@pytest.mark.parametrize("body", [PLAIN, "h = MatMul (x, w) c = Cast <to = 1> (h) y = Relu (c)"])
def test_newer_versions_are_lowered_where_they_run(
    body: str, versions: tuple[int, int], external: bool, tmp_path: Path
) -> None:
    model = write(tmp_path / "net.onnx", body, versions=versions, external=external)
    before = Path(model.path).read_bytes()
    about = FRAMEWORK.describe(model)
    assert (about.ir_version, about.opset) == versions
    np.testing.assert_array_equal(given(model), given(write(tmp_path / "old.onnx", body)))
    with read_copy(model) as read:
        proto = onnx.load(read.path)
        assert proto.ir_version <= newest_read()[0]
        assert proto.opset_import[0].version <= newest_read()[1]
        np.testing.assert_array_equal(numpy_helper.to_array(proto.graph.initializer[0]), WEIGHT)
    assert Path(model.path).read_bytes() == before


def test_what_is_not_newer_is_read_in_its_place(tmp_path: Path) -> None:
    model = write(tmp_path / "net.onnx")
    with read_copy(model) as read:
        assert read == model


def test_a_new_operator_is_named_with_what_to_do(tmp_path: Path) -> None:
    assert newest_read()[1] < 28, "another operator of the newest opset has to stand here"
    model = write(tmp_path / "net.onnx", "h = MatMul (x, w) y = SwiGLU (h, h)", versions=(14, 28))
    with pytest.raises(ModelLoadError, match=r"opset 28 is newer than the 2\d .* for SwiGLU .* Export it with opset"):
        FRAMEWORK.describe(model)


def test_newer_versions_are_looked_into_and_repaired_in_theirs(tmp_path: Path) -> None:
    right = write(tmp_path / "right.onnx", versions=NEWEST)
    wrong = write(tmp_path / "wrong.onnx", versions=NEWEST, factor=1.1)
    assert conrepair.compare(right.path, write(tmp_path / "old.onnx").path, in_process=True).exit_code == 0
    found = conrepair.localize(right.path, wrong.path, in_process=True)
    assert [fault.kind for fault in found.faults] == ["parameters"]
    repaired = conrepair.repair(right.path, wrong.path, in_process=True, output=tmp_path / "out", advice=0)
    assert repaired.exit_code == 0
    assert (tmp_path / "out" / "repaired.onnx").read_bytes() == Path(right.path).read_bytes()


@pytest.mark.parametrize("size", [-1, 0])
def test_sizes_that_say_nothing_are_open(size: int, tmp_path: Path) -> None:
    model = write(tmp_path / "net.onnx", size=size)
    assert [spec.shape for spec in FRAMEWORK.describe(model).inputs] == [("?", 4)]
    np.testing.assert_array_equal(given(model), given(write(tmp_path / "named.onnx")))
    with read_copy(model) as read:
        dim = onnx.load(read.path).graph.input[0].type.tensor_type.shape.dim[0]
        assert dim.WhichOneof("value") is None
    wrong = write(tmp_path / "wrong.onnx", size=size, factor=1.1)
    found = conrepair.localize(model.path, wrong.path, in_process=True)
    assert [fault.kind for fault in found.faults] == ["parameters"]


def test_weights_among_the_inputs_are_weights(tmp_path: Path) -> None:
    right = write(tmp_path / "right.onnx", listed=True, versions=(3, 8))
    wrong = write(tmp_path / "wrong.onnx", listed=True, versions=(3, 8), factor=1.1)
    about = FRAMEWORK.describe(right)
    assert ([spec.name for spec in about.inputs], about.parameters) == (["x"], 12)
    repaired = conrepair.repair(right.path, wrong.path, in_process=True, output=tmp_path / "out", advice=0)
    assert repaired.exit_code == 0
    assert (tmp_path / "out" / "repaired.onnx").read_bytes() == Path(right.path).read_bytes()


def test_data_under_another_name_is_named_and_not_guessed(tmp_path: Path) -> None:
    model = write(tmp_path / "net.onnx", external=True)
    (tmp_path / "net.onnx.data").rename(tmp_path / "weights.data")
    for action in (FRAMEWORK.describe, FRAMEWORK.load):
        with pytest.raises(
            ModelLoadError, match=r"calls net\.onnx\.data and which isn't there \(beside it: weights\."
        ):
            action(model)
    (tmp_path / "weights.data").unlink()
    with pytest.raises(ModelLoadError, match=r"isn't there \(it's alone; else export"):
        FRAMEWORK.load(model)


def test_doctor_says_what_is_read_and_written(tmp_path: Path) -> None:
    assert "writes IR version {} and opset {}".format(*NEWEST) in probe(tmp_path, "onnx")
    said = probe(tmp_path, "onnxruntime")
    assert "reads IR version {} and opset {}".format(*newest_read()) in said
    assert ("onnx writes by default is newer" in said) == (newest_read() != NEWEST)
