"""ONNX files in ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import small_models as small
from onnx import helper, numpy_helper

from conrepair.formats.onnx.load.framework import FRAMEWORK, OnnxRunnable
from conrepair.ground.runtime.errors import DataError, InferenceError, ModelLoadError
from conrepair.ground.runtime.files.whole import sha256_of

FLOAT, INT32, INT64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT32, onnx.TensorProto.INT64


def directly(path: Path, feeds: dict[str, small.Array]) -> dict[str, small.Array]:
    """ONNX Runtime called without conrepair."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


@pytest.fixture
def convnet(tmp_path: Path) -> Path:
    return small.onnx_convnet(tmp_path / "net.onnx")


# --- Description ---


def test_description(convnet: Path) -> None:
    about = FRAMEWORK.describe(small.model_of("onnx", convnet))
    assert about.format == "ONNX"
    assert [str(spec) for spec in about.inputs] == ["image: float32[batch, 3, 12, 10]"]
    assert [str(spec) for spec in about.outputs] == ["probabilities: float32[batch, 6]"]
    assert about.operators == {
        "BatchNormalization": 1, "Clip": 1, "Conv": 2, "Flatten": 1, "Gemm": 1, "MaxPool": 1, "Softmax": 1,
    }  # fmt: skip
    own = sum(np.prod(tensor.dims) for tensor in onnx.load(convnet).graph.initializer if tensor.dims)
    assert about.parameters == own == 386
    assert about.weights == {"float32": 386}
    assert (about.opset, about.producer, about.precision) == (17, "tests", "float32")


@pytest.mark.parametrize("opset", [11, 13, 15, 18, 20])
def test_opsets(tmp_path: Path, opset: int) -> None:
    path = small.onnx_convnet(tmp_path / "net.onnx", opset=opset)
    assert FRAMEWORK.describe(small.model_of("onnx", path)).opset == opset
    feeds = {"image": small.images()}
    np.testing.assert_array_equal(
        OnnxRunnable(small.model_of("onnx", path)).run(feeds)["probabilities"], directly(path, feeds)["probabilities"]
    )


def test_fixed_batch(tmp_path: Path) -> None:
    model = small.model_of("onnx", small.onnx_convnet(tmp_path / "net.onnx", batch=3))
    assert FRAMEWORK.describe(model).inputs[0].shape == (3, 3, 12, 10)
    runnable = FRAMEWORK.load(model)
    assert runnable.run({"image": small.images(3)})["probabilities"].shape == (3, 6)
    with pytest.raises(DataError, match="input image"):
        runnable.run({"image": small.images(2)})


def test_float16(tmp_path: Path) -> None:
    path = small.onnx_convnet(tmp_path / "net.onnx", half=True)
    model = small.model_of("onnx", path)
    about = FRAMEWORK.describe(model)
    assert (about.precision, about.inputs[0].dtype, about.outputs[0].dtype) == ("float16", "float16", "float16")
    feeds = {"image": small.images()}
    result = FRAMEWORK.load(model).run(feeds)["probabilities"]  # float32 feeds are cast
    halves = {"image": feeds["image"].astype(np.float16)}
    np.testing.assert_array_equal(result, directly(path, halves)["probabilities"])


def test_external_data(tmp_path: Path) -> None:
    inside = small.onnx_convnet(tmp_path / "inside.onnx")
    outside = small.onnx_convnet(tmp_path / "outside.onnx", external=True)
    assert (tmp_path / "outside.data").stat().st_size > 386 * 4
    about = FRAMEWORK.describe(small.model_of("onnx", outside))
    assert about.parameters == 386
    feeds = {"image": small.images()}
    result = FRAMEWORK.load(small.model_of("onnx", outside)).run(feeds)
    np.testing.assert_array_equal(result["probabilities"], directly(inside, feeds)["probabilities"])


def test_quantized_weights(tmp_path: Path) -> None:
    weight = numpy_helper.from_array(np.arange(-6, 6, dtype=np.int8).reshape(4, 3), "w")
    scale = numpy_helper.from_array(np.array(0.1, np.float32), "scale")
    graph = helper.make_graph(
        [helper.make_node("DequantizeLinear", ["w", "scale"], ["d"]), helper.make_node("MatMul", ["x", "d"], ["y"])],
        "quantized",
        [helper.make_tensor_value_info("x", FLOAT, ["n", 4])],
        [helper.make_tensor_value_info("y", FLOAT, ["n", 3])],
        [weight, scale],
    )
    about = FRAMEWORK.describe(small.model_of("onnx", small.save_onnx(tmp_path / "net.onnx", graph)))
    assert about.weights == {"int8": 12}
    assert about.precision == "quantized weights"


