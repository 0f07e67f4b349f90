import itertools

import numpy as np
import pytest
from onnx_cases import check, layers_of, random, together

from conrepair.formats.converters.interpolation import Axis, coordinates, cubic, linear, nearest, weights
from conrepair.ground.runtime.errors import ConversionError

IMAGE = {"x": random(2, 3, 5, 7)}
COORDINATES = [
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn",
]  # fmt: skip
SCALES = [(2, 3), (0.7, 0.45), (1.7, 1.3), (0.4, 2.5)]
WHOLE = [(2, 3), (0.4, 2), (1.2, 3)]  # with align_corners, others are refused
SIZES = [(3, 11), (1, 1), (10, 14)]


def resized(x, scales=None, sizes=None, roi=None, opset=21, **attributes):
    constants, names = {}, ["x", "", "", ""]
    for place, name, value, dtype in [
        (1, "roi", roi, np.float32), (2, "scales", scales, np.float32), (3, "sizes", sizes, np.int64),
    ]:  # fmt: skip
        if value is not None:
            constants[name], names[place] = np.array(value, dtype), name
    while not names[-1]:
        names.pop()
    return check("Resize", {"x": x}, constants, inputs=names, opset=opset, **attributes)


@together("mode", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
@together("where", COORDINATES)
def test_nearest(where, mode):
    for scales in WHOLE if where == "align_corners" else SCALES:
        resized(IMAGE["x"], [1, 1, *scales], coordinate_transformation_mode=where, nearest_mode=mode)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_corners_of_fractional_sizes_are_refused(mode):
    """The standard aligns with size x factor, ONNX Runtime and PyTorch with the rounded size."""
    with pytest.raises(ConversionError, match="runtimes disagree; give sizes"):
        resized(IMAGE["x"], [1, 1, 0.7, 1], coordinate_transformation_mode="align_corners", mode=mode)


@together("where", COORDINATES)
@together("mode", ["nearest", "linear", "cubic"])
def test_sizes(mode, where):
    for sizes in SIZES:
        resized(IMAGE["x"], sizes=[2, 3, *sizes], coordinate_transformation_mode=where, mode=mode)


@together("where", COORDINATES)
@together("mode", ["linear", "cubic"])
def test_interpolated(mode, where):
    for scales in WHOLE if where == "align_corners" else SCALES:
        resized(IMAGE["x"], [1, 1, *scales], coordinate_transformation_mode=where, mode=mode)


@together("attributes", [{"cubic_coeff_a": -0.5}, {"exclude_outside": 1}])
def test_cubic_attributes(attributes):
    for scales in SCALES:
        resized(IMAGE["x"], [1, 1, *scales], mode="cubic", **attributes)


@together("attributes", [{"nearest_mode": "floor"}, {"cubic_coeff_a": -0.5}])
def test_attributes_of_other_modes_change_nothing(attributes):
    """PyTorch's exporter writes nearest_mode for bilinear interpolation too."""
    for scales in SCALES:
        resized(IMAGE["x"], [1, 1, *scales], mode="linear", **attributes)


@together("exclude", [0, 1])
@together("mode", ["linear", "cubic"])
def test_antialias(mode, exclude):
    for scales in SCALES:
        resized(IMAGE["x"], [1, 1, *scales], mode=mode, antialias=1, exclude_outside=exclude)


@together("mode", ["nearest", "linear", "cubic"])
def test_region_of_interest(mode):
    region = [0, 0, 0.2, 0.1, 1, 1, 0.9, 1.3]
    for sizes in [(3, 11), (1, 4), (6, 8)]:
        resized(
            IMAGE["x"],
            sizes=[2, 3, *sizes],
            roi=region,
            mode=mode,
            coordinate_transformation_mode="tf_crop_and_resize",
            extrapolation_value=7.5,
        )


def test_a_region_of_an_axis_that_keeps_its_size_is_refused():
    with pytest.raises(ConversionError, match="implementations disagree"):
        resized(
            IMAGE["x"], sizes=[2, 3, 4, 7], roi=[0, 0, 0, 0.5, 1, 1, 1, 1],
            coordinate_transformation_mode="tf_crop_and_resize",
        )  # fmt: skip


@together("policy", ["stretch", "not_larger", "not_smaller"])
def test_axes_and_aspect_ratio(policy):
    for axes, sizes in [([2, 3], (8, 8)), ([3, 2], (9, 4)), ([3], (3,))]:
        resized(IMAGE["x"], sizes=sizes, axes=axes, keep_aspect_ratio_policy=policy)


@together("mode", ["nearest", "linear"])
@together("opset", [10, 11, 13, 18, 19])
def test_opsets(opset, mode):
    for scales in [(2, 2), (0.6, 1.5)]:
        if opset > 10:
            resized(IMAGE["x"], [1, 1, *scales], roi=[0] * 8, mode=mode, opset=opset)
        else:
            check("Resize", IMAGE, {"scales": np.float32([1, 1, *scales])}, mode=mode, opset=opset)


@together("mode", ["nearest", "linear"])
@together("scales", [(2.0, 3.0), (1.5, 2.0)])
def test_upsample(scales, mode):
    check("Upsample", IMAGE, {"scales": np.float32([1, 1, *scales])}, mode=mode, opset=9)
    check("Upsample", IMAGE, mode=mode, opset=7, scales=[1.0, 1.0, *scales])


@together("mode", ["nearest", "linear"])
@together("shape", [(2, 3, 7), (1, 2, 3, 4, 5)])
def test_one_and_three_axes(shape, mode):
    for factor in (2, 1.5):
        resized(random(*shape), [1, 1, *[factor] * (len(shape) - 2)], mode=mode)


def test_batch_and_channels_can_be_resized():
    resized(IMAGE["x"], [2, 1.5, 1, 2], coordinate_transformation_mode="asymmetric", nearest_mode="floor")


@together("dtype", ["uint8", "int8", "int32"])
def test_integers_are_copied(dtype):
    resized(random(1, 2, 4, 5, dtype=dtype, low=-90, high=90), [1, 1, 2, 1.6], nearest_mode="floor")


def test_integers_are_not_interpolated():
    with pytest.raises(ConversionError, match="rounding isn't defined"):
        resized(random(1, 2, 4, 5, dtype="uint8", high=90), [1, 1, 2, 1.6], mode="linear")


@pytest.mark.parametrize(
    ("attributes", "scales", "layers"),
    [
        ({"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}, (2, 3), ("UpSampling2D",)),
        ({"mode": "linear", "coordinate_transformation_mode": "pytorch_half_pixel"}, (4, 2), ("UpSampling2D",)),
        ({"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}, (0.5, 1), ("GetItem",)),
        ({"mode": "linear", "coordinate_transformation_mode": "align_corners"}, (2, 2), ("Matmul", "Reshape")),
    ],
    ids=str,
)
def test_simple_layers(attributes, scales, layers):
    network = resized(IMAGE["x"], [1, 1, *scales], **attributes)
    assert set(layers_of(network)) - {"Transpose"} == set(layers)


@pytest.mark.parametrize(
    "attributes",
    [
        {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
        {"coordinate_transformation_mode": "half_pixel"},
        {"mode": "linear"},
    ],
    ids=str,
)
def test_open_sizes(attributes):
    constants = {"scales": np.float32([1, 1, 2, 3])}
    names, symbolic = ["x", "", "scales"], {"x": ["n", 3, "h", "w"]}
    network = check("Resize", IMAGE, constants, inputs=names, symbolic=symbolic, **attributes)
    assert network.inputs[0].shape == (None, 3, None, None)


def test_open_sizes_of_other_factors_are_refused():
    constants, names = {"scales": np.float32([1, 1, 0.5, 1.5])}, ["x", "", "scales"]
    with pytest.raises(ConversionError, match="must be known for this mode and factor; fix it with --input"):
        check("Resize", IMAGE, constants, inputs=names, symbolic={"x": ["n", 3, "h", "w"]})


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_an_open_batch_stays_open(mode):
    constants, names = {"scales": np.float32([1, 1, 1.7, 0.6])}, ["x", "", "scales"]
    network = check("Resize", IMAGE, constants, inputs=names, mode=mode, symbolic={"x": ["n", 3, 5, 7]})
    assert network.outputs[0].shape == (None, 3, 8, 4)


def test_weights_of_a_row_add_up_to_one():
    for (size, length), where in itertools.product([(5, 9), (9, 4), (4, 8)], COORDINATES):
        axis = Axis(size, length, length / size)
        for kernel, antialias in itertools.product([linear, cubic(-0.75)], [False, True]):
            matrix = weights(coordinates(axis, where), axis, kernel, antialias=antialias, exclude_outside=False)
            np.testing.assert_allclose(matrix.sum(axis=1), 1)


def test_nearest_cells_lie_inside():
    axis = Axis(7, 3, 3 / 7)
    for mode in ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil", "simple"):
        chosen = nearest(coordinates(axis, "tf_half_pixel_for_nn"), mode, axis)
        assert chosen.min() >= 0
        assert chosen.max() < 7
