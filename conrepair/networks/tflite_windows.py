"""TFLite's operators with sliding windows: convolutions and pooling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conrepair.graph.layer_graph import Attribute
from conrepair.networks.parts import same_pads
from conrepair.networks.tflite_operator import POOLS, OperatorView, Rule, TfliteStep

__all__ = ["RULES"]

_SAME = 0

Sizes = Sequence[int]


def _window(
    view: OperatorView, data: int, kernel: Sizes, strides: Sizes, dilations: Sizes | None = None
) -> dict[str, Attribute]:
    axes = len(kernel)
    dilations = dilations or (1,) * axes
    pads, auto_pad = (0,) * (2 * axes), "NOTSET"
    if view.options.padding == _SAME:
        before = view.shape(data)
        if before is None:
            auto_pad = "SAME_UPPER"
        else:
            pads = same_pads(before[1:-1], kernel, strides, dilations)
    return {
        "kernel_shape": tuple(kernel),
        "strides": tuple(strides),
        "pads": pads,
        "dilations": tuple(dilations),
        "auto_pad": auto_pad,
    }


def _convolution(view: OperatorView) -> TfliteStep | None:
    """Of a depthwise one the last axis of the weights has the results' channels."""
    if not view.is_constant(1) or (view.has(2) and not view.is_constant(2)):
        return None
    options, (_, height, width, depth) = view.options, view.shape(1) or ()
    data, depthwise = view.shape(0), view.kind == "DEPTHWISE_CONV_2D"
    window = _window(
        view, 0, (height, width), (options.strideH, options.strideW),
        (options.dilationHFactor, options.dilationWFactor),
    )  # fmt: skip
    if depthwise:
        group = data[-1] if data else depth // max(options.depthMultiplier, 1)
    else:
        group = data[-1] // depth if data else 1
    return _weighted(view, {**window, "group": group})


def _weighted(view: OperatorView, attributes: Mapping[str, Attribute]) -> TfliteStep:
    return TfliteStep("Conv", view.names(0), attributes, {"weight": view.weight(), **view.optional(bias=2)}, True)


def _convolution_3d(view: OperatorView) -> TfliteStep | None:
    if not view.is_constant(1) or (view.has(2) and not view.is_constant(2)):
        return None
    data, kernel = view.shape(0), view.shape(1) or ()
    window = _window(view, 0, kernel[:3], *_strides_3d(view))
    group = data[-1] // kernel[3] if data else 1
    return _weighted(view, {**window, "group": group})


def _strides_3d(view: OperatorView) -> tuple[Sizes, Sizes]:
    options = view.options
    return (
        (options.strideD, options.strideH, options.strideW),
        (options.dilationDFactor, options.dilationHFactor, options.dilationWFactor),
    )


def _transposed(view: OperatorView) -> TfliteStep | None:
    options, kernel = view.options, view.shape(1) or ()
    return _backwards(view, kernel[1:3], (options.strideH, options.strideW), (1, 1))


def _transposed_3d(view: OperatorView) -> TfliteStep | None:
    kernel = view.shape(1) or ()
    return _backwards(view, kernel[:3], *_strides_3d(view))


def _backwards(view: OperatorView, kernel: Sizes, strides: Sizes, dilations: Sizes) -> TfliteStep | None:
    """A transposed convolution is padded as the convolution is whose gradient it is."""
    before, after = view.shape(2), view.result_shape()
    if not view.is_constant(1) or before is None or after is None or (view.has(3) and not view.is_constant(3)):
        return None
    axes = len(kernel)
    pads = (0,) * (2 * axes)
    if view.options.padding == _SAME:
        pads = same_pads(after[1:-1], kernel, strides, dilations)
    reached = [
        (count - 1) * stride + (size - 1) * dilation + 1 - begin - end
        for count, stride, size, dilation, begin, end in zip(
            before[1:-1], strides, kernel, dilations, pads[:axes], pads[axes:], strict=True
        )
    ]
    attributes: Mapping[str, Attribute] = {
        "kernel_shape": tuple(kernel),
        "strides": tuple(strides),
        "pads": pads,
        "dilations": tuple(dilations),
        "auto_pad": "NOTSET",
        "group": 1,
        "output_padding": tuple(size - reach for size, reach in zip(after[1:-1], reached, strict=True)),
    }
    parameters = {"weight": view.weight(), **view.optional(bias=3)}
    return TfliteStep("ConvTranspose", view.names(2), attributes, parameters, True)


def _pooling(op: str) -> Rule:
    def rule(view: OperatorView) -> TfliteStep:
        options = view.options
        kernel, strides = (options.filterHeight, options.filterWidth), (options.strideH, options.strideW)
        attributes = {**_window(view, 0, kernel, strides), "ceil_mode": False}
        if op == "AveragePool":
            attributes["count_include_pad"] = False
        return TfliteStep(op, view.names(0), attributes, channels_last=True)

    return rule


RULES: Mapping[str, Rule] = {
    "CONV_2D": _convolution,
    "DEPTHWISE_CONV_2D": _convolution,
    "CONV_3D": _convolution_3d,
    "TRANSPOSE_CONV": _transposed,
    "CONV_3D_TRANSPOSE": _transposed_3d,
    **{kind: _pooling(op) for kind, op in POOLS.items()},
}
