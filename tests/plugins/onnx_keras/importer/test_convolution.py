import numpy as np
import pytest
from onnx_cases import (
    check,
    check_text,
    imported,
    layers_of,
    node_model,
    random,
    run_keras,
    run_onnx,
    text_model,
    together,
)

from conrepair.ground.runtime.errors import ConversionError

IMAGE = {"x": random(2, 4, 9, 8)}
WEIGHTS = {"w": random(6, 4, 3, 3, seed=1), "b": random(6, seed=2)}
OPEN = {"x": ["n", 4, "h", "w"]}


@together(
    "attributes",
    [
        {},
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
        {"pads": [0, 1, 2, 0]},
        {"pads": [1, 0, 0, 1], "strides": [2, 1]},
        {"pads": [2, 2, 2, 2], "strides": [3, 2]},
        {"strides": [2, 2]},
        {"dilations": [2, 2]},
        {"dilations": [2, 1], "pads": [2, 1, 2, 1]},
        {"dilations": [2, 2], "strides": [2, 2]},
        {"dilations": [1, 2], "strides": [2, 1], "pads": [1, 2, 1, 2]},
        {"dilations": [2, 2], "strides": [2, 3], "pads": [2, 2, 2, 2]},
        {"auto_pad": "VALID", "strides": [2, 2]},
        {"auto_pad": "SAME_UPPER"},
        {"auto_pad": "SAME_LOWER"},
        {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
        {"auto_pad": "SAME_LOWER", "strides": [2, 2]},
        {"auto_pad": "SAME_UPPER", "strides": [2, 3], "dilations": [1, 1]},
        {"auto_pad": "SAME_LOWER", "strides": [3, 2]},
    ],
)
@together("groups", [1, 2, 4])
def test_two_axes(attributes, groups):
    weights = {"w": random(8, 4 // groups, 3, 3, seed=1), "b": random(8, seed=2)}
    check("Conv", IMAGE, weights, group=groups, **attributes)


@together("kernel", [(1, 1), (2, 2), (4, 3), (1, 5)])
@together("mode", ["SAME_UPPER", "SAME_LOWER"])
@together("stride", [1, 2])
def test_same_of_even_and_odd_kernels(kernel, mode, stride):
    check("Conv", IMAGE, {"w": random(3, 4, *kernel)}, auto_pad=mode, strides=[stride, stride])


@together("axes", [1, 3])
@together(
    "attributes",
    [{}, {"pads": [1, 2]}, {"strides": [2], "pads": [1, 1]}, {"dilations": [2]}, {"dilations": [2], "strides": [2]},
     {"auto_pad": "SAME_UPPER", "strides": [2]}, {"auto_pad": "SAME_LOWER"}]
)  # fmt: skip
@together("groups", [1, 2, 4])
def test_one_and_three_axes(axes, attributes, groups):
    spread = {
        name: value if isinstance(value, str) else np.repeat(value, axes).tolist()
        for name, value in attributes.items()
    }
    shape = (2, 4, 9) if axes == 1 else (1, 4, 6, 7, 5)
    weights = {"w": random(8, 4 // groups, *[3] * axes, seed=1), "b": random(8)}
    check("Conv", {"x": random(*shape)}, weights, group=groups, **spread)


@pytest.mark.parametrize("multiplier", [1, 2, 3])
@pytest.mark.parametrize("attributes", [{}, {"strides": [2, 2]}, {"strides": [2, 1]}, {"dilations": [2, 2]}], ids=str)
def test_depthwise(multiplier, attributes):
    weights = {"w": random(4 * multiplier, 1, 3, 3, seed=1), "b": random(4 * multiplier)}
    network = check("Conv", IMAGE, weights, group=4, pads=[1, 1, 1, 1], **attributes)
    assert "DepthwiseConv2D" in layers_of(network)


@pytest.mark.parametrize(
    "attributes", [{}, {"pads": [1, 1, 1, 1]}, {"pads": [0, 1, 2, 0], "strides": [2, 2]}, {"auto_pad": "SAME_UPPER"}]
)
@pytest.mark.parametrize("groups", [1, 4])
def test_open_images(attributes, groups):
    weights = {"w": random(8, 4 // groups, 3, 3, seed=1)}
    network = check("Conv", IMAGE, weights, symbolic=OPEN, group=groups, **attributes)
    assert network.inputs[0].shape == (None, 4, None, None)


def test_same_with_strides_of_open_images_is_refused():
    with pytest.raises(ConversionError, match=r"Conv\(.*'the_Conv'.*SAME_UPPER.*--input"):
        imported(node_model("Conv", IMAGE, WEIGHTS, symbolic=OPEN, auto_pad="SAME_UPPER", strides=[2, 2]))


def test_negative_pads_cut_off():
    """ONNX Runtime refuses them in a Conv, not in a Pad."""
    apart = text_model(
        "p = Pad (x, pads) y = Conv (p, w)", IMAGE, {"pads": np.array([0, 0, -1, 1, 0, 0, 0, -2]), **WEIGHTS}
    )
    network = imported(node_model("Conv", IMAGE, {"w": WEIGHTS["w"]}, pads=[-1, 1, 0, -2]))
    np.testing.assert_allclose(run_keras(network, IMAGE)[0], run_onnx(apart, IMAGE)[0], rtol=1e-4, atol=1e-5)


@together("given", ["w", "b", "wb"])
@together("attributes", [{}, {"pads": [1, 0, 2, 1], "strides": [2, 2]}, {"auto_pad": "SAME_UPPER"}])
def test_weights_that_are_computed(given, attributes):
    feeds = IMAGE | {name: array for name, array in WEIGHTS.items() if name in given}
    constants = {name: array for name, array in WEIGHTS.items() if name not in given}
    check("Conv", feeds, constants, inputs=["x", "w", "b"], **attributes)


@together("attributes", [{"dilations": [2, 2]}, {"dilations": [2, 1], "strides": [2, 2]}])
def test_weights_that_are_computed_with_dilation(attributes):
    check("Conv", IMAGE | WEIGHTS, inputs=["x", "w", "b"], **attributes)


def test_double():
    feeds, constants = {"x": random(1, 2, 5, 5, dtype="float64")}, {"w": random(3, 2, 3, 3, dtype="float64")}
    check_text(
        "c = Cast <to = 1> (x) a = Conv (c, v) y = Cast <to = 11> (a)", feeds, {"v": np.float32(constants["w"])}
    )


def test_four_axes_are_refused():
    with pytest.raises(ConversionError, match="no convolution over 4 spatial axes"):
        imported(node_model("Conv", {"x": random(1, 1, 3, 3, 3, 3)}, {"w": random(1, 1, 2, 2, 2, 2)}))


def test_symmetric_padding_needs_no_extra_layer():
    network = check("Conv", IMAGE, WEIGHTS, pads=[1, 1, 1, 1])
    assert layers_of(network) == ["Transpose", "Conv2D", "Transpose"]


def test_weights_keep_their_place():
    network = check("Conv", IMAGE, WEIGHTS)
    layer = next(layer for layer in network.layers if "conv" in type(layer).__name__.lower())
    np.testing.assert_array_equal(layer.get_weights()[0], WEIGHTS["w"].transpose(2, 3, 1, 0))
    np.testing.assert_array_equal(layer.get_weights()[1], WEIGHTS["b"])


# --- ConvTranspose -------------------------------------------------------------------------------------------

TRANSPOSED = [
    {},
    {"strides": [2, 2]},
    {"strides": [3, 2], "pads": [1, 1, 1, 1]},
    {"pads": [1, 0, 2, 1]},
    {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]},
    {"strides": [3, 3], "output_padding": [1, 2]},
    {"strides": [2, 2], "pads": [0, 0, 0, 1], "output_padding": [1, 0]},
    {"dilations": [2, 2]},
    {"dilations": [2, 1], "strides": [2, 2], "pads": [1, 0, 1, 0]},
    {"strides": [4, 5]},
    {"strides": [4, 4], "pads": [1, 1, 1, 1], "output_padding": [3, 3]},
    {"auto_pad": "VALID", "strides": [2, 2]},
    {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
    {"auto_pad": "SAME_LOWER", "strides": [2, 2]},
    {"auto_pad": "SAME_UPPER", "strides": [1, 2]},
    {"auto_pad": "SAME_LOWER", "strides": [3, 1]},
    {"auto_pad": "SAME_UPPER", "strides": [4, 4]},
    {"auto_pad": "SAME_UPPER", "strides": [2, 2], "output_padding": [1, 1]},
    {"output_shape": [10, 8], "strides": [2, 2]},
    {"output_shape": [10, 9], "strides": [2, 2]},
    {"output_shape": [11, 10], "strides": [2, 2], "output_padding": [1, 1]},
    {"output_shape": [10, 8], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
    {"output_shape": [10, 8], "strides": [2, 2], "auto_pad": "SAME_LOWER"},
    {"output_shape": [12, 10], "strides": [2, 2]},
]


@together("attributes", TRANSPOSED)
@together("groups", [1, 2])
def test_transposed(attributes, groups):
    feeds, constants = {"x": random(2, 4, 5, 4)}, {"w": random(4, 6 // groups, 3, 3, seed=1), "b": random(6)}
    check("ConvTranspose", feeds, constants, group=groups, **attributes)


@together("axes", [1, 3])
@together(
    "attributes",
    [{}, {"strides": [2]}, {"strides": [2], "pads": [1, 1], "output_padding": [1]}, {"dilations": [2]},
     {"auto_pad": "SAME_UPPER", "strides": [2]}]
)  # fmt: skip
def test_transposed_over_one_and_three_axes(axes, attributes):
    spread = {
        name: value if isinstance(value, str) else np.repeat(value, axes).tolist()
        for name, value in attributes.items()
    }
    weights = {"w": random(3, 2, *[3] * axes, seed=1), "b": random(2)}
    check("ConvTranspose", {"x": random(2, 3, *[4, 5, 3][:axes])}, weights, **spread)


@together("bias", ["none", "constant", "tensor"])
@together("extra", [[0, 0], [1, 1]])
def test_bias_of_transposed(bias, extra):
    arrays = {"x": random(2, 4, 5, 4), "w": random(4, 3, 2, 2, seed=1), "b": random(3)}
    feeds = {"x": arrays["x"]} | ({"b": arrays["b"]} if bias == "tensor" else {})
    constants = {name: arrays[name] for name in "wb" if name not in feeds and (name, bias) != ("b", "none")}
    names = [name for name in arrays if name in feeds or name in constants]
    check("ConvTranspose", feeds, constants, inputs=names, strides=[2, 2], output_padding=extra)


def test_transposed_with_open_batch_and_images():
    feeds, constants = {"x": random(2, 4, 5, 4)}, {"w": random(4, 3, 3, 3), "b": random(3)}
    for attributes in ({}, {"strides": [2, 2], "pads": [1, 1, 1, 1]}, {"auto_pad": "SAME_UPPER", "strides": [2, 2]}):
        check("ConvTranspose", feeds, constants, symbolic=OPEN, **attributes)
    with pytest.raises(ConversionError, match="the sizes of input X"):
        imported(node_model("ConvTranspose", feeds, constants, symbolic=OPEN, output_shape=[9, 9], strides=[2, 2]))


def test_transposed_is_one_layer():
    network = check(
        "ConvTranspose", {"x": random(2, 4, 5, 4)}, {"w": random(4, 3, 2, 2), "b": random(3)}, strides=[2, 2]
    )
    assert layers_of(network) == ["Transpose", "Conv2DTranspose", "Transpose"]


@together(
    "attributes",
    [
        {"group": 2},
        {"group": 2, "pads": [1, 0, 2, 1], "dilations": [2, 1]},
        {"group": 4, "strides": [2, 1], "weights": (8, 1, 3, 2)},
    ],
)
def test_groups_with_weights_that_are_computed(attributes):
    attributes = dict(attributes)
    weights = random(*attributes.pop("weights", (6, 2, 3, 2)), seed=1)
    check("Conv", {"x": random(2, 4, 7, 6), "w": weights, "b": random(len(weights))}, **attributes)


@together(
    "attributes",
    [
        {},
        {"strides": [2, 3], "pads": [1, 0, 1, 1], "output_padding": [1, 2]},
        {"strides": [3, 1], "dilations": [2, 1], "group": 2},
        {"strides": [4, 4], "auto_pad": "SAME_UPPER"},
        {"strides": [2, 2], "output_shape": [11, 12]},
    ],
)
def test_transposed_with_weights_that_are_computed(attributes):
    check("ConvTranspose", {"x": random(2, 4, 5, 6), "w": random(4, 3, 3, 2, seed=1)}, **attributes)
    check("ConvTranspose", {"w": random(4, 3, 3, 2, seed=1)}, {"x": random(2, 4, 5, 6)},
          inputs=["x", "w"], **attributes)  # fmt: skip
