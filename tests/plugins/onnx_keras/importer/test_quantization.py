import warnings

import numpy as np
import onnx
import onnx_ir
import pytest
from onnx_cases import check, check_model, layers_of, node_model, random, run_keras, run_onnx, together
from saturating import exact_products

from conrepair.ground.runtime.errors import ConversionError
from conrepair_onnx_keras.importer.graph import import_model

TYPES = ["int8", "uint8", "int16", "uint16"]
SCALE = np.float32(0.037)


def zero_point(dtype, *shape):
    limits = np.iinfo(dtype)
    return np.random.default_rng(3).integers(limits.min // 4, limits.max // 4, shape).astype(dtype)


def halves(scale, *shape):
    """Numbers on and around the borders between two steps, and beyond the range."""
    steps = np.random.default_rng(5).integers(-400, 400, shape)
    return ((steps / 2).astype(np.float32) * scale).astype(np.float32)


# --- to and from quantized values -----------------------------------------------------------------------------


@together("dtype", TYPES)
@together("scale", [SCALE, np.float32(0.5), np.float32(1 / 3)])
def test_quantize_rounds_half_to_even(dtype, scale):
    feeds = {"x": halves(scale, 50, 40)}
    check("QuantizeLinear", feeds, {"scale": scale, "zero": zero_point(dtype)}, symbolic={"x": ["n", 40]})


@together("dtype", TYPES)
def test_quantize_saturates(dtype):
    x = np.array([[-1e30, -1e6, -40.0, 0.0, 40.0, 1e6, 1e30]], np.float32)
    check("QuantizeLinear", {"x": x}, {"scale": np.float32(1e-3), "zero": zero_point(dtype)})


def test_without_zero_point():
    check("QuantizeLinear", {"x": random(3, 4)}, {"scale": SCALE})
    check("QuantizeLinear", {"x": random(3, 4)}, {"scale": SCALE}, output_dtype=onnx.TensorProto.INT8)
    check("DequantizeLinear", {"x": random(3, 4, dtype="int8", low=-128, high=128)}, {"scale": SCALE})


@together("dtype", TYPES)
@together("axis", [0, 1, -1])
def test_scales_along_an_axis(dtype, axis):
    shape = (3, 4, 5)
    constants = {"scale": random(shape[axis], low=0.01, high=0.2), "zero": zero_point(dtype, shape[axis])}
    check("QuantizeLinear", {"x": random(*shape, low=-9, high=9)}, constants, axis=axis)
    limits = np.iinfo(dtype)
    x = random(*shape, dtype=dtype, low=limits.min, high=limits.max)
    check("DequantizeLinear", {"x": x}, constants, axis=axis)


@together("block", [2, 3])
def test_scales_of_blocks(block):
    blocks = -(-6 // block)
    constants = {"scale": random(4, blocks, low=0.01, high=0.2), "zero": zero_point("int8", 4, blocks)}
    check("QuantizeLinear", {"x": random(4, 6, low=-9, high=9)}, constants, axis=1, block_size=block)
    x = random(4, 6, dtype="int8", low=-128, high=127)
    check("DequantizeLinear", {"x": x}, constants, axis=1, block_size=block)


def test_scales_that_the_model_computes():
    feeds = {"x": random(3, 4), "scale": np.array([0.02, 0.1, 0.5, 0.03], np.float32)}
    check("QuantizeLinear", feeds, {"zero": zero_point("uint8", 4)}, axis=1)


@together("dtype", [*TYPES, "int32"])
def test_dequantize(dtype):
    limits = np.iinfo(dtype)
    x = random(20, 30, dtype=dtype, low=limits.min // 2, high=limits.max // 2)
    zero = np.zeros((), dtype) if dtype == "int32" else zero_point(dtype)
    check("DequantizeLinear", {"x": x}, {"scale": SCALE, "zero": zero}, symbolic={"x": ["n", 30]}, rtol=1e-7, atol=0)


@together("low", [-3.0, 0.5, -7.0])
def test_dynamic(low):
    high = -1.0 if low == -7 else 2.0
    check("DynamicQuantizeLinear", {"x": random(6, 7, low=low, high=high)}, outputs=3, rtol=1e-7)


def test_dynamic_of_zeros():
    check("DynamicQuantizeLinear", {"x": np.zeros((2, 3), np.float32)}, outputs=3)


@pytest.mark.parametrize("code", [onnx.TensorProto.FLOAT8E4M3FN, onnx.TensorProto.INT4])
def test_types_that_keras_has_not_are_refused(code):
    model = node_model("QuantizeLinear", {"x": random(3, 4)}, {"scale": SCALE}, output_dtype=code)
    with pytest.raises(ConversionError, match="quantize to"):
        import_model(onnx_ir.from_proto(model))


# --- products of integers -------------------------------------------------------------------------------------


@exact_products
@pytest.mark.parametrize("terms", [9, 700])
@pytest.mark.parametrize(("left", "right"), [("uint8", "int8"), ("uint8", "uint8"), ("int8", "int8")])
@pytest.mark.parametrize("columns", [False, True])
def test_integer_product(terms, left, right, columns):
    x = random(4, terms, dtype=left, low=-128, high=256 if left == "uint8" else 128)
    w = random(terms, 5, dtype=right, low=-128, high=256 if right == "uint8" else 128, seed=2)
    constants = {"w": w, "xz": zero_point(left), "wz": zero_point(right, *([5] if columns else []))}
    check("MatMulInteger", {"x": x}, constants, symbolic={"x": ["n", terms]})


def test_integer_product_of_two_tensors():
    feeds = {"x": random(2, 4, 6, dtype="uint8", high=256), "y": random(2, 6, 3, dtype="uint8", high=256)}
    check("MatMulInteger", feeds)


@together("target", ["uint8", "int8"])
@together("columns", [False, True])
def test_quantized_product(target, columns):
    x = random(40, 30, dtype=target, low=-128, high=256 if target == "uint8" else 128)
    w = random(30, 50, dtype=target, low=-128, high=256 if target == "uint8" else 128, seed=2)
    number = [50] if columns else []
    constants = {
        "xs": SCALE, "xz": zero_point(target), "w": w,
        "ws": random(*number, low=0.01, high=0.05), "wz": zero_point(target, *number),
        "ys": np.float32(0.5), "yz": zero_point(target),
    }  # fmt: skip
    check("QLinearMatMul", {"x": x}, constants, symbolic={"x": ["n", 30]})


WINDOWS = [
    {},
    {"pads": [1, 1, 1, 1]},
    {"strides": [2, 2], "pads": [1, 0, 0, 1]},
    {"dilations": [2, 2]},
    {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
]


@together("attributes", WINDOWS)
def test_integer_convolution(attributes):
    x = random(2, 3, 9, 8, dtype="uint8", high=256)
    constants = {"w": random(4, 3, 3, 3, dtype="uint8", high=256, seed=2), "xz": np.uint8(7), "wz": np.uint8(99)}
    check("ConvInteger", {"x": x}, constants, symbolic={"x": ["n", 3, 9, 8]}, **attributes)


@exact_products
@pytest.mark.parametrize("attributes", WINDOWS, ids=str)
@pytest.mark.parametrize(("groups", "channels"), [(1, 3), (3, 3), (2, 4)])
@pytest.mark.parametrize("bias", [False, True])
def test_quantized_convolution(attributes, groups, channels, bias):
    x = random(2, channels, 9, 8, dtype="uint8", high=256)
    constants = {
        "xs": SCALE, "xz": np.uint8(120),
        "w": random(6, channels // groups, 3, 3, dtype="int8", low=-127, high=128, seed=2),
        "ws": random(6, low=0.01, high=0.05), "wz": np.zeros(6, np.int8),
        "ys": np.float32(0.9), "yz": np.uint8(100),
    }  # fmt: skip
    if bias:
        constants["b"] = random(6, dtype="int32", low=-9000, high=9000)
    check("QLinearConv", {"x": x}, constants, symbolic={"x": ["n", channels, 9, 8]}, group=groups, **attributes)


def test_weights_are_in_layers():
    x = random(1, 3, 9, 8, dtype="uint8", high=256)
    network = check("ConvInteger", {"x": x}, {"w": random(4, 3, 3, 3, dtype="uint8", high=256)})
    assert "Conv2D" in layers_of(network)


# --- whole networks -------------------------------------------------------------------------------------------


def small_network():
    import keras

    keras.utils.set_random_seed(2)
    inputs = keras.Input((16, 16, 3), name="x")
    y = keras.layers.Conv2D(8, 3, padding="same", activation="relu")(inputs)
    y = keras.layers.DepthwiseConv2D(3, strides=2, padding="same", activation="relu6")(y)
    y = keras.layers.Conv2D(8, 1)(y)
    y = keras.layers.GlobalAveragePooling2D()(y)
    return keras.Model(inputs, keras.layers.Dense(5)(y))


def steps_apart(model, feeds, step):
    """How many quantization steps the Keras model is away from ONNX Runtime, at most."""
    network = import_model(onnx_ir.from_proto(model))
    expected, got = run_onnx(model, feeds)[0], run_keras(network, feeds)[0]
    assert expected.shape == got.shape
    return np.abs(expected.astype(np.float64) - got).max() / step


@pytest.mark.parametrize("layout", ["QDQ", "QOperator"])
@pytest.mark.parametrize("per_channel", [False, True])
def test_quantized_by_onnxruntime(layout, per_channel, tmp_path):
    import tf2onnx
    from onnxruntime import quantization as ort

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tf2onnx.convert.from_keras(small_network(), opset=17, output_path=str(tmp_path / "plain.onnx"))

    class Reader(ort.CalibrationDataReader):
        def __init__(self):
            self.rows = iter([{"x": random(1, 16, 16, 3, seed=seed)} for seed in range(8)])

        def get_next(self):
            return next(self.rows, None)

    ort.quantize_static(
        str(tmp_path / "plain.onnx"), str(tmp_path / "quantized.onnx"), Reader(),
        quant_format=ort.QuantFormat[layout], per_channel=per_channel,
    )  # fmt: skip
    model = onnx.load(tmp_path / "quantized.onnx")
    assert {"QuantizeLinear", "QLinearConv"} & {node.op_type for node in model.graph.node}
    step = min(float(np.max(scale)) for scale in scales_of(model))
    assert steps_apart(model, {"x": random(4, 16, 16, 3, seed=99)}, step) <= 1


def scales_of(model):
    """Scale of the last quantization."""
    last = [node for node in model.graph.node if node.op_type == "DequantizeLinear"][-1]
    return [onnx.numpy_helper.to_array(item) for item in model.graph.initializer if item.name == last.input[1]]


def test_uint8_tflite_by_tf2onnx(tmp_path):
    import tensorflow as tf
    import tf2onnx

    converter = tf.lite.TFLiteConverter.from_keras_model(small_network())
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([random(1, 16, 16, 3, seed=seed)] for seed in range(8))
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = converter.inference_output_type = tf.uint8
    (tmp_path / "model.tflite").write_bytes(converter.convert())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, _ = tf2onnx.convert.from_tflite(str(tmp_path / "model.tflite"), opset=15)
    name = model.graph.input[0].name
    feeds = {name: random(1, 16, 16, 3, dtype="uint8", high=256)}
    assert steps_apart(model, feeds, 1) <= 1


def test_dequantized_weights_become_a_layer():
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[N, 3, 8, 8] x) => (float[N, 4, 6, 6] y) {
            v = DequantizeLinear(w, s)
            y = Conv(x, v)
        }""")
    model.graph.initializer.append(onnx.numpy_helper.from_array(random(4, 3, 3, 3, dtype="int8"), "w"))
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.float32(0.1), "s"))
    assert layers_of(check_model(model, {"x": random(2, 3, 8, 8)})).count("Conv2D") == 1


@together(("shape", "axis"), [((2, 4, 3, 4), 1), ((4, 3, 4), 0), ((4, 4), 0)])
def test_scales_along_an_axis_as_long_as_the_last(shape, axis):
    """Keras would add such zero points along the last axis."""
    constants = {"scale": random(shape[axis], low=0.01, high=0.2), "zero": zero_point("uint8", shape[axis])}
    check("QuantizeLinear", {"x": random(*shape, low=-9, high=9)}, constants, axis=axis)


@together("operator", ["QuantizeLinear", "DequantizeLinear"])
def test_constants_with_a_scale_that_is_computed(operator):
    x = random(2, 3, low=-5, high=5) if operator == "QuantizeLinear" else random(2, 3, dtype="uint8", high=200)
    check(operator, {"scale": np.float32(0.5)}, {"x": x, "zero": np.uint8(3)}, inputs=["x", "scale", "zero"])


@together("group", [1, 2])
def test_integer_convolution_with_weights_that_are_computed(group):
    feeds = {"x": random(1, 4, 5, 6, dtype="uint8", high=200), "w": random(4, 4 // group, 3, 2, dtype="int8"),
             "x_zero": np.uint8(7), "w_zero": np.int8(-2)}  # fmt: skip
    check("ConvInteger", feeds, group=group)


def test_quantized_product_with_scales_that_are_computed():
    names = ["a", "a_scale", "a_zero", "b", "b_scale", "b_zero", "y_scale", "y_zero"]
    feeds = {"a": random(3, 4, dtype="uint8", high=200), "b": random(4, 2, dtype="uint8", high=200)}
    feeds |= {"a_scale": np.float32(0.1), "b_scale": np.float32(0.3), "y_scale": np.float32(30)}
    zeros = {name: np.uint8(5) for name in names if name.endswith("zero")}
    check("QLinearMatMul", feeds, zeros, inputs=names)
