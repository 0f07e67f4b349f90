"""What kernels compute, and which operators they stand for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_networks as networks
import pytest
import small_models as small
from crossed import crossed

from conrepair.formats.models.model import Model
from conrepair.formats.tvm.backend import BACKEND
from conrepair.formats.tvm.calls import CALLS
from conrepair.formats.tvm.capture import KERNELS, load_calls
from conrepair.formats.tvm.runnable import TvmRunnable
from conrepair.formats.tvm.stepping import Stepping
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import InferenceError, ModelLoadError

SETTINGS = ("O0", "O1", "O2", "O3")


def encoder(folder: Path) -> Model:
    inputs = (TensorSpec("x", ("batch", 4, 32), "float32"),)
    return small.model_of("onnx", networks.encoder(folder / "encoder.onnx"), inputs=inputs)


def twins(folder: Path) -> Model:
    """The same block twice: both become one fused kernel, called twice; and an operator that changes nothing."""
    text = """twins (float[1, 4, 6, 6] image) => (float[1, 4, 6, 6] y) {
        a = Conv <pads = [1, 1, 1, 1]> (image, w)
        b = Relu (a)
        c = Conv <pads = [1, 1, 1, 1]> (b, w)
        d = Relu (c)
        y = Identity (d)
    }"""
    return small.model_of("onnx", networks.written(folder / "twins.onnx", text, {"w": networks.drawn(4, 4, 3, 3)}))


def convnet(folder: Path) -> Model:
    return small.model_of("onnx", small.onnx_convnet(folder / "net.onnx"))


def built(model: Model, folder: Path, setting: str, batch: int = 1, **options: Any) -> TvmRunnable:
    folder.mkdir()
    BACKEND.compile(model, {"setting": setting, **options}, batch, folder)
    return TvmRunnable(folder)


def drawn_feeds(runnable: TvmRunnable) -> dict[str, Any]:
    generator = np.random.default_rng(3)
    return {
        spec.name: generator.normal(size=spec.shape).astype(np.float32)
        if spec.dtype == "float32"
        else generator.integers(0, 5, spec.shape).astype(spec.dtype)
        for spec in runnable.inputs
    }


@pytest.mark.parametrize(
    ("make", "setting"),
    crossed(
        [convnet, encoder, twins],
        SETTINGS,
        quick=[((convnet, encoder, twins)[place % 3], setting) for place, setting in enumerate(SETTINGS)],
    ),
)
def test_each_kernel_computes_the_tensor_that_it_is_said_to(make: Any, setting: str, tmp_path: Path) -> None:
    model = make(tmp_path)
    runnable = built(model, tmp_path / "build", setting)
    feeds = drawn_feeds(runnable)
    folder = tmp_path / "run"
    folder.mkdir()
    BACKEND.capture(runnable, [feeds, feeds], 2, folder)
    record = json.loads((folder / KERNELS).read_text())
    assert record["batches"] == 2
    results = {
        tensor: np.load(folder / result["file"])
        for kernel in record["kernels"]
        for result in kernel["results"]
        for tensor in result["tensors"]
    }
    nodes = onnx.load(model.path).graph.node
    computed = [name for node in nodes for name in node.output if name in results]
    for name, expected in networks.all_values(model.path, computed, feeds).items():
        assert results[name].shape == (2, *expected.shape)
        np.testing.assert_allclose(results[name][1], expected, rtol=1e-4, atol=1e-5)
    assert onnx.load(model.path).graph.output[0].name in computed
    # Each operator is in a kernel, and each kernel stands for some.
    members = [member["name"] for kernel in record["kernels"] for member in kernel["members"]]
    names = {node.name or node.output[0] for node in nodes if node.op_type not in {"Constant", "Shape"}}
    assert all(kernel["members"] for kernel in record["kernels"])
    assert set(members) <= names
    if make is not encoder:  # some of its operators compute sizes, which are numbers in a build
        assert set(members) == names


def test_fused_kernels_list_their_members(tmp_path: Path) -> None:
    calls = load_calls(built(twins(tmp_path), tmp_path / "build", "O2").folder)
    first, second = calls.calls
    assert first.function == second.function
    assert first.members == ("a", "b")
    assert second.members == ("c", "d", "y")
    assert [calls.tensors[call.writes[0]] for call in (first, second)] == [("b",), ("d", "y")]
    assert calls.operators["a"] == "Conv"


@pytest.mark.parametrize("form", ["torch", "tflite"])
def test_other_importers_name_their_operators(form: str, tmp_path: Path) -> None:
    import torch

    if form == "torch":
        network = small.torch_convnet().eval()
        path = small.export_pt2(network, [torch.from_numpy(small.images())], tmp_path / "net.pt2")
    else:
        path = small.tflite_of(small.keras_convnet(), tmp_path / "net.tflite")
    runnable = built(small.model_of(form, path), tmp_path / "build", "O2", debug_enabled=True)
    calls = load_calls(runnable.folder)
    assert all(call.members for call in calls.calls)
    kinds = " ".join(calls.operators.values()).lower()
    assert "conv" in kinds
    record = json.loads((runnable.folder / "build.json").read_text())
    assert record["source"]["kept"] in record["files"]


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_kernel_reads_what_it_is_given(setting: str, tmp_path: Path) -> None:
    """Only what is needed runs; a reshape, which is a view, doesn't carry what it's given to where it came from."""
    text = """views (float[2, 6] x) => (float[2, 6] y, float[2, 3, 2] z) {
        a = Exp (x)
        b = Reshape (a, shape)
        z = Neg (b)
        y = Abs (a)
    }"""
    path = networks.written(tmp_path / "net.onnx", text, {"shape": np.array([2, 3, 2])})
    runnable = built(small.model_of("onnx", path), tmp_path / "build", setting, 2, disabled_pass=["FuseOps"])
    calls = load_calls(runnable.folder)
    values = {name: value for value, names in calls.tensors.items() for name in names}
    x, b = networks.drawn(2, 6), networks.drawn(2, 3, 2, seed=4)
    found: dict[str, Any] = {}

    def note(call: Any, arrays: Any) -> None:
        found.update(zip(call.writes, arrays, strict=True))

    stepping = Stepping(runnable, calls)
    stepping.run({values["x"]: x, values["b"]: b}, [values["z"], values["y"]], note)
    np.testing.assert_array_equal(found[values["z"]], -b)
    np.testing.assert_allclose(found[values["y"]], np.exp(x), rtol=1e-6)
    assert set(found) == {values["z"], values["y"]}
    stepping.run({values["a"]: x}, [values["y"]], note)
    np.testing.assert_array_equal(found[values["y"]], np.abs(x))
    np.testing.assert_allclose(runnable.run({"x": x})["y"], np.exp(x), rtol=1e-6)


def test_a_kernel_reads_a_scalar_that_it_is_given(tmp_path: Path) -> None:
    text = """scalar (float x) => (float y) {
        a = Exp (x)
        y = Neg (a)
    }"""
    runnable = built(
        small.model_of("onnx", networks.written(tmp_path / "net.onnx", text, {})), tmp_path / "build", "O0"
    )
    calls = load_calls(runnable.folder)
    values = {name: value for value, names in calls.tensors.items() for name in names}
    found: list[Any] = []
    given = {values["x"]: np.float32(0), values["a"]: np.array(3, np.float32)}
    Stepping(runnable, calls).run(given, [values["y"]], lambda _, arrays: found.extend(arrays))
    assert found == [np.float32(-3)]


def test_what_has_sizes_that_depend_on_values_runs_without_a_list_of_kernels(tmp_path: Path) -> None:
    text = """boxes (float[1, 3, 4] boxes, float[1, 1, 3] scores) => (int64[N, 3] y) {
        y = NonMaxSuppression (boxes, scores, most)
    }"""
    model = small.model_of("onnx", networks.written(tmp_path / "boxes.onnx", text, {"most": np.array([2])}))
    runnable = built(model, tmp_path / "build", "O0")
    boxes = np.array([[[0, 0, 1, 1], [5, 5, 6, 6], [0, 0, 1, 1]]], np.float32)
    found = runnable.run({"boxes": boxes, "scores": np.array([[[0.5, 0.9, 0.1]]], np.float32)})
    assert found["y"].tolist() == [[0, 0, 1], [0, 0, 0]]
    with pytest.raises(ModelLoadError, match=r"has no calls\.json"):
        load_calls(runnable.folder)


def test_a_record_of_another_build_is_refused(tmp_path: Path) -> None:
    runnable = built(convnet(tmp_path), tmp_path / "build", "O2")
    other = built(convnet(tmp_path), tmp_path / "other", "O0")
    with pytest.raises(InferenceError, match="Build it again"):
        Stepping(runnable, load_calls(other.folder)).run({}, ["0.0"], lambda *_: None)
    (runnable.folder / CALLS).unlink()
    with pytest.raises(ModelLoadError, match=r"has no calls\.json"):
        load_calls(runnable.folder)
