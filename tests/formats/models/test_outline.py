"""Models that are whole and can't be run here: what's missing is said, what's there is listed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest

from conrepair.application.cli import main
from conrepair.formats.models.detect import detect_framework
from conrepair.formats.models.model import Model
from conrepair.formats.models.outline import outline
from conrepair.formats.models.registry import framework
from conrepair.ground.runtime.errors import ExitCode, ModelLoadError

DAMAGED = "may be damaged"


def model_of(path: Path) -> Model:
    return Model(detect_framework(path), str(path), "0")


def onnx_file(path: Path, text: str, head: str = 'ir_version: 8, opset_import: ["" : 17, "com.mine" : 1]') -> Path:
    onnx.save(onnx.parser.parse_model(f"<{head}> g (float[n, 4] x) => (float[n, 4] y) {{ {text} }}"), path)
    return path


def foreign_onnx(folder: Path) -> Path:
    return onnx_file(folder / "net.onnx", "a = Relu (x) y = com.mine.MyOp (a)")


def late_onnx(folder: Path) -> Path:
    return onnx_file(folder / "net.onnx", "y = Relu (x)", 'ir_version: 8, opset_import: ["" : 99]')


def tflite_with(folder: Path, *, flex: bool) -> Path:
    import tensorflow as tf

    class Erf(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([1, 8], tf.float32, name="x")])
        def call(self, x: Any) -> Any:
            return tf.math.erf(tf.nn.relu(x))

    module = Erf()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([module.call.get_concrete_function()], module)
    converter.allow_custom_ops = not flex
    if flex:
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS]
    path = folder / "net.tflite"
    path.write_bytes(converter.convert())
    return path


def flex_tflite(folder: Path) -> Path:
    return tflite_with(folder, flex=True)


def custom_tflite(folder: Path) -> Path:
    return tflite_with(folder, flex=False)


_TORCH = """
import sys, torch
@torch.library.custom_op("mine::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor: return 2 * x
@twice.register_fake
def _(x): return torch.empty_like(x)
class Net(torch.nn.Module):
    def forward(self, x): return torch.ops.mine.twice(torch.relu(x))
example = (torch.rand(2, 4),)
torch.export.save(torch.export.export(Net(), example), sys.argv[1])
torch.jit.trace(Net(), example).save(sys.argv[2])
"""


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of files that were made where there is what these need."""
    folder = tmp_path_factory.mktemp("elsewhere")
    save_with_a_layer_of_its_own(folder / "net.keras", folder / "net.h5")
    files = [str(folder / name) for name in ("net.pt2", "net.pt")]
    subprocess.run([sys.executable, "-c", _TORCH, *files], check=True, capture_output=True)
    return folder


def save_with_a_layer_of_its_own(*paths: Path) -> None:
    """A Keras model with a layer that's registered while it's saved."""
    import keras

    class Twice(keras.layers.Layer):
        def call(self, x: Any) -> Any:
            return 2 * x

    keras.saving.register_keras_serializable("mine")(Twice)
    inner = keras.Sequential([keras.Input((3,)), Twice()])
    network = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3), inner])
    for path in paths:
        network.save(path)
    del keras.saving.get_custom_objects()["mine>Twice"]


def custom_graph(folder: Path) -> Path:
    import tensorflow as tf

    graph = tf.compat.v1.GraphDef()
    graph.node.add(name="x", op="Placeholder").attr["dtype"].type = tf.float32.as_datatype_enum
    graph.node.add(name="y", op="MyOwn", input=["x"])
    path = folder / "net.pb"
    path.write_bytes(graph.SerializeToString())
    return path


@pytest.mark.parametrize(
    ("make", "missing", "operators"),
    [
        (foreign_onnx, "com.mine:MyOp", {"MyOp": 1, "Relu": 1}),
        (late_onnx, "opset 99", {"Relu": 1}),
        (flex_tflite, "FlexErf need the Flex delegate", {"FlexErf": 1, "RELU": 1}),
        (custom_tflite, "custom operators Erf", {"Erf": 1, "RELU": 1}),
        ("net.keras", "mine>Twice", {"Dense": 1, "InputLayer": 2, "Twice": 1}),
        ("net.h5", "mine>Twice", {"Dense": 1, "InputLayer": 2, "Twice": 1}),
        ("net.pt2", "mine.twice", {"mine.twice": 1, "relu": 1}),
        ("net.pt", "mine.twice", {"mine.twice": 1, "relu": 1}),
        (custom_graph, "MyOwn", {"MyOwn": 1, "Placeholder": 1}),
    ],
)
def test_what_is_missing_is_said_and_not_that_the_file_is_damaged(
    make: str | Callable[[Path], Path], missing: str, operators: dict[str, int], elsewhere: Path, tmp_path: Path
) -> None:
    model = model_of(elsewhere / make if isinstance(make, str) else make(tmp_path))
    with pytest.raises(ModelLoadError, match="can't be loaded") as refused:
        framework(model.framework).load(model).run({})
    assert missing in str(refused.value)
    assert DAMAGED not in str(refused.value)
    found = outline(model)
    assert found is not None
    assert found.description.operators == operators
    assert len(found.missing) == 1


