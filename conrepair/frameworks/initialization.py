"""Random weights that keep the variance of activations, where a library's own don't.

As built, Vision Transformers answer zero to everything, ConvNeXt's branches are multiplied by 1e-6, and in networks
without normalization activations fade from layer to layer: a fault in the middle of any of them could not be seen.

In deep networks with BatchNorm the opposite happens: a rectifier behind it cuts off half of the values, whose
variance the next one restores, so that each pair amplifies small differences by about 1.2 (Yang et al., A Mean Field
Theory of Batch Normalization, 2019). An EfficientNet differs from itself in float64 by a tenth of its answers. With a
bias of one standard deviation most values pass the rectifier, and it differs by 1e-6.
"""

from __future__ import annotations

import math
from typing import Any

__all__ = ["preserve_keras_variance", "preserve_torch_variance", "takes_pixels"]

_BIAS = 1.0  # of BatchNorm
_GAIN = 2.0  # of rectifiers: they halve the variance


def preserve_torch_variance(network: Any) -> None:
    """Change the fresh weights of a torch.nn.Module in place."""
    import torch
    from torch import nn

    layers = [
        layer for layer in network.modules() if isinstance(layer, nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d)
    ]
    norms = nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm
    normalized = any(isinstance(layer, norms) for layer in network.modules())
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if name.rpartition(".")[2] == "layer_scale":
                parameter.fill_(1.0)
        for layer in network.modules():
            if isinstance(layer, nn.modules.batchnorm._BatchNorm) and layer.affine:
                nn.init.constant_(layer.bias, _BIAS)
        for layer in layers:
            fan_in = layer.weight[0].numel()
            if not layer.weight.any():
                nn.init.normal_(layer.weight, std=fan_in**-0.5)
            elif not normalized:
                layer.weight.mul_(math.sqrt(_GAIN / fan_in) / layer.weight.square().mean().sqrt())


def preserve_keras_variance(network: Any) -> None:
    """Change the fresh weights of a keras.Model in place."""
    import keras
    import numpy as np

    from conrepair.frameworks.keras import flat_layers

    layers = list(flat_layers(network))
    normalized = any("Normalization" in type(layer).__name__ for layer in layers)
    for layer in layers:
        if type(layer).__name__ == "LayerScale":
            layer.set_weights([np.ones_like(weight) for weight in layer.get_weights()])
        elif isinstance(layer, keras.layers.BatchNormalization) and layer.center:
            layer.beta.assign(np.full(layer.beta.shape, _BIAS))
        elif isinstance(layer, keras.layers.Dense | keras.layers.Conv2D) and not normalized:
            kernel = np.asarray(layer.kernel)
            fan_in = math.prod(kernel.shape[:-1])
            layer.kernel.assign(kernel * math.sqrt(_GAIN / fan_in) / np.sqrt(np.square(kernel).mean()))


def takes_pixels(network: Any) -> bool:
    """Whether a keras.Model scales pixels 0..255 itself, before anything else."""
    from conrepair.frameworks.keras import flat_layers

    names = [type(layer).__name__ for layer in flat_layers(network)]
    beginning = [name for name in names if name not in {"InputLayer", "Functional", "Sequential"}][:1]
    return beginning in (["Rescaling"], ["Normalization"])
