"""Keras 3 models: .keras and .h5 files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras.src.utils import python_utils

from conrepair.formats.keras.load.legacy import readable_by_keras3, way_from_keras2
from conrepair.formats.models.admission import HOW_TO_TRUST, admitted
from conrepair.formats.models.model import Description, Model
from conrepair.formats.models.runnable import Array, Runnable, load_error
from conrepair.ground.data.tensor_spec import TensorSpec, shape_of
from conrepair.ground.runtime.errors import ModelLoadError
from conrepair.ground.runtime.user_modules import reach_modules
from conrepair.ground.runtime.words import shortened

_HALF = {"float16", "bfloat16"}
_REASON = 240
_NOT_TRUSTED = {
    "`Lambda`": "holds code (a Lambda layer). Replace it by a layer",
    "vocabulary file": "reads a vocabulary from a file outside of it. Save it with the vocabulary as a list",
    "`TFSMLayer`": "loads a SavedModel that lies elsewhere (a TFSMLayer). Give that SavedModel",
    "`torch.nn.Module`": "holds a pickled PyTorch module. Export that module by itself (.pt2)",
}
"""By Keras's words."""


def load_keras(model: Model) -> Any:
    """Load a Keras model without compiling it.

    Raises:
        ModelLoadError: if it can't be read, or asks for what only trusted files may, and isn't.
    """
    if model.trust:
        reach_modules()
        _reach_names()
    try:
        with admitted(model) as place, readable_by_keras3(place) as path:
            network = keras.saving.load_model(path, compile=False, safe_mode=not model.trust)
    except ModelLoadError:
        raise
    except Exception as error:
        if "safe_mode" in str(error) or "unsafe" in str(error).lower():
            raise ModelLoadError(f"{model.path} {_refused(str(error))}. {HOW_TO_TRUST}.") from error
        # Keras quotes the whole configuration before it comes to the reason.
        reason = str(error).rpartition("Exception encountered: ")[2].partition(" Full object config")[0]
        words = [shortened(" ".join(reason.split()).rstrip("."), _REASON), way_from_keras2(Path(model.path))]
        raise load_error(model, "a Keras model", ValueError(". ".join(filter(None, words)))) from error
    if not isinstance(network, keras.Model) or not network.built or not getattr(network, "inputs", None):
        raise ModelLoadError(f"{model.path} is not a built Keras model with defined inputs.")
    return network


def _reach_names() -> None:
    """Let functions in Lambda layers find what Keras's own modules called so, as Keras 2's did."""
    import tensorflow as tf

    for name, module in (("tf", tf), ("np", np)):
        vars(python_utils).setdefault(name, module)


def _refused(error: str) -> str:
    """What Keras doesn't load of a file that isn't trusted, and what to do about it."""
    known = next((words for mark, words in _NOT_TRUSTED.items() if mark in error), None)
    return known or f"asks for what is loaded of trusted files alone ({error.partition('. ')[0]}). Leave it out"


def load_flat_keras(model: Model) -> Any:
    """Load a Keras model as a graph of calls with its inputs in a list.

    Converters don't take models of a dict, nor a Sequential that was loaded: it has no `input`.
    """
    network = load_keras(model)
    is_flat = functional_of(network) is network and not isinstance(network.input, Mapping)
    return network if is_flat else keras.Model(network.inputs, network.outputs)


def functional_of(network: Any) -> Any:
    """The graph of calls, which a Sequential model keeps inside."""
    return getattr(network, "_functional", None) or network


class KerasRunnable(Runnable):
    """A Keras model, run by its compiled prediction function."""

    def __init__(self, model: Model, *, double: bool = False) -> None:
        self.network = load_keras(model)
        if double:
            try:
                self.network = computed_in(self.network, "float64")
            # Layers check their arguments with errors of any type.
            except Exception as error:
                reason = str(error).strip()[:400]
                raise ModelLoadError(
                    f"{model.path} can't be rebuilt in float64: {type(error).__name__}: {reason}"
                ) from error
        self.inputs = tuple(map(spec_of, self.network.inputs))
        self.outputs = _unique(
            replace(spec_of(tensor), name=name)
            for name, tensor in zip(_output_names(self.network), self.network.outputs, strict=True)
        )

        self._stateful = [layer for layer in self.network._flatten_layers() if _keeps_state(layer)]
        self.states = tuple(f"{layer.name}/state" for layer in self._stateful)

    def _reset(self) -> None:
        for layer in self._stateful:
            layer.reset_state()

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        arrays = [feeds[spec.name] for spec in self.inputs]
        result = self.network.predict_on_batch(self.packed(arrays))
        leaves = keras.tree.flatten(result)
        return {spec.name: np.asarray(leaf) for spec, leaf in zip(self.outputs, leaves, strict=True)}

    def packed(self, values: list[Any]) -> Any:
        """Arrays or tensors in the structure that the model takes: a tensor, a list or a dict."""
        structure = getattr(self.network, "_inputs_struct", None)
        if structure is None:
            return values[0] if len(values) == 1 else values
        return keras.tree.pack_sequence_as(structure, values)


