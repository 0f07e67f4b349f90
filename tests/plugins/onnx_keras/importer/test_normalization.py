import numpy as np
import pytest
from onnx_cases import check, check_text, imported, layers_of, node_model, random, together

from conrepair.ground.runtime.errors import ConversionError

CONV = {"w": random(4, 2, 2, 2, seed=5)}
IMAGE = {"x": random(2, 2, 5, 6)}


def statistics(channels, dtype="float32"):
    return {
        "scale": random(channels, dtype=dtype, low=0.5, high=1.5),
        "bias": random(channels, dtype=dtype, seed=1),
        "mean": random(channels, dtype=dtype, seed=2),
        "variance": random(channels, dtype=dtype, low=0.1, high=2, seed=3),
    }


# --- BatchNormalization --------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 4), (3, 4, 5), (2, 4, 3, 5), (2, 4, 3, 2, 3)], ids=str)
@pytest.mark.parametrize("attributes", [{}, {"epsilon": 0.1}], ids=str)
def test_batch_normalization(shape, attributes):
    network = check("BatchNormalization", {"x": random(*shape)}, statistics(4), **attributes)
    assert layers_of(network) == ["BatchNormalization"]


@together("opset", [7, 8, 9, 14, 15])
def test_batch_normalization_of_older_opsets(opset):
    check("BatchNormalization", {"x": random(2, 4, 3, 5)}, statistics(4), opset=opset, momentum=0.8)


@together("dtype", ["float64", "float16"])
def test_batch_normalization_of_other_types(dtype):
    tolerance = {"rtol": 1e-6, "atol": 1e-6} if dtype == "float64" else {"rtol": 2e-2, "atol": 2e-2}
    check("BatchNormalization", {"x": random(2, 4, 3, dtype=dtype)}, statistics(4, dtype), **tolerance)


def test_batch_normalization_behind_a_convolution():
    constants = CONV | statistics(4)
    text = "a = Conv (x, w) y = BatchNormalization (a, scale, bias, mean, variance)"
    network = check_text(text, IMAGE, constants, symbolic={"x": ["n", 2, "h", "w"]})
    assert layers_of(network) == ["Transpose", "Conv2D", "BatchNormalization", "Transpose"]


@together("perm", [[0, 2, 3, 1], [0, 3, 1, 2], [2, 1, 0, 3]])
def test_batch_normalization_behind_a_transpose(perm):
    shape = (2, 4, 4, 5)
    channels = [shape[axis] for axis in perm][1]
    text = (
        f"a = Conv (x, w) t = Transpose <perm = {perm}> (a) y = BatchNormalization (t, scale, bias, mean, variance)"
    )
    check_text(text, IMAGE, CONV | statistics(channels))


@together("shape", [(3, 4), (2, 4, 3, 5)])
def test_batch_normalization_by_tensors(shape):
    check("BatchNormalization", {"x": random(*shape)} | statistics(4))
    given = statistics(4)
    check("BatchNormalization", {"x": random(*shape), "scale": given.pop("scale")}, given)


def test_batch_normalization_in_training_is_refused():
    feeds = {"x": random(2, 4, 3)}
    for settings in ({"training_mode": 1}, {"training_mode": 1, "outputs": 3}, {"opset": 7, "spatial": 0}):
        with pytest.raises(ConversionError, match=r"BatchNormalization\(.*the_BatchNormalization"):
            imported(node_model("BatchNormalization", feeds, statistics(4), **settings))


# --- LayerNormalization, RMSNormalization --------------------------------------------------------------------


@pytest.mark.parametrize("axis", [None, 1, 2, -2, 0])
@pytest.mark.parametrize("bias", [False, True])
def test_layer_normalization(axis, bias):
    shape = (2, 3, 4)[-1 if axis is None else axis :]
    weights = {"scale": random(*shape)} | ({"bias": random(*shape, seed=1)} if bias else {})
    attributes = {} if axis is None else {"axis": axis}
    network = check("LayerNormalization", {"x": random(2, 3, 4)}, weights, epsilon=1e-3, **attributes)
    assert layers_of(network) == ["LayerNormalization"]


@together("shape", [(1,), (3, 1), (1, 4), (4,)])
def test_layer_normalization_with_weights_that_broadcast(shape):
    weights = {"scale": random(*shape), "bias": random(*shape, seed=1)}
    check("LayerNormalization", {"x": random(2, 3, 4)}, weights, axis=1)


def test_layer_normalization_with_weights_of_more_axes():
    check("LayerNormalization", {"x": random(2, 3, 4)}, {"scale": random(1, 1, 4), "bias": random(4)})
    check("RMSNormalization", {"x": random(2, 3, 4)}, {"scale": random(1, 4)}, opset=23)


def test_layer_normalization_with_other_outputs():
    check("LayerNormalization", {"x": random(2, 3, 4)}, {"scale": random(4), "bias": random(4)}, outputs=3)
    check("LayerNormalization", {"x": random(2, 3, 4)}, {"scale": random(3, 4)}, outputs=2, axis=1)


def test_layer_normalization_by_tensors():
    check("LayerNormalization", {"x": random(2, 3, 4), "scale": random(4), "bias": random(4)})
    check("LayerNormalization", {"x": random(2, 3, 4), "scale": random(4)}, {"bias": random(4)})


