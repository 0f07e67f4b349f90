"""Operators with weights, windows and normalizations: PyTorch's in the vocabulary."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from conrepair.formats.networks.parts import Rules, window
from conrepair.formats.torch.load.framework import dtype_name
from conrepair.formats.torch.read.call import TorchCall, TorchPart, axis, pair, sizes
from conrepair.formats.torch.read.elementwise import operand
from conrepair.ground.graph.layer_graph import Attribute, Tensor
from conrepair.ground.graph.operators import OPERATORS

RULES = Rules()


def _of_axes(name: str) -> list[str]:
    """An operator's names, of one to three axes of pictures."""
    return [f"{name}{axes}d" for axes in (1, 2, 3)]


@RULES.of("Conv", "convolution", *_of_axes("conv"))
@RULES.of("ConvTranspose", *_of_axes("conv_transpose"))
def _convolution(op: str, call: TorchCall) -> TorchPart | None:
    weight = call["weight"]
    spatial = call.rank(weight) - 2
    if call.rank(call["input"]) != spatial + 2 or not call.depends(call["input"]):
        return None
    op = "ConvTranspose" if call["transposed"] else op
    size, padding = tuple(call.value(weight).shape)[2:], call["padding"]
    pads = padding if isinstance(padding, str) else pair(padding, spatial) * 2
    attributes = window(size, pair(call["stride"], spatial), pair(call["dilation"], spatial), pads, size)
    attributes["group"] = int(call["groups"])
    if "output_padding" in OPERATORS[op].attributes:
        attributes["output_padding"] = pair(call["output_padding"], spatial)
    inputs, parameters = call.sorted_by_role({"weight": weight, "bias": call["bias"]})
    return TorchPart(op, attributes, [call["input"], *inputs], parameters)


@RULES.of("MatMul", "linear")
def _linear(op: str, call: TorchCall) -> TorchPart | None:
    weight, bias = call["weight"], call["bias"]
    if not call.depends(call["input"]) or call.rank(weight) != 2 or call.depends(bias):
        return None
    parameters = {} if bias is None else {"bias": call.parameter(bias)}
    if call.depends(weight):
        return TorchPart(op, {"transpose_b": True}, [call["input"], weight], parameters)
    return TorchPart(op, {}, [call["input"]], {"weight": call.parameter(weight, transform=torch.t), **parameters})


@RULES.of("MatMul", "matmul", "mm", "bmm")
def _matmul(op: str, call: TorchCall) -> TorchPart | None:
    second = call["other"] if call["mat2"] is None else call["mat2"]
    return TorchPart(op, {}, *call.sorted_by_role({"left": call["self"], "weight": second}))


@RULES.of("MatMul", "addmm")
def _addmm(op: str, call: TorchCall) -> TorchPart | None:
    """A bias that is the same for all rows, plus a product."""
    if call["beta"] != 1 or call["alpha"] != 1 or call.depends(call["self"]) or call.rank(call["self"]) != 1:
        return None
    if not call.depends(call["mat1"]):
        return None
    inputs, parameters = call.sorted_by_role({"weight": call["mat2"]})
    return TorchPart(op, {}, [call["mat1"], *inputs], {**parameters, "bias": call.parameter(call["self"])})


@RULES.of("BatchNormalization", "batch_norm", "native_batch_norm", "_native_batch_norm_legit_no_training")
def _batch_norm(op: str, call: TorchCall) -> TorchPart | None:
    statistics = {"mean": call["running_mean"], "variance": call["running_var"]}
    return _normalized(op, call, {"training_mode": bool(call["training"])}, statistics)


@RULES.of("InstanceNormalization", "instance_norm")
def _instance_norm(op: str, call: TorchCall) -> TorchPart | None:
    return _normalized(op, call, {}) if call["use_input_stats"] else RULES["batch_norm"](call)


@RULES.of("GroupNormalization", "group_norm", "native_group_norm")
def _group_norm(op: str, call: TorchCall) -> TorchPart | None:
    groups = call["num_groups"] if call["num_groups"] is not None else call["group"]
    return _normalized(op, call, {"groups": int(groups)})


@RULES.of("LayerNormalization", "layer_norm", "native_layer_norm")
@RULES.of("RMSNormalization", "rms_norm")
def _layer_norm(op: str, call: TorchCall) -> TorchPart | None:
    rank = call.rank(call["input"])
    axes = tuple(range(rank - len(call["normalized_shape"]), rank))
    return _normalized(op, call, {"axes": axes})


