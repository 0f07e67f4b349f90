"""Build a network by a factory, give it weights (random ones that keep the variance of activations), save it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.formats.models.factories import call_factory
from conrepair.formats.models.model import Factory, Model
from conrepair.ground.data.pictures.resample import resize_bilinear
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import ModelLoadError
from conrepair.ground.runtime.files.whole import sha256_of

_WEIGHTS = ("state_dict", "model_state_dict", "model")
_PARALLEL = "module."  # what DataParallel puts before each name


class CheckpointError(ValueError):
    """A checkpoint that doesn't say which network it's about."""


def weights_in(checkpoint: Any) -> Any:
    """The weights of a checkpoint: what training scripts keep under "state_dict", without DataParallel's prefix.

    Args:
        checkpoint: What a file holds; weights alone are returned as they are.
    """
    for key in _WEIGHTS:
        if isinstance(checkpoint, Mapping) and isinstance(checkpoint.get(key), Mapping):
            checkpoint = checkpoint[key]
    if isinstance(checkpoint, Mapping) and checkpoint and all(str(key).startswith(_PARALLEL) for key in checkpoint):
        return {str(key).removeprefix(_PARALLEL): value for key, value in checkpoint.items()}
    return checkpoint


def network_in(checkpoint: Any) -> Any:
    """The network of a trusted checkpoint, with the weights that lie beside it; None where there's none.

    Args:
        checkpoint: What a file holds.

    Raises:
        CheckpointError: if there are several, or the weights are another's.
    """
    import torch

    if isinstance(checkpoint, torch.nn.Module):
        return checkpoint
    items = checkpoint.items() if isinstance(checkpoint, Mapping) else ()
    networks = {str(key): value for key, value in items if isinstance(value, torch.nn.Module)}
    if len(networks) > 1:
        raise CheckpointError(
            f"it holds several networks ({', '.join(networks)}): save the one that's meant by itself"
        )
    for key, network in networks.items():
        beside = weights_in(checkpoint)
        if beside is not checkpoint:  # the network is there for its form, maybe as it was before training
            try:
                network.load_state_dict(beside)
            except RuntimeError as error:
                raise CheckpointError(
                    f"the weights in it aren't those of its network '{key}': save that with its weights by itself"
                ) from error
        return network
    return None


_BIAS = 1.0  # of BatchNorm
_GAIN = 2.0  # of rectifiers: they halve the variance


def _preserve_torch_variance(network: Any) -> None:
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


def _preserve_keras_variance(network: Any) -> None:
    """Change the fresh weights of a keras.Model in place."""
    import keras
    import numpy as np

    from conrepair.formats.keras.load.framework import flat_layers

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


def _takes_pixels(network: Any) -> bool:
    """Whether a keras.Model scales pixels 0..255 itself, before anything else."""
    from conrepair.formats.keras.load.framework import flat_layers

    names = [type(layer).__name__ for layer in flat_layers(network)]
    beginning = [name for name in names if name not in {"InputLayer", "Functional", "Sequential"}][:1]
    return beginning in (["Rescaling"], ["Normalization"])


_CALIBRATION_SAMPLES = 8
_PIXEL_MIDDLE, _PIXEL_SPREAD = 127.5, 60.0


def build_from_factory(
    *,
    target: str,
    code: str = "",
    kwargs: Mapping[str, Any],
    weights: str | None,
    inputs: Sequence[TensorSpec],
    initialize: str,
    seed: int,
    folder: Path,
) -> Model:
    """Build a network and save it as what its framework loads.

    Args:
        target: "package.module:function".
        code: Hash of the factory's code, from `factory_code`.
        kwargs: Its keyword arguments.
        weights: Path of a weights file, or None for what the factory gives.
        inputs: Declared inputs; PyTorch networks need them.
        initialize: "as-built", or "variance-preserving".
        seed: For random weights.
        folder: Receives the file.

    Returns:
        The model; a PyTorch one is its state dict and the factory.

    Raises:
        ModelLoadError: if the factory fails, gives something else than a network, or the weights don't fit.
    """
    factory = Factory(target, dict(kwargs), code)
    if target.split(".")[0] in {"keras", "tensorflow"}:
        return _build_keras(factory, weights, initialize, seed, folder)
    _seed_torch(seed)
    network = call_factory(factory)
    kinds = {kind.__module__.split(".")[0] for kind in type(network).__mro__}
    if "torch" in kinds:
        return _save_torch(network, factory, weights, tuple(inputs), initialize, seed, folder)
    if "keras" in kinds:
        return _build_keras(factory, weights, initialize, seed, folder)
    raise ModelLoadError(
        f"factory {target} returned {type(network).__name__}; a torch.nn.Module or a Keras model is needed."
    )


def _seed_torch(seed: int) -> None:
    import torch

    torch.manual_seed(seed)


def _save_torch(
    network: Any,
    factory: Factory,
    weights: str | None,
    specs: tuple[TensorSpec, ...],
    initialize: str,
    seed: int,
    folder: Path,
) -> Model:
    import torch

    if weights is not None:
        try:
            network.load_state_dict(weights_in(torch.load(weights, map_location="cpu", weights_only=True)))
        except Exception as error:
            raise _weights_error(weights, factory, error) from error
    elif initialize == "variance-preserving":
        _preserve_torch_variance(network)
    if initialize == "variance-preserving":
        norms = [m for m in network.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
        momenta = [norm.momentum for norm in norms]
        for norm in norms:
            norm.momentum = 1.0  # running statistics become those of the batch
        network.train()
        try:
            with torch.no_grad():
                network(*(torch.from_numpy(calibration_inputs(spec, seed)) for spec in specs))
        # The network's own code runs here, which may raise anything.
        except Exception as error:
            listing = "; ".join(map(str, specs)) or "none"
            raise ModelLoadError(
                f"the network of {factory.target} doesn't run on the declared inputs ({listing}): "
                f"{type(error).__name__}: {error}"
            ) from error
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
    path = folder / "weights.pt"
    torch.save(network.eval().state_dict(), path)
    return Model("torch", str(path), sha256_of(path), factory, specs)


def _build_keras(factory: Factory, weights: str | None, initialize: str, seed: int, folder: Path) -> Model:
    import keras

    keras.utils.clear_session()  # or names would be numbered on from what this worker built before
    keras.utils.set_random_seed(seed)
    network = call_factory(factory)
    if not isinstance(network, keras.Model):
        raise ModelLoadError(f"factory {factory.target} returned {type(network).__name__}, no Keras model.")
    if weights is not None:
        try:
            network.load_weights(weights)
        except Exception as error:
            raise _weights_error(weights, factory, error) from error
    elif initialize == "variance-preserving":
        _preserve_keras_variance(network)
    if initialize == "variance-preserving":
        _set_keras_statistics(network, seed)
    path = folder / "model.keras"
    network.save(path)
    return Model("keras", str(path), sha256_of(path))


def _set_keras_statistics(network: Any, seed: int) -> None:
    import keras

    from conrepair.formats.keras.load.framework import flat_layers, spec_of

    norms = [layer for layer in flat_layers(network) if isinstance(layer, keras.layers.BatchNormalization)]
    momenta = [layer.momentum for layer in norms]
    for layer in norms:
        layer.momentum = 0.0  # moving statistics become those of the batch
    arrays = [calibration_inputs(spec_of(tensor), seed) for tensor in network.inputs]
    if _takes_pixels(network):
        arrays = [np.clip(_PIXEL_MIDDLE + _PIXEL_SPREAD * array, 0, 255) for array in arrays]
    network(arrays[0] if len(arrays) == 1 else arrays, training=True)
    for layer, momentum in zip(norms, momenta, strict=True):
        layer.momentum = momentum


def calibration_inputs(spec: TensorSpec, seed: int) -> npt.NDArray[Any]:
    """Seeded inputs; images vary slowly over the picture, as photos do, plus a little noise."""
    generator = np.random.default_rng(seed)
    shape = [size if isinstance(size, int) else _CALIBRATION_SAMPLES for size in spec.shape]
    if not spec.is_float:
        return generator.integers(0, spec.high or 2, shape).astype(spec.dtype)
    noise = generator.normal(0.0, 0.1, shape)
    if len(shape) != 4:
        return (10 * noise).astype(np.float32)
    channels_first = shape[1] in {1, 3, 4}
    height, width, channels = shape[2:] + shape[1:2] if channels_first else shape[1:]
    coarse = generator.normal(0.0, 1.0, (shape[0], 8, 8, channels)).astype(np.float32)
    smooth = np.stack([resize_bilinear(picture, height, width) for picture in coarse])
    smooth = smooth.transpose(0, 3, 1, 2) if channels_first else smooth
    return (smooth + noise).astype(np.float32)


def _weights_error(weights: str, factory: Factory, error: Exception) -> ModelLoadError:
    reason = str(error).strip().splitlines()
    return ModelLoadError(
        f"the weights {weights} don't fit the network of {factory.target}: {type(error).__name__}: "
        f"{' '.join(reason[:3])[:400]}"
    )
