import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from onnx_cases import check, imported, node_model, random, run_keras, run_onnx, together

from conrepair.ground.runtime.errors import ConversionError

IMAGE = random(2, 3, 5, 6)
GRID = random(2, 4, 7, 2, low=-1.6, high=1.6)


@together("align", [0, 1])
@together("padding", ["zeros", "border", "reflection"])
@together("mode", ["linear", "nearest", "cubic"])
def test_grid_sample(mode, padding, align):
    check("GridSample", {"x": IMAGE, "g": GRID}, mode=mode, padding_mode=padding, align_corners=align, opset=20)


@together("mode", ["bilinear", "nearest", "bicubic"])
def test_grid_sample_of_opset_16(mode):
    check("GridSample", {"x": IMAGE, "g": GRID}, mode=mode, opset=16)


@together("mode", ["linear", "nearest"])
@together("padding", ["zeros", "border", "reflection"])
def test_grid_sample_of_volumes(mode, padding):
    feeds = {"x": random(2, 2, 3, 4, 5), "g": random(2, 2, 3, 4, 3, low=-1.5, high=1.5)}
    check("GridSample", feeds, mode=mode, padding_mode=padding, opset=20)


def test_grid_sample_of_open_batch_and_constant_grid():
    feeds = {"x": IMAGE, "g": GRID}
    check("GridSample", feeds, opset=20, symbolic={"x": ["n", 3, 5, 6], "g": ["n", 4, 7, 2]})
    check("GridSample", {"x": IMAGE}, {"g": GRID}, opset=20)


@together("mode", ["avg", "max"])
@together("where", ["half_pixel", "output_half_pixel"])
def test_regions(mode, where):
    regions = np.float32([[0, 0, 9, 9], [2, 3, 8.5, 6], [4, 1, 4.2, 1.1], [-3, -2, 12, 14.3], [5, 5, 40, 40]])
    feeds = {"x": random(2, 3, 8, 9), "r": regions, "b": np.array([0, 1, 1, 0, 1])}
    attributes = {"output_height": 3, "output_width": 2, "sampling_ratio": 2, "spatial_scale": 0.8}
    check(
        "RoiAlign", feeds, mode=mode, coordinate_transformation_mode=where, **attributes,
        symbolic={"x": ["n", 3, 8, 9], "r": ["k", 4], "b": ["k"]},
    )  # fmt: skip


def test_regions_of_opset_10():
    feeds = {"x": random(2, 3, 8, 9), "r": np.float32([[0, 0, 7, 7], [2, 3, 2.5, 6]]), "b": np.array([0, 1])}
    check("RoiAlign", feeds, output_height=2, output_width=2, sampling_ratio=3, opset=10)


def test_regions_with_samples_by_size_are_refused():
    with pytest.raises(ConversionError, match="sampling_ratio=0"):
        check("RoiAlign", {"x": IMAGE, "r": np.float32([[0, 0, 3, 3]]), "b": np.array([0])})


@together(
    "attributes", [{}, {"pads": [1, 1, 1, 1]}, {"strides": [2, 1], "pads": [1, 0, 1, 2]}, {"dilations": [2, 1]}]
)
@together(("groups", "shifted"), [(1, 1), (2, 1), (1, 2), (2, 4)])
def test_deformable_convolution(attributes, groups, shifted):
    strides, dilations = attributes.get("strides", [1, 1]), attributes.get("dilations", [1, 1])
    pads, extent = attributes.get("pads", [0] * 4), (3, 2)
    area = [
        (size + pads[axis] + pads[axis + 2] - dilations[axis] * (extent[axis] - 1) - 1) // strides[axis] + 1
        for axis, size in enumerate((6, 7))
    ]
    feeds = {
        "x": random(2, 4, 6, 7),
        "offset": random(2, shifted * 12, *area, seed=2),
        "mask": random(2, shifted * 6, *area, seed=3),
    }
    constants = {"w": random(6, 4 // groups, *extent, seed=4), "b": random(6, seed=5)}
    check(
        "DeformConv", feeds, constants, inputs=["x", "w", "offset", "b", "mask"], group=groups,
        offset_group=shifted, kernel_shape=list(extent), **attributes,
        symbolic={name: ["n", *array.shape[1:]] for name, array in feeds.items()},
    )  # fmt: skip


@together(
    "attributes", [{}, {"pads": [1, 0, 1, 2]}, {"strides": [2, 3]}, {"dilations": [2, 1], "pads": [0, 1, 0, 1]}]
)
def test_image_of_columns(attributes):
    image, block = np.array([7, 8]), np.array([2, 3])
    pads, strides = attributes.get("pads", [0] * 4), attributes.get("strides", [1, 1])
    dilations = attributes.get("dilations", [1, 1])
    count = np.prod([
        (image[axis] + pads[axis] + pads[axis + 2] - dilations[axis] * (block[axis] - 1) - 1) // strides[axis] + 1
        for axis in range(2)
    ])  # fmt: skip
    x = random(2, 2 * 6, int(count))
    check("Col2Im", {"x": x}, {"image": image, "block": block}, symbolic={"x": ["n", *x.shape[1:]]}, **attributes)


def test_max_unpool():
    x = random(2, 3, 4, 6)
    values, places = run_onnx(
        node_model("MaxPool", {"x": x}, outputs=2, kernel_shape=[2, 2], strides=[2, 2]), {"x": x}
    )
    check("MaxUnpool", {"v": values, "i": places}, kernel_shape=[2, 2], strides=[2, 2])
    with pytest.raises(ConversionError, match="implementations disagree"):
        check(
            "MaxUnpool",
            {"v": values, "i": places},
            {"s": np.array([2, 3, 5, 6])},
            kernel_shape=[2, 2],
            strides=[2, 2],
        )


@pytest.mark.parametrize("align", [0, 1])
def test_affine_grid(align):
    """By the function that the standard defines it by; ONNX Runtime has no kernel before opset 20's."""
    theta = random(2, 2, 3)
    model = node_model(
        "AffineGrid", {"theta": theta}, {"size": np.array([2, 3, 4, 5])}, opset=20, align_corners=align
    )
    expected = ReferenceEvaluator(onnx.shape_inference.infer_shapes(model)).run(None, {"theta": theta})[0]
    np.testing.assert_allclose(run_keras(imported(model), {"theta": theta})[0], expected, atol=1e-5)


def test_deformable_convolution_with_as_many_groups_as_cells():
    """All sizes are 2 here: whatever broadcasts along a wrong axis shows."""
    feeds = {"x": random(1, 2, 3, 3), "offset": random(1, 16, 2, 2, seed=2)}
    constants = {"w": random(1, 2, 2, 2, seed=3)}
    check("DeformConv", feeds, constants, inputs=["x", "w", "offset"], offset_group=2, kernel_shape=[2, 2])


def test_as_many_regions_as_samples():
    feeds = {"x": random(1, 3, 8, 9), "r": np.float32([[0, 0, 5, 7], [1, 2, 3, 4]]), "b": np.array([0, 0])}
    check("RoiAlign", feeds, output_height=2, output_width=1, sampling_ratio=1)


def test_a_grid_of_half_precision_names_places_exactly():
    feeds = {"x": random(1, 2, 3, 50), "grid": random(1, 4, 5, 2, dtype="float16", low=-1, high=1)}
    check("GridSample", feeds, opset=20, padding_mode="reflection")
