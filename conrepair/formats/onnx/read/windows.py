"""ONNX's convolutions and poolings in the vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from conrepair.formats.onnx.passes.explicit_pads import shared_padding
from conrepair.formats.onnx.read.call import OnnxCall
from conrepair.ground.graph.layer_graph import Attribute
from conrepair.ground.graph.operators import OPERATORS, family


def _convolution(call: OnnxCall) -> None:
    kernel = kernel_of(call)
    window = {**call.said(), **window_of(call, kernel)}
    if "output_padding" in OPERATORS[call.operator].attributes:
        window["output_padding"] = call.attribute("output_padding") or (0,) * len(kernel or ())
        _pad_transposed(window)
    call.emit(call.varying(), window, call.behind(call.operator))


def _pool(call: OnnxCall) -> None:
    if call.attribute("storage_order", 0) and call.is_read(1):
        return
    call.emit(call.varying(), {**call.said(), **window_of(call, call.attribute("kernel_shape"))})


def _global_pool(call: OnnxCall) -> None:
    rank = call.rank(0)
    axes = None if rank is None else tuple(range(2, rank))
    operator = "ReduceMean" if call.operator == "GlobalAveragePool" else "ReduceMax"
    call.emit(call.varying(), {"axes": axes, "keepdims": True}, operator=operator)


def kernel_of(call: OnnxCall, weight: int = 1) -> tuple[int, ...] | None:
    """The spatial sizes of a convolution's kernel, if they're known; `weight` is its place among the inputs."""
    if call.has_attribute("kernel_shape"):
        return tuple(call.attribute("kernel_shape"))
    shape = call.shape(weight)
    return None if shape is None else shape[2:]


def window_of(call: OnnxCall, kernel: Sequence[int] | None) -> dict[str, Attribute]:
    """The attributes of a sliding window; each has an entry for every spatial axis."""
    rank = len(kernel) if kernel is not None else (call.rank(0) or 2) - 2
    mode = str(call.attribute("auto_pad", "NOTSET"))
    pads = call.attribute("pads") or (0,) * 2 * rank
    resolved = mode in {"NOTSET", "VALID"}
    return {
        "kernel_shape": None if kernel is None else tuple(kernel),
        "strides": call.attribute("strides") or (1,) * rank,
        "dilations": call.attribute("dilations") or (1,) * rank,
        "pads": None if not resolved else (0,) * 2 * rank if mode == "VALID" else pads,
        "auto_pad": "NOTSET" if resolved else mode,
    }


def _pad_transposed(window: dict[str, Any]) -> None:
    """Resolve SAME of a transposed convolution in place: outputs are as many times the inputs as the stride says."""
    if window["auto_pad"] == "NOTSET" or window["kernel_shape"] is None:
        return
    columns = (window[name] for name in ("kernel_shape", "strides", "dilations", "output_padding"))
    totals = [
        (size - 1) * dilation + 1 + extra - stride for size, stride, dilation, extra in zip(*columns, strict=True)
    ]
    if min(totals) >= 0:
        window.update(pads=tuple(shared_padding(totals, window["auto_pad"])), auto_pad="NOTSET")


RULES: Mapping[str, Callable[[OnnxCall], None]] = {
    **dict.fromkeys(family("convolution"), _convolution),
    **dict.fromkeys(("AveragePool", "MaxPool"), _pool),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool"), _global_pool),
}
