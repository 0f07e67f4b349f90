"""Normalizations of Keras, and layers that do nothing in inference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keras import layers

from conrepair.graph.layer_graph import Attribute, Parameter
from conrepair.networks.keras_parts import Call, Rule, weight
from conrepair.networks.parts import Part

__all__ = ["RULES"]


def _parameters(roles: Mapping[str, Any]) -> dict[str, Parameter]:
    return {role: weight(variable) for role, variable in roles.items() if variable is not None}


def _affine(layer: Any) -> dict[str, Any]:
    return {
        "scale": layer.gamma if layer.scale else None,
        "bias": layer.beta if layer.center else None,
    }


def _batch_normalization(call: Call) -> list[Part]:
    layer = call.operation
    axis = call.axis(layer.axis)
    if axis not in (1, call.rank - 1):
        raise ValueError("along another axis than the channels'")
    roles = _affine(layer) | {"mean": layer.moving_mean, "variance": layer.moving_variance}
    attributes = {"epsilon": float(layer.epsilon), "training_mode": False}
    return [Part("BatchNormalization", attributes, _parameters(roles), axis == call.rank - 1)]


def _layer_normalization(call: Call) -> list[Part]:
    layer = call.operation
    if getattr(layer, "rms_scaling", False):
        raise ValueError("scaled by the variance alone, which is no root mean square")
    attributes: dict[str, Attribute] = {"epsilon": float(layer.epsilon), "axes": call.axes(layer.axis)}
    return [Part("LayerNormalization", attributes, _parameters(_affine(layer)), True)]


def _rms_normalization(call: Call) -> list[Part]:
    layer = call.operation
    attributes: dict[str, Attribute] = {"epsilon": float(layer.epsilon), "axes": call.axes(layer.axis)}
    return [Part("RMSNormalization", attributes, _parameters({"scale": layer.scale}), True)]


def _group_normalization(call: Call) -> list[Part]:
    layer = call.operation
    axis = call.axis(layer.axis)
    if axis not in (1, call.rank - 1):
        raise ValueError("along another axis than the channels'")
    attributes = {"epsilon": float(layer.epsilon), "groups": int(layer.groups)}
    return [Part("GroupNormalization", attributes, _parameters(_affine(layer)), axis == call.rank - 1)]


def _unit_normalization(call: Call) -> list[Part]:
    return [Part("LpNormalization", {"p": 2, "axes": call.axes(call.operation.axis), "epsilon": 1e-12})]


def _identity(call: Call) -> list[Part]:
    del call
    return [Part("Identity")]


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
    **dict.fromkeys(_NOTHING, _identity),
}