def test_layer_normalization_with_open_sizes():
    weights = {"scale": random(4), "bias": random(4)}
    check("LayerNormalization", {"x": random(2, 3, 4)}, weights, symbolic={"x": ["n", "s", 4]})


@together("dtype", ["float64", "float16"])
def test_layer_normalization_of_other_types(dtype):
    weights = {"scale": random(4, dtype=dtype), "bias": random(4, dtype=dtype)}
    tolerance = {"rtol": 1e-6, "atol": 1e-6} if dtype == "float64" else {"rtol": 1e-2, "atol": 1e-2}
    check("LayerNormalization", {"x": random(2, 3, 4, dtype=dtype)}, weights, **tolerance)


@together("axis", [1, 2, 3])
def test_layer_normalization_behind_a_convolution(axis):
    shape = (2, 4, 4, 5)[axis:]
    text = f"a = Conv (x, w) y = LayerNormalization <axis = {axis}> (a, scale, bias)"
    check_text(text, IMAGE, CONV | {"scale": random(*shape), "bias": random(*shape)})


@together("axis", [-1, 1, 0])
@together("given", ["constant", "tensor"])
def test_rms_normalization(axis, given):
    x, scale = {"x": random(2, 3, 4)}, {"scale": random(*(2, 3, 4)[axis:])}
    feeds, constants = (x, scale) if given == "constant" else (x | scale, {})
    check("RMSNormalization", feeds, constants, opset=23, axis=axis)


# --- InstanceNormalization, GroupNormalization ---------------------------------------------------------------


@together("shape", [(2, 4, 7), (2, 4, 3, 5), (2, 4, 2, 3, 2)])
@together("given", ["constant", "tensor"])
def test_instance_normalization(shape, given):
    x, weights = {"x": random(*shape)}, {"scale": random(4), "bias": random(4, seed=1)}
    feeds, constants = (x, weights) if given == "constant" else (x | weights, {})
    check("InstanceNormalization", feeds, constants, epsilon=1e-2)


def test_instance_normalization_with_open_sizes():
    weights = {"scale": random(4), "bias": random(4, seed=1)}
    check("InstanceNormalization", {"x": random(2, 4, 3, 5)}, weights, symbolic={"x": ["n", 4, "h", "w"]})
    check_text("a = Conv (x, w) y = InstanceNormalization (a, scale, bias)", IMAGE, CONV | weights)


@together(("opset", "length"), [(18, 2), (21, 6)])
@together("shape", [(2, 6, 7), (2, 6, 3, 5)])
@together("given", ["constant", "tensor"])
def test_group_normalization(opset, length, shape, given):
    x, weights = {"x": random(*shape)}, {"scale": random(length), "bias": random(length, seed=1)}
    feeds, constants = (x, weights) if given == "constant" else (x | weights, {})
    check("GroupNormalization", feeds, constants, opset=opset, num_groups=2, epsilon=1e-3)


def test_group_normalization_with_as_many_groups_as_channels():
    weights = {"scale": random(4), "bias": random(4)}
    for opset in (18, 21):
        check("GroupNormalization", {"x": random(2, 4, 5)}, weights, opset=opset, num_groups=4)


def test_group_normalization_with_open_sizes():
    weights = {"scale": random(6), "bias": random(6, seed=1)}
    symbolic = {"x": ["n", 6, "h", "w"]}
    check("GroupNormalization", {"x": random(2, 6, 3, 5)}, weights, symbolic=symbolic, num_groups=3)


# --- LRN, LpNormalization ------------------------------------------------------------------------------------


@together("size", [1, 3, 5, 7])
@together("attributes", [{}, {"alpha": 0.3, "beta": 0.5, "bias": 2.0}])
def test_local_response(size, attributes):
    check("LRN", {"x": random(2, 6, 3, 4)}, size=size, **attributes)


def test_local_response_behind_a_convolution():
    check_text("a = Conv (x, w) y = LRN <size = 3, alpha = 0.5> (a)", IMAGE, CONV, symbolic={"x": ["n", 2, "h", "w"]})


@together("axis", [None, 0, 1, -1])
@together("p", [1, 2])
def test_lp_normalization(axis, p):
    check("LpNormalization", {"x": random(2, 3, 4)}, p=p, **({} if axis is None else {"axis": axis}))


def test_lp_normalization_of_zeros():
    check("LpNormalization", {"x": np.array([[0, 0], [3, 4]], np.float32)})


def test_mean_variance_normalization():
    check("MeanVarianceNormalization", {"x": random(2, 3, 4, 5)})


def test_batch_normalization_of_a_constant():
    feeds = {name: random(3, low=0.5, seed=seed) for seed, name in enumerate(["scale", "bias", "mean", "variance"])}
    check("BatchNormalization", feeds, {"x": random(2, 3, 4)}, inputs=["x", *feeds])


def test_layer_normalization_of_half_precision_gives_its_mean_in_single():
    feeds = {"x": random(2, 3, 4, dtype="float16"), "scale": random(4, dtype="float16")}
    check("LayerNormalization", feeds, outputs=3, rtol=5e-3, atol=5e-3)