class KerasFramework:
    """See `conrepair.formats.models.formats.Format`."""

    def describe(self, model: Model) -> Description:
        """Operators are layer classes, those of nested models included."""
        runnable = KerasRunnable(model)
        network = runnable.network
        weights: Counter[str] = Counter()
        for variable in network.weights:
            weights[str(keras.backend.standardize_dtype(variable.dtype))] += int(np.prod(variable.shape))
        sizes = _table_sizes(network, {id(tensor): tensor.name for tensor in network.inputs})
        return Description(
            format="Keras",
            inputs=tuple(replace(spec, high=sizes.get(spec.name)) for spec in runnable.inputs),
            outputs=runnable.outputs,
            operators=dict(sorted(Counter(type(layer).__name__ for layer in flat_layers(network)).items())),
            parameters=int(network.count_params()),
            weights=dict(weights),
            computes=narrower_type(network),
            states=runnable.states,
            producer=f"keras {keras.__version__} on {keras.backend.backend()}",
        )

    def load(self, model: Model, *, second_opinion: bool = False) -> Runnable:
        """The model; the second opinion is rebuilt in float64."""
        return KerasRunnable(model, double=second_opinion)


def flat_layers(network: Any) -> Iterator[Any]:
    """The layers, those of nested models and functions of keras.ops included."""
    for layer in getattr(network, "operations", network.layers):
        if isinstance(layer, keras.Model):
            yield from flat_layers(layer)
        else:
            yield layer


def _keeps_state(layer: Any) -> bool:
    """Whether a layer goes on from what the last batch left."""
    return isinstance(layer, keras.layers.RNN) and bool(layer.stateful)


def narrower_type(network: Any) -> str:
    """The type that most weights are cast to before they're used; "" where they're used as they are."""
    sizes: Counter[str] = Counter()
    for layer in flat_layers(network):
        own = getattr(layer, "variable_dtype", "")
        computes = getattr(layer, "compute_dtype", own)
        sizes[computes if computes != own else ""] += sum(
            int(np.prod(item.shape)) for item in getattr(layer, "weights", ())
        )
    most = sizes.most_common(1)[0][0] if sizes else ""
    return most if most in _HALF else ""


def _table_sizes(network: Any, names: Mapping[int, str]) -> dict[str, int]:
    """The smallest table that an Embedding layer looks each input up in.

    Args:
        network: The model, or a nested one.
        names: Of the inputs, by the id of the network's own tensor.
    """
    sizes: dict[str, int] = {}
    for layer in network.layers:
        for node in layer._inbound_nodes:
            fed = [names.get(id(tensor), "") for tensor in node.input_tensors]
            found = {}
            if isinstance(layer, keras.Model):
                inner = {id(tensor): name for tensor, name in zip(layer.inputs, fed, strict=True) if name}
                found = _table_sizes(layer, inner)
            elif isinstance(layer, keras.layers.Embedding) and fed[0]:
                found = {fed[0]: int(layer.input_dim)}
            for name, size in found.items():
                sizes[name] = min(size, sizes.get(name, size))
    return sizes


def computed_in(network: Any, dtype: str) -> Any:
    """The same model with its weights, inputs and arithmetic in another type.

    Args:
        network: As it was loaded.
        dtype: "float64" or "float32".
    """
    typed = _rebuilt(network, {}, dtype)
    typed.set_weights(network.get_weights())
    return typed


def _rebuilt(network: Any, made: dict[int, Any], dtype: str) -> Any:
    """The model with new weights, in one type throughout: nested models would cast what they are given.

    Args:
        network: The model, or a nested one.
        made: Layers that have been rebuilt, by the id of the old one: nested models may share them.
        dtype: Of real numbers.
    """

    def rebuild(layer: Any) -> Any:
        if id(layer) not in made:
            made[id(layer)] = new(layer)
        return made[id(layer)]

    def new(layer: Any) -> Any:
        if isinstance(layer, keras.Model) and getattr(layer, "inputs", None):
            return _rebuilt(layer, made, dtype)
        config = layer.get_config()
        if isinstance(layer, keras.Layer):
            config = _typed(config, dtype) | {"dtype": dtype}
        return type(layer).from_config(config)

    def retype(tensor: Any) -> Any:
        own = dtype if spec_of(tensor).is_float else tensor.dtype
        return keras.Input(batch_shape=tensor.shape, dtype=own, name=tensor.name)

    inputs = keras.tree.map_structure(retype, functional_of(network).input)
    return keras.models.clone_model(network, inputs, clone_function=rebuild)


def _typed(config: Any, dtype: str) -> Any:
    """A layer's configuration with the layers in it in another type (those of wrappers, of activations)."""
    if isinstance(config, list):
        return [_typed(item, dtype) for item in config]
    if not isinstance(config, dict):
        return config
    return {
        key: dtype if key == "dtype" and _is_float(value) else _typed(value, dtype) for key, value in config.items()
    }


def _is_float(dtype: Any) -> bool:
    """Whether a configuration's "dtype" (a name, or a policy's configuration) computes with real numbers."""
    name = dtype["config"].get("name") if isinstance(dtype, dict) and "config" in dtype else dtype
    return isinstance(name, str) and "float" in name


def spec_of(tensor: Any) -> TensorSpec:
    """The spec of a symbolic Keras tensor."""
    return TensorSpec(tensor.name, shape_of(tensor.shape), str(keras.backend.standardize_dtype(tensor.dtype)))


def _output_names(network: Any) -> list[str]:
    """By layer; the name of a tensor is another each time the model is loaded."""
    names = getattr(network, "output_names", None)
    return list(names) if names else [network.layers[-1].name]


def _unique(specs: Iterator[TensorSpec]) -> tuple[TensorSpec, ...]:
    """Number the names of outputs that come from one layer."""
    seen: Counter[str] = Counter()
    result = []
    for spec in specs:
        seen[spec.name] += 1
        suffix = f"_{seen[spec.name]}" if seen[spec.name] > 1 else ""
        result.append(replace(spec, name=spec.name + suffix))
    return tuple(result)


FRAMEWORK = KerasFramework()
