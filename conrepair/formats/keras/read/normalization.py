"""Normalizations of Keras, and layers that do nothing in inference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from keras import config, layers, ops

from conrepair.formats.keras.read.parts import KerasCall, constant, weight
from conrepair.formats.networks.parts import LayerPart, Rules
from conrepair.ground.graph.layer_graph import Attribute, Parameter

RULES = Rules()


def _parameters(roles: Mapping[str, Any]) -> dict[str, Parameter]:
    return {role: weight(variable) for role, variable in roles.items() if variable is not None}


def _affine(layer: Any) -> dict[str, Any]:
    return {"scale": layer.gamma if layer.scale else None, "bias": layer.beta if layer.center else None}


def _by_channel(op: str, call: KerasCall, roles: Mapping[str, Any], **attributes: Attribute) -> list[LayerPart]:
    axis = call.axis(call.operation.axis)
    if axis not in (1, call.rank - 1):
        raise ValueError("along another axis than the channels'")
    attributes["epsilon"] = float(call.operation.epsilon)
    return [LayerPart(op, attributes, _parameters(roles), axis == call.rank - 1)]


@RULES.of("BatchNormalization", layers.BatchNormalization)
def _batch_normalization(op: str, call: KerasCall) -> list[LayerPart]:
    layer = call.operation
    roles = _affine(layer) | {"mean": layer.moving_mean, "variance": layer.moving_variance}
    return _by_channel(op, call, roles, training_mode=False)


def _along_axes(op: str, call: KerasCall, roles: Mapping[str, Any]) -> list[LayerPart]:
    layer = call.operation
    attributes: dict[str, Attribute] = {"epsilon": float(layer.epsilon), "axes": call.axes(layer.axis)}
    return [LayerPart(op, attributes, _parameters(roles), True)]


@RULES.of("LayerNormalization", layers.LayerNormalization)
def _layer_normalization(op: str, call: KerasCall) -> list[LayerPart]:
    if getattr(call.operation, "rms_scaling", False):
        raise ValueError("scaled by the variance alone, which is no root mean square")
    return _along_axes(op, call, _affine(call.operation))


@RULES.of("RMSNormalization", layers.RMSNormalization)
def _rms_normalization(op: str, call: KerasCall) -> list[LayerPart]:
    return _along_axes(op, call, {"scale": call.operation.scale})


@RULES.of("GroupNormalization", layers.GroupNormalization)
def _group_normalization(op: str, call: KerasCall) -> list[LayerPart]:
    layer = call.operation
    return _by_channel(op, call, _affine(layer), groups=int(layer.groups))


@RULES.of("Mul", layers.Rescaling)
def _rescaling(op: str, call: KerasCall) -> list[LayerPart]:
    """A normalization as two elementwise operators: factors, then offsets."""
    layer = call.operation
    scale, offset = np.asarray(layer.scale, np.float32), np.asarray(layer.offset, np.float32)
    if "first" in str(getattr(layer, "data_format", "")) and max(scale.ndim, offset.ndim):
        raise ValueError("a number for each channel of another axis than the last")
    return [_by_constant(op, scale), *([_by_constant("Add", offset)] if offset.any() else [])]


def _by_constant(op: str, numbers: Any) -> LayerPart:
    return LayerPart(op, {"constant_first": False}, {"operand": constant(numbers.astype(np.float32))}, True)


@RULES.of("Sub", layers.Normalization)
def _normalization(op: str, call: KerasCall) -> list[LayerPart]:
    """A normalization as two elementwise operators: the mean, then the deviation."""
    layer = call.operation
    if layer.invert:
        raise ValueError("undoes a normalization")
    mean, variance = (np.asarray(ops.convert_to_numpy(item), np.float64) for item in (layer.mean, layer.variance))
    deviation = np.maximum(np.sqrt(variance), config.epsilon())
    return [_by_constant(op, mean), _by_constant("Div", deviation)]


@RULES.of("LpNormalization", layers.UnitNormalization)
def _unit_normalization(op: str, call: KerasCall) -> list[LayerPart]:
    return [LayerPart(op, {"p": 2, "axes": call.axes(call.operation.axis), "epsilon": 1e-12})]


@RULES.of(
    "Identity",
    *(layers.Dropout, layers.SpatialDropout1D, layers.SpatialDropout2D, layers.SpatialDropout3D),
    *(layers.GaussianDropout, layers.GaussianNoise, layers.AlphaDropout),
    *(layers.ActivityRegularization, layers.Identity),
)
def _nothing(op: str, _: KerasCall) -> list[LayerPart]:
    return [LayerPart(op)]
