"""Norms, activations and massive activations of networks of attention."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.attention.spec import Spec
from benchmarks.common.plain_graph import Array

if TYPE_CHECKING:
    from benchmarks.attention.networks import Builder

__all__ = ["gelu", "gelu_tanh", "layer_norm", "massive_channel", "massive_token", "mlp", "rms_norm"]

_LAYER_NORM, _GELU = 17, 20  # first opsets with these operators


def rms_norm(builder: Builder, name: str, value: str, scale: Array) -> str:
    """Over the root of the mean square, as PyTorch exports it."""
    graph = builder.graph
    squares = graph.add(f"{name}/pow", "Pow", value, graph.constant(f"{name}/two", 2.0))
    mean = graph.add(f"{name}/mean", "ReduceMean", squares, axes=[-1], keepdims=1)
    shifted = graph.add(f"{name}/add", "Add", mean, graph.constant(f"{name}/epsilon", builder.spec.epsilon))
    root = graph.add(f"{name}/sqrt", "Sqrt", shifted)
    if builder.writing.operators:
        normed = graph.add(f"{name}/div", "Div", value, root)
    else:
        normed = graph.add(f"{name}/mul", "Mul", value, graph.add(f"{name}/reciprocal", "Reciprocal", root))
    return graph.add(f"{name}/scaled", "Mul", graph.constant(f"{name}/weight", scale), normed)


def layer_norm(builder: Builder, name: str, value: str, scale: Array, shift: Array) -> str:
    """As an operator, or in pieces as PyTorch exports it for older opsets."""
    graph, epsilon = builder.graph, builder.spec.epsilon
    weight, bias = graph.constant(f"{name}/weight", scale), graph.constant(f"{name}/bias", shift)
    if builder.writing.operators and graph.opset >= _LAYER_NORM:
        return graph.add(f"{name}/norm", "LayerNormalization", value, weight, bias, axis=-1, epsilon=epsilon)
    middle = graph.add(f"{name}/middle", "ReduceMean", value, axes=[-1], keepdims=1)
    centred = graph.add(f"{name}/sub", "Sub", value, middle)
    squares = graph.add(f"{name}/pow", "Pow", centred, graph.constant(f"{name}/two", 2.0))
    mean = graph.add(f"{name}/mean", "ReduceMean", squares, axes=[-1], keepdims=1)
    shifted = graph.add(f"{name}/add", "Add", mean, graph.constant(f"{name}/epsilon", epsilon))
    normed = graph.add(f"{name}/div", "Div", centred, graph.add(f"{name}/sqrt", "Sqrt", shifted))
    return graph.add(f"{name}/shifted", "Add", graph.add(f"{name}/scaled", "Mul", normed, weight), bias)


def mlp(builder: Builder, name: str, value: str) -> str:
    """Two products with an activation between, or three with a gate."""
    spec, graph = builder.spec, builder.graph
    inner = builder.dense(f"{name}/up_proj", value, spec.hidden, spec.inner)
    if spec.gated:
        gate = builder.dense(f"{name}/gate_proj", value, spec.hidden, spec.inner)
        inner = graph.add(f"{name}/gated", "Mul", _activation(builder, f"{name}/act", gate), inner)
    else:
        inner = _activation(builder, f"{name}/act", inner)
    return builder.dense(f"{name}/down_proj", inner, spec.inner, spec.hidden)


def _activation(builder: Builder, name: str, value: str) -> str:
    sort = builder.spec.mlp.removesuffix("-glu")
    if sort == "relu":
        return builder.graph.add(f"{name}/relu", "Relu", value)
    if sort == "silu":
        return builder.graph.add(f"{name}/mul", "Mul", value, builder.graph.add(f"{name}/sigmoid", "Sigmoid", value))
    if builder.writing.operators and builder.graph.opset >= _GELU:
        return builder.graph.add(f"{name}/gelu", "Gelu", value, approximate="tanh" if sort == "gelu-tanh" else None)
    return gelu_tanh(builder, name, value) if sort == "gelu-tanh" else gelu(builder, name, value)


def gelu(builder: Builder, name: str, value: str) -> str:
    """By the error function, in pieces."""
    graph = builder.graph
    root = graph.add(f"{name}/div", "Div", value, graph.constant(f"{name}/root", float(np.sqrt(2))))
    more = graph.add(f"{name}/add", "Add", graph.add(f"{name}/erf", "Erf", root), graph.constant(f"{name}/one", 1.0))
    product = graph.add(f"{name}/mul", "Mul", value, more)
    return graph.add(f"{name}/half", "Mul", product, graph.constant(f"{name}/0.5", 0.5))


def gelu_tanh(builder: Builder, name: str, value: str) -> str:
    """By the hyperbolic tangent, in pieces."""
    graph = builder.graph
    cube = graph.add(f"{name}/pow", "Pow", value, graph.constant(f"{name}/three", 3.0))
    cube = graph.add(f"{name}/cubic", "Mul", cube, graph.constant(f"{name}/0.044715", 0.044715))
    inner = graph.add(f"{name}/sum", "Add", value, cube)
    inner = graph.add(f"{name}/root", "Mul", inner, graph.constant(f"{name}/2/pi", float(np.sqrt(2 / np.pi))))
    more = graph.add(
        f"{name}/add", "Add", graph.add(f"{name}/tanh", "Tanh", inner), graph.constant(f"{name}/one", 1.0)
    )
    half = graph.add(f"{name}/half", "Mul", value, graph.constant(f"{name}/0.5", 0.5))
    return graph.add(f"{name}/mul", "Mul", half, more)


def massive_channel(spec: Spec) -> Array:
    """One channel of all tokens."""
    added = np.zeros(spec.hidden, np.float32)
    added[spec.hidden // 3] = spec.magnitude
    return added


def massive_token(spec: Spec) -> Array:
    """Some channels of the first token."""
    added = np.zeros((1, spec.tokens, spec.hidden), np.float32)
    added[0, 0, :: max(spec.hidden // 3, 1)] = spec.magnitude
    return added
