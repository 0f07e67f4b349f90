"""Faults that Keras puts in: layers' weights, and the configuration that a network is built from anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.injecting.fault import Means, OwnFault
from benchmarks.common.injecting.numbers import BIASES, WEIGHTS
from benchmarks.faults.hyperparameters.epsilon_of_another_library import other_epsilon
from conrepair.formats.models.model import Model
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.runtime.files.whole import sha256_of

__all__ = ["BY_KERAS"]

_WEIGHTED = ("Conv1D", "Conv2D", "Dense", "DepthwiseConv2D")
_OTHERS = {
    "Elu": "Selu",
    "LeakyRelu": "Relu",
    "HardSilu": "Silu",
    "Sigmoid": "HardSigmoid",
    "HardSigmoid": "Sigmoid",
    "Softplus": "Relu",
}
_BOUNDS = {"Relu": "Relu6", "Relu6": "Relu"}
_PAIRS = {"Add": "Subtract", "Multiply": "Add", "Subtract": "Add", "Maximum": "Minimum", "Mean": "Max"}
_NUMBERS = {"alpha": "Elu", "negative_slope": "LeakyRelu", "epsilon": "LayerNormalization"}


class _Opened:
    """A network's configuration and weights.

    Attributes:
        network: As it was read.
        config: Of which the changed one is built.
        weights: By layer.
    """

    def __init__(self, model: Model) -> None:
        import keras

        self.network = keras.saving.load_model(model.path, compile=False)
        self.config = self.network.get_config()
        self.weights = {layer.name: layer.get_weights() for layer in self.network.layers}

    def entries(self, *sorts: str) -> list[dict[str, Any]]:
        return [item for item in self.config["layers"] if item["class_name"] in sorts]

    def entry(self, name: str) -> dict[str, Any]:
        return next(item for item in self.config["layers"] if _name(item) == name)


def _name(entry: Mapping[str, Any]) -> str:
    return str(entry["config"].get("name") or entry.get("name"))


def _write(opened: _Opened, folder: Path) -> Model:
    network = type(opened.network).from_config(opened.config)
    for layer in network.layers:
        layer.set_weights(opened.weights[layer.name])
    path = folder / "model.keras"
    network.save(path)
    return Model("keras", str(path), sha256_of(path))


def _numbers(role: int, compute: Callable[..., Any], words: str, *more: Any) -> OwnFault:
    def places(opened: _Opened) -> list[str]:
        found = [_name(item) for item in opened.entries(*_WEIGHTED)]
        return [name for name in found if len(opened.weights[name]) > role and opened.weights[name][role].size > 1]

    def change(opened: _Opened, name: str, generator: np.random.Generator) -> str:
        arrays = opened.weights[name]
        arrays[role] = np.ascontiguousarray(compute(arrays[role], generator, *more))
        return words.format(name=name)

    return OwnFault(Kind.PRECISION if "bits" in words or "float16" in words else Kind.PARAMETERS, places, change)


def _configured(
    kind: Kind,
    sorts: Sequence[str],
    compute: Callable[[dict[str, Any], np.random.Generator], str],
    condition: Callable[[dict[str, Any]], bool] = lambda _: True,
) -> OwnFault:
    """A change of a layer's configuration."""

    def places(opened: _Opened) -> list[str]:
        return [_name(item) for item in opened.entries(*sorts) if condition(item["config"])]

    def change(opened: _Opened, name: str, generator: np.random.Generator) -> str:
        return f"{name}: {compute(opened.entry(name), generator)}"

    return OwnFault(kind, places, change)


def _another(others: Mapping[str, str]) -> Callable[[dict[str, Any], np.random.Generator], str]:
    def change(entry: dict[str, Any], _: np.random.Generator) -> str:
        before, entry["class_name"] = entry["class_name"], others[entry["class_name"]]
        keep = ("name", "axis", "keepdims") if before == "Mean" else ("name",)
        entry["config"] = {key: value for key, value in entry["config"].items() if key in keep}
        if entry.get("registered_name"):
            entry["registered_name"] = None
        return f"{entry['class_name']} instead of {before}"

    return change


def _number(key: str) -> Callable[[dict[str, Any], np.random.Generator], str]:
    def change(entry: dict[str, Any], generator: np.random.Generator) -> str:
        before = entry["config"].get(key, 1.0)
        after = other_epsilon(before, generator) if key == "epsilon" else 0.3 * before
        entry["config"][key] = after
        return f"{key} is {after:g} instead of {before:g}"

    return change


def _activated(entry: dict[str, Any], _: np.random.Generator) -> str:
    entry["config"]["activation"] = "relu"
    return "has a relu"


def _exact(entry: dict[str, Any], _: np.random.Generator) -> str:
    entry["config"]["approximate"] = not entry["config"].get("approximate", True)
    return f"approximate is {entry['config']['approximate']}"


def _dilated(entry: dict[str, Any], _: np.random.Generator) -> str:
    before = entry["config"]["dilation_rate"]
    entry["config"]["dilation_rate"] = [1, 1] if before[0] > 1 else [2, 2]
    return f"dilation_rate is {entry['config']['dilation_rate']} instead of {before}"


def _transposed(entry: dict[str, Any], _: np.random.Generator) -> str:
    axes = list(entry["config"]["axes"])
    places = [axes.index(axis) for axis in (2, 3)]
    axes[places[0]], axes[places[1]] = 3, 2
    before, entry["config"]["axes"] = entry["config"]["axes"], axes
    return f"axes are {axes} instead of {before}"


def _keeps_size(config: dict[str, Any]) -> bool:
    return bool(config["padding"] == "same" and max(config["strides"]) == 1 and max(config["kernel_size"]) > 1)


BY_KERAS = Means(
    "by-keras",
    _Opened,
    _write,
    {
        **{name: _numbers(0, compute, words, -1) for name, (compute, words) in WEIGHTS.items()},
        **{name: _numbers(1, compute, words) for name, (compute, words) in BIASES.items()},
        "activation-replaced": _configured(Kind.GRAPH, tuple(_OTHERS), _another(_OTHERS)),
        "bound": _configured(Kind.HYPERPARAMETERS, tuple(_BOUNDS), _another(_BOUNDS)),
        "operator-replaced": _configured(Kind.GRAPH, tuple(_PAIRS), _another(_PAIRS)),
        "activation-extra": _configured(
            Kind.GRAPH, _WEIGHTED, _activated, lambda config: config["activation"] == "linear"
        ),
        "gelu-approximated": _configured(Kind.GRAPH, ("Gelu",), _exact),
        "axes-exchanged": _configured(
            Kind.STRUCTURE, ("Transpose",), _transposed, lambda config: len(config.get("axes") or ()) == 4
        ),
        "dilation": _configured(Kind.HYPERPARAMETERS, ("Conv2D",), _dilated, _keeps_size),
        **{key: _configured(Kind.HYPERPARAMETERS, (sort,), _number(key)) for key, sort in _NUMBERS.items()},
    },
)