def test_most_matrices_in_few_bits_are_quantized_weights(tmp_path: Path) -> None:
    """Quantizers leave recurrent layers out, which may have most of the numbers."""
    small_ones = [numpy_helper.from_array(np.ones((4, 4), np.int8), name) for name in ("w0", "w1")]
    large = numpy_helper.from_array(np.ones((4, 300), np.float32), "large")
    bias = [numpy_helper.from_array(np.ones((1, 300), np.float32), name) for name in ("b0", "b1")]
    scale = numpy_helper.from_array(np.array(0.1, np.float32), "scale")
    nodes = [
        helper.make_node("DequantizeLinear", ["w0", "scale"], ["d0"]),
        helper.make_node("DequantizeLinear", ["w1", "scale"], ["d1"]),
        helper.make_node("MatMul", ["x", "d0"], ["h0"]),
        helper.make_node("MatMul", ["h0", "d1"], ["h1"]),
        helper.make_node("MatMul", ["h1", "large"], ["h2"]),
        helper.make_node("Add", ["h2", "b0"], ["h3"]),
        helper.make_node("Add", ["h3", "b1"], ["y"]),
    ]
    ends = (
        [helper.make_tensor_value_info("x", FLOAT, ["n", 4])],
        [helper.make_tensor_value_info("y", FLOAT, ["n", 300])],
    )
    graph = helper.make_graph(nodes, "partly", *ends, [*small_ones, large, *bias, scale])
    about = FRAMEWORK.describe(small.model_of("onnx", small.save_onnx(tmp_path / "net.onnx", graph)))
    assert (about.matrices, about.precision) == ({"int8": 2, "float32": 1}, "quantized weights")


# --- Running ---


def test_run_is_what_onnxruntime_gives(convnet: Path) -> None:
    feeds = {"image": small.images(3)}
    result = FRAMEWORK.load(small.model_of("onnx", convnet)).run(feeds)
    np.testing.assert_array_equal(result["probabilities"], directly(convnet, feeds)["probabilities"])


def test_two_inputs_and_two_outputs(tmp_path: Path) -> None:
    path = small.onnx_pair(tmp_path / "pair.onnx")
    model = small.model_of("onnx", path)
    about = FRAMEWORK.describe(model)
    assert [spec.name for spec in about.inputs] == ["vector", "image"]
    assert about.inputs[1].shape == ("batch", 3, "height", "width")
    assert [(spec.name, spec.dtype) for spec in about.outputs] == [("sum", "float32"), ("best", "int64")]
    feeds = {"image": small.images(3), "vector": small.vectors(3)}
    result = FRAMEWORK.load(model).run(feeds)
    assert list(result) == ["sum", "best"]
    for name, array in directly(path, feeds).items():
        np.testing.assert_array_equal(result[name], array)
    np.testing.assert_array_equal(result["best"], result["sum"].argmax(axis=1))


@pytest.mark.parametrize(
    ("feeds", "named"),
    [
        ({"vector": small.vectors()}, "image: float32"),
        ({"vector": small.vectors(), "picture": small.images()}, "image: float32"),
        ({"vector": small.vectors(size=5), "image": small.images()}, "input vector"),
        ({"vector": small.vectors(), "image": small.images(channels_last=True)}, "input image"),
        ({"vector": small.vectors(), "image": small.images().astype("U")}, "input image"),
    ],
)
def test_wrong_feeds(tmp_path: Path, feeds: dict[str, small.Array], named: str) -> None:
    runnable = FRAMEWORK.load(small.model_of("onnx", small.onnx_pair(tmp_path / "pair.onnx")))
    with pytest.raises(DataError, match=named):
        runnable.run(feeds)


def test_a_batch_that_differs_between_inputs_fails_in_words(tmp_path: Path) -> None:
    runnable = FRAMEWORK.load(small.model_of("onnx", small.onnx_pair(tmp_path / "pair.onnx")))
    with pytest.raises(InferenceError, match="running the model failed"):
        runnable.run({"vector": small.vectors(2), "image": small.images(3)})


