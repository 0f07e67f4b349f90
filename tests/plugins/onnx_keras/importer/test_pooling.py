import numpy as np
from onnx_cases import check, layers_of, random, together

IMAGE = {"x": random(2, 3, 11, 9)}


@together("operator", ["MaxPool", "AveragePool", "LpPool"])
@together(
    "attributes",
    [
        {"kernel_shape": [2, 2]},
        {"kernel_shape": [3, 2], "strides": [2, 1]},
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
        {"kernel_shape": [3, 3], "pads": [0, 1, 1, 0], "strides": [2, 2]},
        {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
        {"kernel_shape": [3, 3], "strides": [3, 3], "pads": [1, 1, 1, 1], "ceil_mode": 1},
        {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER", "strides": [2, 2]},
        {"kernel_shape": [2, 2], "auto_pad": "SAME_LOWER", "strides": [2, 2]},
        {"kernel_shape": [2, 2], "auto_pad": "VALID", "strides": [2, 2]},
        {"kernel_shape": [2, 3], "dilations": [2, 2]},
        {"kernel_shape": [2, 2], "dilations": [3, 2], "strides": [2, 2], "pads": [1, 1, 1, 1]},
    ],
)
def test_windows(operator, attributes):
    check(operator, IMAGE, **attributes)


@together(
    "attributes",
    [
        {"pads": [1, 1, 1, 1]},
        {"pads": [1, 1, 1, 1], "strides": [2, 2], "ceil_mode": 1},
        {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
        {"pads": [2, 0, 1, 1], "dilations": [2, 2]},
    ],
)
def test_padding_that_counts(attributes):
    check("AveragePool", IMAGE, kernel_shape=[3, 3], count_include_pad=1, **attributes)


@together("operator", ["MaxPool", "AveragePool"])
@together("shape", [(2, 3, 12), (1, 2, 6, 7, 5)])
def test_one_and_three_axes(operator, shape):
    axes = len(shape) - 2
    check(
        operator, {"x": random(*shape)}, kernel_shape=[2] * axes, strides=[2] * axes, pads=[1, *[0] * (2 * axes - 1)]
    )


@together("dtype", ["int8", "uint8"])
def test_integers(dtype):
    check(
        "MaxPool", {"x": random(1, 2, 6, 6, dtype=dtype, low=-100, high=100)}, kernel_shape=[3, 3], pads=[1, 1, 1, 1]
    )


@together("order", [0, 1])
def test_positions(order):
    check("MaxPool", IMAGE, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], outputs=2, storage_order=order)


def test_padding_of_negative_numbers_is_not_the_maximum():
    check("MaxPool", {"x": random(1, 1, 5, 5, low=-9, high=-1)}, kernel_shape=[3, 3], pads=[1, 1, 1, 1])


@together("operator", ["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
def test_global(operator):
    check(operator, IMAGE)


def test_open_sizes():
    feeds = {"x": random(2, 3, 11, 9)}
    for operator in ("MaxPool", "AveragePool"):
        network = check(
            operator,
            feeds,
            symbolic={"x": ["n", 3, "h", "w"]},
            kernel_shape=[3, 3],
            strides=[2, 2],
            pads=[1, 1, 1, 1],
        )
        assert network.inputs[0].shape == (None, 3, None, None)


def test_same_padding_needs_no_extra_layer():
    network = check("MaxPool", IMAGE, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    assert "Pad" not in layers_of(network)
    assert np.sum([kind == "MaxPool" for kind in layers_of(network)]) == 1


@together("axes", [1, 2, 3])
@together("dtype", ["float16", "float64"])
def test_types_that_tensorflow_has_no_pooling_of(axes, dtype):
    shape = (1, 2, 5, 6, 4)[: axes + 2]
    check("MaxPool", {"x": random(*shape, dtype=dtype)}, kernel_shape=[2] * axes, strides=[2] * axes)


@together("dtype", ["int8", "uint8"])
def test_positions_of_the_lowest_integers(dtype):
    lowest = np.full((1, 1, 5, 5), np.iinfo(dtype).min, dtype)
    check("MaxPool", {"x": lowest}, outputs=2, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