def test_a_file_that_is_cut_off_is_damaged(elsewhere: Path, tmp_path: Path) -> None:
    whole = [foreign_onnx(tmp_path), flex_tflite(tmp_path), elsewhere / "net.keras", elsewhere / "net.pt2"]
    for path in whole:
        content = path.read_bytes()
        cut = tmp_path / f"cut{path.suffix}"
        cut.write_bytes(content[: len(content) * 2 // 3])
        model = model_of(cut)
        with pytest.raises(ModelLoadError, match=DAMAGED):
            framework(model.framework).load(model)
        assert outline(model) is None


def test_what_is_refused_for_another_reason_is_not_damaged_either(tmp_path: Path) -> None:
    path = onnx_file(tmp_path / "net.onnx", "y = Relu <wrong = 1> (x)")
    with pytest.raises(ModelLoadError, match="can be read to its end") as refused:
        framework("onnx").load(model_of(path))
    assert DAMAGED not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "g (float[n, 4] x) => (float[n, 4] y) { y = Relu (x) }",
        "g (float[n, 4] x) => (float[?, ?] y) { y = Concat <axis = 1> (x, x) }",
        "g (uint8[n, 4] x) => (uint8[n, 4] y) <float s = {0.5}, uint8 z = {3}> "
        "{ a = DequantizeLinear (x, s, z) b = Relu (a) y = QuantizeLinear (b, s, z) }",
        "g (float[2, 4] x, int64[?] i) => (float[2, m] y) { y = Gather <axis = 1> (x, i) }",
    ],
)
def test_inputs_and_outputs_are_those_that_onnx_runtime_tells(text: str, tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}'), path)
    model = model_of(path)
    found, told = outline(model), framework("onnx").describe(model)
    assert found is not None
    assert found.description == told


def test_inspect_of_onnx_runs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What only ONNX Runtime refuses is told where it's run."""
    path = onnx_file(tmp_path / "net.onnx", "i = Cast <to = 7> (x) y = Add (x, i)")
    with pytest.raises(ModelLoadError, match="can be read to its end"):
        framework("onnx").load(model_of(path))
    assert main(["inspect", str(path), "-q"]) == 0
    assert "Add 1, Cast 1" in capsys.readouterr().out
    assert main(["compare", str(path), str(path), "-q"]) == ExitCode.MODEL_LOAD
    assert "can be read to its end, so it's what is in it that's refused" in capsys.readouterr().out


def test_what_onnx_lets_pass_and_nobody_can_read_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A type that isn't one passes ONNX's rules."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[4] x) => (float[4] y) {y = Relu(x)}'
    )
    model.graph.value_info.add(name="z").type.tensor_type.elem_type = 999
    model.graph.output[0].type.tensor_type.shape.dim[0].Clear()
    model.graph.input[0].type.tensor_type.elem_type = 999
    (tmp_path / "net.onnx").write_bytes(model.SerializeToString())
    assert main(["inspect", str(tmp_path / "net.onnx"), "-q"]) == ExitCode.MODEL_LOAD
    assert "net.onnx can't be loaded as an ONNX model" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["inspect", "execute"])
def test_outputs_of_one_name_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str) -> None:
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[4] x) => (float[4] y) { y = Relu(x) }'
    model = onnx.parser.parse_model(text)
    model.graph.output.add().CopyFrom(model.graph.output[0])
    (tmp_path / "net.onnx").write_bytes(model.SerializeToString())
    assert main([verb, str(tmp_path / "net.onnx"), "-q"]) == ExitCode.MODEL_LOAD
    assert "2 of its outputs are called 'y'" in capsys.readouterr().err


def test_inspect_lists_what_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = foreign_onnx(tmp_path)
    assert main(["inspect", str(path)]) == ExitCode.MODEL_LOAD
    told = capsys.readouterr()
    assert "MyOp 1, Relu 1" in told.out
    assert "float32[n, 4]" in told.out
    assert "com.mine:MyOp" in told.err
    assert main(["inspect", str(path), "-f", "json"]) == ExitCode.MODEL_LOAD
    value = json.loads(capsys.readouterr().out)
    assert value["operators"] == {"MyOp": 1, "Relu": 1}
    assert "com.mine:MyOp" in value["missing"][0]
    path.write_bytes(path.read_bytes()[:40])
    assert main(["inspect", str(path)]) == ExitCode.MODEL_LOAD
    told = capsys.readouterr()
    assert not told.out
    assert DAMAGED in told.err