def test_the_second_opinion_is_close_but_another(convnet: Path) -> None:
    model, feeds = small.model_of("onnx", convnet), {"image": small.images(16)}
    first = FRAMEWORK.load(model).run(feeds)["probabilities"]
    second = FRAMEWORK.load(model, second_opinion=True).run(feeds)["probabilities"]
    assert 0 < small.relative_l2(first, second) < 1e-5


@pytest.mark.parametrize("level", ["disabled", "basic", "extended", "all"])
def test_optimization_levels(convnet: Path, level: str) -> None:
    model, feeds = small.model_of("onnx", convnet), {"image": small.images()}
    result = OnnxRunnable(model, level).run(feeds)["probabilities"]
    assert small.relative_l2(directly(convnet, feeds)["probabilities"], result) < 1e-5


def test_the_file_stays_as_it_is(convnet: Path) -> None:
    model = small.model_of("onnx", convnet)
    FRAMEWORK.describe(model)
    FRAMEWORK.load(model).run({"image": small.images()})
    FRAMEWORK.load(model, second_opinion=True)
    assert sha256_of(convnet) == model.sha256
    assert [path.name for path in convnet.parent.iterdir()] == ["net.onnx"]


# --- Damaged files ---


def test_damaged_files_are_named(convnet: Path, tmp_path: Path) -> None:
    folder = tmp_path / "damaged"
    folder.mkdir()
    for path in small.damaged_copies(convnet, folder):
        model = small.model_of("onnx", path)
        for action in (FRAMEWORK.describe, FRAMEWORK.load):
            with pytest.raises(ModelLoadError) as error:
                action(model)
            assert str(path) in str(error.value)
            assert "an ONNX model" in str(error.value)


@pytest.mark.parametrize("keep", [None, 0, 100])
def test_damaged_external_data(tmp_path: Path, keep: int | None) -> None:
    path = small.onnx_convnet(tmp_path / "net.onnx", external=True)
    data = tmp_path / "net.data"
    content = data.read_bytes()
    data.unlink()
    if keep is not None:
        data.write_bytes(content[:keep])
    with pytest.raises(ModelLoadError, match=r"net\.onnx"):
        FRAMEWORK.describe(small.model_of("onnx", path))
    with pytest.raises(ModelLoadError, match=r"net\.onnx"):
        FRAMEWORK.load(small.model_of("onnx", path))


def test_an_invalid_graph_is_refused(tmp_path: Path) -> None:
    graph = helper.make_graph(
        [helper.make_node("NoSuchOperator", ["x"], ["y"])],
        "invalid",
        [helper.make_tensor_value_info("x", FLOAT, [1])],
        [helper.make_tensor_value_info("y", FLOAT, [1])],
    )
    path = small.save_onnx(tmp_path / "net.onnx", graph, check=False)
    with pytest.raises(ModelLoadError, match="NoSuchOperator"):
        FRAMEWORK.describe(small.model_of("onnx", path))


# --- The size of the table that an integer input indexes ---


def lookup(
    path: Path, between: list[onnx.NodeProto], indices: str, *, rank: int = 3, axis: int | None = None
) -> Path:
    """Gather from a [WORDS, 7] table, after some nodes."""
    table = numpy_helper.from_array(
        np.random.default_rng(0).normal(size=(small.WORDS, 7)).astype(np.float32), "table"
    )
    extra = [
        numpy_helper.from_array(np.array([-1], np.int64), "flat"),
        numpy_helper.from_array(np.array([1], np.int64), "one"),
        numpy_helper.from_array(np.array(0, np.int32), "zero"),
        numpy_helper.from_array(np.array(small.WORDS, np.int32), "size"),
    ]
    gather = helper.make_node("Gather", ["table", indices], ["y"], **({} if axis is None else {"axis": axis}))
    graph = helper.make_graph(
        [*between, gather],
        "lookup",
        [helper.make_tensor_value_info("text", INT32, ["batch", small.TOKENS])],
        [helper.make_tensor_value_info("y", FLOAT, [f"size_{place}" for place in range(rank)])],
        [table, *extra],
    )
    return small.save_onnx(path, graph)