def _normalized(
    op: str, call: TorchCall, attributes: Mapping[str, Attribute], statistics: Mapping[str, Any] | None = None
) -> TorchPart | None:
    roles = {"scale": call["weight"], "bias": call["bias"], **(statistics or {})}
    inputs, parameters = call.sorted_by_role(roles)
    several = isinstance(call.value(), tuple | list)
    if inputs or not call.depends(call["input"]) or (several and any(map(call.is_read, (1, 2)))):
        return None
    epsilon = torch.finfo(call.value(call["input"]).dtype).eps if call["eps"] is None else call["eps"]
    return TorchPart(op, {"epsilon": epsilon, **attributes}, [call["input"]], parameters)


@RULES.of("Gather", "embedding")
def _embedding(op: str, call: TorchCall) -> TorchPart | None:
    if not call.is_constant(call["weight"]):
        return None
    return TorchPart(op, {"axis": 0}, [call["indices"]], {"table": call.parameter(call["weight"])})


@RULES.of("MaxPool", "max_pool2d_with_indices", "max_pool3d_with_indices", *_of_axes("max_pool"))
@RULES.of("AveragePool", *_of_axes("avg_pool"))
def _pool(op: str, call: TorchCall) -> TorchPart | Sequence[TorchPart] | None:
    given = operand(call)
    spatial = int(call.name.split("pool")[1][0])
    if call.rank(given) != spatial + 2 or (isinstance(call.value(), tuple) and call.is_read(1)):
        return None
    size = pair(call["kernel_size"], spatial)
    strides = pair(call["stride"], spatial) if call["stride"] else size
    dilations = pair(call["dilation"], spatial) if "dilation" in call.arguments else (1,) * spatial
    attributes = window(size, strides, dilations, pair(call["padding"], spatial) * 2, None)
    attributes["ceil_mode"] = bool(call["ceil_mode"])
    if "count_include_pad" in call.arguments:
        attributes["count_include_pad"] = bool(call["count_include_pad"])
    if call["divisor_override"] is None:
        return TorchPart(op, attributes, [given])
    if call["ceil_mode"]:  # a mean over a window that the edge cuts counts fewer elements
        return None
    value = call.value()
    mean = Tensor(f"{call.node.name}/mean", sizes(value.shape), dtype_name(value.dtype), observable=False)
    factor = call.operand(math.prod(size) / call["divisor_override"], like=given)
    return [
        TorchPart(op, {**attributes, "count_include_pad": True}, [given], {}, [mean.name], [mean], "/mean"),
        TorchPart("Mul", {}, [mean.name], {"operand": factor}, native=f"divisor_override={call['divisor_override']}"),
    ]


@RULES.of("MaxPool", *_of_axes("adaptive_max_pool"))
@RULES.of("AveragePool", *_of_axes("adaptive_avg_pool"), *_of_axes("_adaptive_avg_pool"))
def _adaptive_pool(op: str, call: TorchCall) -> TorchPart | None:
    """Windows of one size, where the output's sizes divide the input's."""
    maximum = "max" in call.name
    if maximum and call.is_read(1):
        return None
    spatial = int(call.name.split("pool")[1][0])
    wanted, before = pair(call["output_size"], spatial), call.shape(call["self"])
    rank = call.rank(call["self"])
    if set(wanted) == {1}:
        axes = tuple(range(rank - spatial, rank))
        return TorchPart("ReduceMax" if maximum else "ReduceMean", {"axes": axes, "keepdims": True}, [call["self"]])
    if rank != spatial + 2 or before is None or any(map(math.fmod, before[2:], wanted)):
        return None
    size = tuple(extent // count for extent, count in zip(before[2:], wanted, strict=True))
    return TorchPart(op, window(size, size, (1,) * spatial, "valid", None), [call["self"]])


def _attention(call: TorchCall) -> TorchPart | None:
    """Only what stands between the projections, which are operators of their own."""
    scale = call["scale"] if call["scale"] is not None else call.value(call["query"]).shape[-1] ** -0.5
    if call["dropout_p"]:
        return None
    inputs, parameters = call.sorted_by_role({name: call[name] for name in ("query", "key", "value", "attn_mask")})
    grouped = bool(call["enable_gqa"])
    attributes = {"scale": float(scale), "is_causal": bool(call["is_causal"]), "enable_gqa": grouped}
    return TorchPart("ScaledDotProductAttention", attributes, inputs, parameters)


RULES["scaled_dot_product_attention"] = _attention


@RULES.of("Softmax", "softmax", "_softmax")
@RULES.of("LogSoftmax", "log_softmax", "_log_softmax")
def _softmax(op: str, call: TorchCall) -> TorchPart | None:
    if call["dtype"] is not None and call["dtype"] != call.value(call["self"]).dtype:
        return None
    place = axis(call["dim"], call.rank(call["self"]))
    return TorchPart(op, {"axis": place}, [call["self"]])
