"""Sampling of images between pixels (GridSample, RoiAlign), and selection of boxes."""

from __future__ import annotations

from conrepair_lab.generate.settings.expressions import most
from conrepair_lab.generate.settings.setting import Setting
from conrepair_lab.generate.settings.shapes import Dims, Either, Size
from conrepair_lab.generate.settings.tensors import Range
from conrepair_lab.generate.settings.windows import image
from conrepair_lab.generate.specifications.specification import operator

_SCALAR = Either((Dims(()), Dims((1,))))

_SCALES = (1.0, 0.5, 0.25)


@operator()
def max_roi_pool(s: Setting) -> None:
    n, c, *_ = image(s, ranks=[4])
    rois = s.input("rois", [Size(0), 5], values=Range(0, most(n - 1, 0), ascending=True, whole=True))
    s.require((n >= 1) | (rois.shape[0] == 0), "boxes in no image")
    pooled = s.sizes("pooled_shape", [Size(), Size()])
    s.real("spatial_scale", 0.01, 100.0, usual=_SCALES)
    s.output([rois.shape[0], c, *pooled])


@operator()
def roi_align(s: Setting) -> None:
    n, c, *_ = image(s, ranks=[4])
    rois = s.input("rois", [Size(0), 4], values=Range(-2.0, 20.0, ascending=True))
    s.input("batch_indices", [rois.shape[0]], values=Range(0, most(n - 1, 0)))
    s.require((n >= 1) | (rois.shape[0] == 0), "boxes in no image")
    s.choice("mode", ("avg", "max"))
    s.choice("coordinate_transformation_mode", ("half_pixel", "output_half_pixel"))
    s.integer("sampling_ratio", 0, None)
    s.real("spatial_scale", 0.01, 100.0, usual=_SCALES)
    s.output([rois.shape[0], c, s.size_said("output_height"), s.size_said("output_width")])


@operator()
def non_max_suppression(s: Setting) -> None:
    batch, boxes, _ = s.input("boxes", [Size(0), Size(0), 4], values=Range(0.0, 10.0)).shape
    s.input("scores", [batch, Size(0), boxes])
    s.maybe(s.input, "max_output_boxes_per_class", _SCALAR, values=Range(0, 8))
    for name in ("iou_threshold", "score_threshold"):
        s.maybe(s.input, name, _SCALAR, values=Range(0.0, 1.0))
    s.flag("center_point_box")
    s.output([None, 3])


@operator()
def grid_sample(s: Setting) -> None:
    n, c, *space = image(s, ranks=(4, 5))
    places = s.input("grid", [n, *(Size(0) for _ in space), len(space)]).shape[1:-1]
    linear, cubic = ("linear", "cubic") if s.opset >= 20 else ("bilinear", "bicubic")
    s.choice("mode", (linear, "nearest", cubic) if len(space) == 2 else (linear, "nearest"))
    s.choice("padding_mode", ("zeros", "border", "reflection"))
    s.flag("align_corners")
    s.output([n, c, *places])


@operator()
def affine_grid(s: Setting) -> None:
    theta = s.input("theta", Either((Dims((Size(0), 2, 3)), Dims((Size(0), 3, 4)))))
    n, dims, _ = theta.shape
    kernel = theta.dtype != "float16" or dims != 2
    s.require((n != 1) | kernel, "ONNX Runtime has no kernel for 16 bits, and the body that it takes then fails")
    _, _, *space = s.sizes("size", [n, Size(0), *(Size() for _ in range(dims))])
    s.flag("align_corners")
    s.output([n, *space, dims])