NODE = helper.make_node


@pytest.mark.parametrize(
    ("between", "indices", "rank"),
    [
        ([], "text", 3),
        ([NODE("Cast", ["text"], ["i"], to=INT64)], "i", 3),
        ([NODE("Identity", ["text"], ["j"]), NODE("Reshape", ["j", "flat"], ["i"])], "i", 2),
        ([NODE("Unsqueeze", ["text", "one"], ["i"])], "i", 4),
        (
            [
                NODE("Less", ["text", "zero"], ["negative"]),
                NODE("Add", ["text", "size"], ["from_end"]),
                NODE("Where", ["negative", "from_end", "text"], ["i"]),
            ],
            "i",
            3,
        ),
    ],
)
def test_table_sizes(tmp_path: Path, between: list[onnx.NodeProto], indices: str, rank: int) -> None:
    path = lookup(tmp_path / "net.onnx", between, indices, rank=rank)
    assert FRAMEWORK.describe(small.model_of("onnx", path)).inputs[0].high == small.WORDS


@pytest.mark.parametrize(("axis", "high"), [(0, small.WORDS), (1, 7), (-1, 7)])
def test_table_sizes_along_an_axis(tmp_path: Path, axis: int, high: int) -> None:
    path = lookup(tmp_path / "net.onnx", [], "text", axis=axis)
    assert FRAMEWORK.describe(small.model_of("onnx", path)).inputs[0].high == high


def test_a_table_in_a_branch_counts(tmp_path: Path) -> None:
    table = numpy_helper.from_array(np.zeros((5, 2), np.float32), "table")
    branches = [
        helper.make_graph(
            [NODE("Gather", ["table", "moved"], [name])], name, [], [helper.make_tensor_value_info(name, FLOAT, None)]
        )
        for name in ("one", "other")
    ]
    nodes = [
        NODE("Identity", ["ids"], ["moved"]),
        NODE("If", ["first"], ["y"], then_branch=branches[0], else_branch=branches[1]),
    ]
    inputs = [
        helper.make_tensor_value_info("ids", INT64, ["batch", 3]),
        helper.make_tensor_value_info("first", onnx.TensorProto.BOOL, []),
    ]
    outputs = [helper.make_tensor_value_info("y", FLOAT, ["batch", 3, 2])]
    path = small.save_onnx(tmp_path / "net.onnx", helper.make_graph(nodes, "net", inputs, outputs, [table]))
    assert [spec.high for spec in FRAMEWORK.describe(small.model_of("onnx", path)).inputs] == [5, None]


def test_sizes_below_zero_are_open(tmp_path: Path) -> None:
    values = [helper.make_tensor_value_info(name, FLOAT, ["batch", -1, 3]) for name in ("x", "y")]
    path = small.save_onnx(
        tmp_path / "net.onnx", helper.make_graph([NODE("Relu", ["x"], ["y"])], "net", values[:1], values[1:])
    )
    found = FRAMEWORK.describe(small.model_of("onnx", path))
    assert (found.inputs[0].shape, found.outputs[0].shape) == (("batch", "?", 3), ("batch", "?", 3))


def test_no_table_no_size(tmp_path: Path) -> None:
    path = lookup(tmp_path / "net.onnx", [NODE("Add", ["text", "text"], ["i"])], "i")
    assert FRAMEWORK.describe(small.model_of("onnx", path)).inputs[0].high is None


def test_the_smallest_of_two_tables_counts(tmp_path: Path) -> None:
    tables = [
        numpy_helper.from_array(np.zeros((rows, 2), np.float32), name)
        for rows, name in ((9, "a"), (4, "b"), (6, "c"))
    ]
    constant = helper.make_node("Constant", [], ["c"], value=tables[2])
    graph = helper.make_graph(
        [constant, *(helper.make_node("Gather", [name, "ids"], [f"from_{name}"]) for name in "abc")],
        "tables",
        [helper.make_tensor_value_info("ids", INT64, ["n"])],
        [helper.make_tensor_value_info(f"from_{name}", FLOAT, ["n", 2]) for name in "abc"],
        tables[:2],
    )
    path = small.save_onnx(tmp_path / "net.onnx", graph)
    assert FRAMEWORK.describe(small.model_of("onnx", path)).inputs[0].high == 4
