"""Normalizations of Keras, and layers that do nothing in inference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from keras import config, layers, ops

from conrepair.graph.layer_graph import Attribute, Parameter
from conrepair.networks.keras_parts import KerasCall, Rule, constant, weight
from conrepair.networks.parts import LayerPart

__all__ = ["RULES"]


def _parameters(roles: Mapping[str, Any]) -> dict[str, Parameter]:
    return {role: weight(variable) for role, variable in roles.items() if variable is not None}


def _affine(layer: Any) -> dict[str, Any]:
    return {
        "scale": layer.gamma if layer.scale else None,
        "bias": layer.beta if layer.center else None,
    }


def _by_channel(call: KerasCall, op: str, roles: Mapping[str, Any], **attributes: Attribute) -> list[LayerPart]:
    axis = call.axis(call.operation.axis)
    if axis not in (1, call.rank - 1):
        raise ValueError("along another axis than the channels'")
    attributes["epsilon"] = float(call.operation.epsilon)
    return [LayerPart(op, attributes, _parameters(roles), axis == call.rank - 1)]


def _batch_normalization(call: KerasCall) -> list[LayerPart]:
    layer = call.operation
    roles = _affine(layer) | {"mean": layer.moving_mean, "variance": layer.moving_variance}
    return _by_channel(call, "BatchNormalization", roles, training_mode=False)


def _along_axes(call: KerasCall, op: str, roles: Mapping[str, Any]) -> list[LayerPart]:
    layer = call.operation
    attributes: dict[str, Attribute] = {"epsilon": float(layer.epsilon), "axes": call.axes(layer.axis)}
    return [LayerPart(op, attributes, _parameters(roles), True)]


def _layer_normalization(call: KerasCall) -> list[LayerPart]:
    if getattr(call.operation, "rms_scaling", False):
        raise ValueError("scaled by the variance alone, which is no root mean square")
    return _along_axes(call, "LayerNormalization", _affine(call.operation))


def _rms_normalization(call: KerasCall) -> list[LayerPart]:
    return _along_axes(call, "RMSNormalization", {"scale": call.operation.scale})


def _group_normalization(call: KerasCall) -> list[LayerPart]:
    layer = call.operation
    return _by_channel(call, "GroupNormalization", _affine(layer), groups=int(layer.groups))


def _rescaling(call: KerasCall) -> list[LayerPart]:
    """Twice elementwise: factors, then offsets."""
    layer = call.operation
    scale, offset = np.asarray(layer.scale, np.float32), np.asarray(layer.offset, np.float32)
    if "first" in str(getattr(layer, "data_format", "")) and max(scale.ndim, offset.ndim):
        raise ValueError("a number for each channel of another axis than the last")
    factor = LayerPart("Mul", {"constant_first": False}, {"operand": constant(scale)}, True)
    added = LayerPart("Add", {"constant_first": False}, {"operand": constant(offset)}, True)
    return [factor, added] if offset.any() else [factor]


def _normalization(call: KerasCall) -> list[LayerPart]:
    """Twice elementwise: the mean, then the deviation."""
    layer = call.operation
    if layer.invert:
        raise ValueError("undoes a normalization")
    mean, variance = (np.asarray(ops.convert_to_numpy(item), np.float64) for item in (layer.mean, layer.variance))
    deviation = np.maximum(np.sqrt(variance), config.epsilon())
    return [
        LayerPart(op, {"constant_first": False}, {"operand": constant(values.astype(np.float32))}, True)
        for op, values in (("Sub", mean), ("Div", deviation))
    ]


def _unit_normalization(call: KerasCall) -> list[LayerPart]:
    return [LayerPart("LpNormalization", {"p": 2, "axes": call.axes(call.operation.axis), "epsilon": 1e-12})]


_NOTHING = (
    *(layers.Dropout, layers.SpatialDropout1D, layers.SpatialDropout2D, layers.SpatialDropout3D),
    *(layers.GaussianDropout, layers.GaussianNoise, layers.AlphaDropout),
    *(layers.ActivityRegularization, layers.Identity),
)

RULES: dict[type, Rule] = {
    layers.BatchNormalization: _batch_normalization,
    layers.LayerNormalization: _layer_normalization,
    layers.RMSNormalization: _rms_normalization,
    layers.GroupNormalization: _group_normalization,
    layers.UnitNormalization: _unit_normalization,
    layers.Rescaling: _rescaling,
    layers.Normalization: _normalization,
    **dict.fromkeys(_NOTHING, lambda _: [LayerPart("Identity")]),
}
