"""Operators with weights, windows and normalizations: PyTorch's in the vocabulary."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from conrepair.frameworks.torch import dtype_name
from conrepair.graph.layer_graph import Attribute, Tensor
from conrepair.networks.torch_call import Rule, TorchCall, TorchPart, axis, pair, sizes
from conrepair.networks.torch_elementwise import operand

__all__ = ["RULES"]


def _convolution(call: TorchCall) -> TorchPart | None:
    weight = call["weight"]
    spatial = call.rank(weight) - 2
    if call.rank(call["input"]) != spatial + 2 or not call.depends(call["input"]):
        return None
    transposed = bool(call["transposed"]) or "transpose" in call.name
    size = tuple(call.value(weight).shape)[2:]
    dilations = pair(call["dilation"], spatial)
    attributes: dict[str, Attribute] = {
        "kernel_shape": tuple(map(int, size)),
        "strides": pair(call["stride"], spatial),
        "pads": _pads(call["padding"], size, dilations),
        "dilations": dilations,
        "group": int(call["groups"]),
    }
    if transposed:
        attributes["output_padding"] = pair(call["output_padding"], spatial)
    inputs, parameters = call.sorted_by_role({"weight": weight, "bias": call["bias"]})
    return TorchPart("ConvTranspose" if transposed else "Conv", attributes, [call["input"], *inputs], parameters)


def _pads(padding: Any, size: Sequence[int], dilations: Sequence[int]) -> tuple[int, ...]:
    if padding == "same":
        totals = [dilation * (extent - 1) for extent, dilation in zip(size, dilations, strict=True)]
        return (*(total // 2 for total in totals), *(total - total // 2 for total in totals))
    if padding == "valid":
        return (0,) * 2 * len(size)
    return pair(padding, len(size)) * 2


def _linear(call: TorchCall) -> TorchPart | None:
    weight, bias = call["weight"], call["bias"]
    if not call.depends(call["input"]) or call.rank(weight) != 2 or call.depends(bias):
        return None
    parameters = {} if bias is None else {"bias": call.parameter(bias)}
    if call.depends(weight):
        return TorchPart("MatMul", {"transpose_b": True}, [call["input"], weight], parameters)
    return TorchPart(
        "MatMul", {}, [call["input"]], {"weight": call.parameter(weight, transform=torch.t), **parameters}
    )


def _matmul(call: TorchCall) -> TorchPart | None:
    second = call["other"] if call["mat2"] is None else call["mat2"]
    return TorchPart("MatMul", {}, *call.sorted_by_role({"left": call["self"], "weight": second}))


def _addmm(call: TorchCall) -> TorchPart | None:
    """A bias that is the same for all rows, plus a product."""
    if call["beta"] != 1 or call["alpha"] != 1 or call.depends(call["self"]) or call.rank(call["self"]) != 1:
        return None
    if not call.depends(call["mat1"]):
        return None
    inputs, parameters = call.sorted_by_role({"weight": call["mat2"]})
    return TorchPart("MatMul", {}, [call["mat1"], *inputs], {**parameters, "bias": call.parameter(call["self"])})


def _batch_norm(call: TorchCall) -> TorchPart | None:
    statistics = {"mean": call["running_mean"], "variance": call["running_var"]}
    return _normalized(call, "BatchNormalization", {"training_mode": bool(call["training"])}, statistics)


def _instance_norm(call: TorchCall) -> TorchPart | None:
    return _normalized(call, "InstanceNormalization", {}) if call["use_input_stats"] else _batch_norm(call)


def _group_norm(call: TorchCall) -> TorchPart | None:
    groups = call["num_groups"] if call["num_groups"] is not None else call["group"]
    return _normalized(call, "GroupNormalization", {"groups": int(groups)})


def _layer_norm(call: TorchCall) -> TorchPart | None:
    rank = call.rank(call["input"])
    axes = tuple(range(rank - len(call["normalized_shape"]), rank))
    return _normalized(call, "RMSNormalization" if call.name == "rms_norm" else "LayerNormalization", {"axes": axes})


def _normalized(
    call: TorchCall, op: str, attributes: Mapping[str, Attribute], statistics: Mapping[str, Any] | None = None
) -> TorchPart | None:
    roles = {"scale": call["weight"], "bias": call["bias"], **(statistics or {})}
    inputs, parameters = call.sorted_by_role(roles)
    several = isinstance(call.value(), tuple | list)
    if inputs or not call.depends(call["input"]) or (several and any(map(call.is_read, (1, 2)))):
        return None
    epsilon = torch.finfo(call.value(call["input"]).dtype).eps if call["eps"] is None else call["eps"]
    return TorchPart(op, {"epsilon": epsilon, **attributes}, [call["input"]], parameters)


def _embedding(call: TorchCall) -> TorchPart | None:
    if not call.is_constant(call["weight"]):
        return None
    return TorchPart("Gather", {"axis": 0}, [call["indices"]], {"table": call.parameter(call["weight"])})


def _pool(call: TorchCall) -> TorchPart | Sequence[TorchPart] | None:
    given = operand(call)
    spatial = int(call.name.split("pool")[1][0])
    if call.rank(given) != spatial + 2 or (isinstance(call.value(), tuple) and call.is_read(1)):
        return None
    size = pair(call["kernel_size"], spatial)
    attributes: dict[str, Attribute] = {
        "kernel_shape": size,
        "strides": pair(call["stride"], spatial) if call["stride"] else size,
        "pads": pair(call["padding"], spatial) * 2,
        "dilations": pair(call["dilation"], spatial) if "dilation" in call.arguments else (1,) * spatial,
        "ceil_mode": bool(call["ceil_mode"]),
    }
    if call.name.startswith("max"):
        return TorchPart("MaxPool", attributes, [given])
    if call.arguments.get("divisor_override") is None:
        return TorchPart("AveragePool", {**attributes, "count_include_pad": bool(call["count_include_pad"])}, [given])
    if call["ceil_mode"]:  # a mean over a window that the edge cuts counts fewer elements
        return None
    value = call.value()
    mean = Tensor(f"{call.node.name}/mean", sizes(value.shape), dtype_name(value.dtype), observable=False)
    factor = call.operand(math.prod(size) / call["divisor_override"], like=given)
    return [
        TorchPart(
            "AveragePool", {**attributes, "count_include_pad": True}, [given], {}, [mean.name], [mean], "/mean"
        ),
        TorchPart("Mul", {}, [mean.name], {"operand": factor}, native="divisor_override"),
    ]


def _adaptive_pool(call: TorchCall) -> TorchPart | None:
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
    attributes = {"kernel_shape": size, "strides": size, "pads": (0, 0) * spatial, "dilations": (1,) * spatial}
    return TorchPart("MaxPool" if maximum else "AveragePool", attributes, [call["self"]])


def _attention(call: TorchCall) -> TorchPart | None:
    """Only what stands between the projections, which are operators of their own."""
    scale = call["scale"] if call["scale"] is not None else call.value(call["query"]).shape[-1] ** -0.5
    if call["dropout_p"]:
        return None
    inputs, parameters = call.sorted_by_role({name: call[name] for name in ("query", "key", "value", "attn_mask")})
    grouped = bool(call["enable_gqa"])
    attributes = {"scale": float(scale), "is_causal": bool(call["is_causal"]), "enable_gqa": grouped}
    return TorchPart("ScaledDotProductAttention", attributes, inputs, parameters)


def _softmax(call: TorchCall) -> TorchPart | None:
    if call["dtype"] is not None and call["dtype"] != call.value(call["self"]).dtype:
        return None
    place = axis(call["dim"], call.rank(call["self"]))
    return TorchPart("LogSoftmax" if "log" in call.name else "Softmax", {"axis": place}, [call["self"]])


RULES: Mapping[str, Rule] = {
    **{
        f"{name}{spatial}d": rule
        for spatial in (1, 2, 3)
        for name, rule in {
            "conv": _convolution,
            "conv_transpose": _convolution,
            "max_pool": _pool,
            "avg_pool": _pool,
            "adaptive_avg_pool": _adaptive_pool,
            "adaptive_max_pool": _adaptive_pool,
            "_adaptive_avg_pool": _adaptive_pool,
        }.items()
    },
    **dict.fromkeys(("max_pool2d_with_indices", "max_pool3d_with_indices"), _pool),
    "convolution": _convolution,
    "linear": _linear,
    **dict.fromkeys(("matmul", "mm", "bmm"), _matmul),
    "addmm": _addmm,
    **dict.fromkeys(("batch_norm", "native_batch_norm", "_native_batch_norm_legit_no_training"), _batch_norm),
    "instance_norm": _instance_norm,
    **dict.fromkeys(("group_norm", "native_group_norm"), _group_norm),
    **dict.fromkeys(("layer_norm", "native_layer_norm", "rms_norm"), _layer_norm),
    "embedding": _embedding,
    "scaled_dot_product_attention": _attention,
    **dict.fromkeys(("softmax", "_softmax", "log_softmax", "_log_softmax"), _softmax),
}
