"""Faults of Keras networks: made anew with other layers, or with other numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.families.architecture import Array, Fault, Writing
from conrepair.ground.graph.kinds import Kind

__all__ = ["calibrated", "configured", "drawn_keras", "input_as", "keras_layers", "layer_as", "numbers", "written"]

Layer = Callable[[Any], Any]


def keras_layers() -> Any:
    """Keras's layers, imported when a network is made: it takes seconds."""
    from keras import layers

    return layers


def configured(kind: Kind, names: tuple[str, ...], **changes: Any) -> Fault:
    """Layers with other arguments.

    Args:
        kind: Of fault.
        names: Of layers, or of their classes.
        changes: Of the configuration; a layer without one of them is left out.
    """

    def change(layer: Any) -> Any:
        if layer.name not in names and type(layer).__name__ not in names:
            return layer
        config = layer.get_config()
        return type(layer).from_config(config | {name: value for name, value in changes.items() if name in config})

    return Fault(kind, lambda network: _made_anew(network, change))


def layer_as(kind: Kind, name: str, make: Layer) -> Fault:
    """Another layer in a layer's place.

    Args:
        kind: Of fault.
        name: Of the layer.
        make: Given the layer, makes the other one; what it's called is its own affair.
    """
    return Fault(
        kind, lambda network: _made_anew(network, lambda layer: make(layer) if layer.name == name else layer)
    )


def numbers(kind: Kind, name: str, role: str, compute: Callable[[Array], Array]) -> Fault:
    """A layer's variable with other numbers.

    Args:
        kind: Of fault.
        name: Of the layer.
        role: The variable's name, as `kernel`.
        compute: The numbers, of the right ones.
    """

    def change(network: Any) -> None:
        found = [item for item in network.get_layer(name).variables if item.name == role]
        found[0].assign(np.ascontiguousarray(compute(np.array(found[0]))))

    return Fault(kind, change)


def input_as(make: Callable[[Any], Any]) -> Fault:
    """The network's input, fed otherwise.

    Args:
        make: Of the symbolic input.
    """

    def change(network: Any) -> Any:
        import keras

        given = keras.Input(network.inputs[0].shape[1:], name=network.inputs[0].name)
        return keras.Model(given, network([make(given)]))

    return Fault(Kind.PREPROCESSING, change)


def calibrated(compute: Callable[[Array], Array]) -> Fault:
    """A quantization by other samples than those that the network is fed."""
    return Fault(Kind.PRECISION, compute, "calibration", ("keras-int8",))


def written(make: Callable[[Any], Any]) -> Writing:
    """The same network, made anew with other layers that compute the same, or None for a layer that stays."""
    return Writing(lambda network: _made_anew(network, lambda layer: make(layer) or layer))


def _made_anew(network: Any, change: Callable[[Any], Any]) -> Any:
    import keras

    made = keras.models.clone_model(network, clone_function=lambda layer: _cloned(change(layer)))
    before = {layer.name: layer for layer in network.layers}
    for layer in made.layers:
        right = before.get(layer.name)
        if right is not None and [item.shape for item in layer.variables] == [item.shape for item in right.variables]:
            layer.set_weights(right.get_weights())
    return made


def _cloned(layer: Any) -> Any:
    return type(layer).from_config(layer.get_config())


def drawn_keras(network: Any, seed: int, samples: Array) -> Any:
    """Draw a Keras network's weights, as `drawn` does those of PyTorch.

    Args:
        network: Of Keras.
        seed: Of the numbers.
        samples: On which means and variances of BatchNormalization are set.
    """
    generator = np.random.default_rng(seed)
    network.name = "network"  # in place of a count of all that were made
    for layer in network.layers:
        norm = "Normalization" in type(layer).__name__
        for item in layer.weights if type(layer).__name__ not in {"Rescaling", "Normalization"} else ():
            item.assign(_numbers(generator, item, norm))
    for layer in network.layers:
        if type(layer).__name__ == "BatchNormalization":
            _settle(network, layer, samples)
    return network


def _numbers(generator: np.random.Generator, item: Any, norm: bool) -> Array:
    shape = tuple(item.shape)
    if item.name in {"moving_mean", "moving_variance"}:
        return np.full(shape, float(item.name == "moving_variance"), np.float32)
    if norm and item.name == "gamma":
        return generator.uniform(0.6, 1.6, shape).astype(np.float32)
    if len(shape) > 1:
        # A depthwise kernel's last axis is the multiplier: what one output adds up is the window.
        fan = np.prod(shape[:2]) if "depthwise" in item.path else np.prod(shape[:-1])
        return (1.2 * generator.standard_normal(shape) / np.sqrt(fan)).astype(np.float32)
    return (0.2 * generator.standard_normal(shape)).astype(np.float32)


def _settle(network: Any, layer: Any, samples: Array) -> None:
    """Let a normalization's statistics be those of what it gets; those in front of it are set already."""
    import keras

    given = np.array(keras.Model(network.inputs, layer.input)([samples]))
    axes = tuple(range(given.ndim - 1))
    layer.moving_mean.assign(given.mean(axes))
    layer.moving_variance.assign(given.var(axes))
