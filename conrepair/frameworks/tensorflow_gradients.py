"""Vector-Jacobian products by TensorFlow's tape."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

__all__ = ["products"]


def products(
    call: Callable[..., Mapping[str, Any]], arguments: Mapping[str, Any], cotangents: Mapping[str, Any]
) -> dict[str, Any]:
    """Differentiate.

    Args:
        call: Takes inputs by name, and gives outputs by name.
        arguments: What it's called with.
        cotangents: Of the real outputs.

    Returns:
        By real argument, zeros where nothing depends on it.
    """
    real = {name: tensor for name, tensor in arguments.items() if tensor.dtype.is_floating}
    with tf.GradientTape() as tape:
        tape.watch(real)
        outputs = call(**arguments)
        asked = {name: outputs[name] for name in cotangents}
    found = tape.gradient(asked, real, dict(cotangents), unconnected_gradients=tf.UnconnectedGradients.ZERO)
    return {name: tf.convert_to_tensor(tensor) for name, tensor in found.items()}
