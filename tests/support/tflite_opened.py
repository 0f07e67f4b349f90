"""TFLite models with their networks and one batch, for tests that look into them."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import node_functions
import numpy as np
import tflite_networks as networks
from made_once import made_once

from conrepair.formats.models.model import Model
from conrepair.formats.tflite.read.network import TfliteNetwork, open_network
from conrepair.ground.graph.operators import OPERATORS

BATCH = 3
_EVERY = ("float", "float16", "dynamic-range", "full-int8")
# TensorFlow's converter itself ends the process when it quantizes a loop.
_KINDS = {
    "convnet": _EVERY, "residual": (*_EVERY, "int16"), "attention": _EVERY, "perceptron": _EVERY, "lstm": ("float",),
    "gru": ("float",), "pair": ("float", "full-int8"), "twins": ("float",), "text": ("float", "full-int8"),
}  # fmt: skip
FILES = [f"{name}-{kind}" for name, kinds in _KINDS.items() for kind in kinds]
"""Networks with a fixed batch."""

SYMBOLIC = [f"{name}-symbolic" for name in ("convnet", "residual", "attention", "pair", "text")]
"""Networks with an open batch; TensorFlow converts no loops so."""


@dataclass(frozen=True)
class Opened:
    """A model with its network and one batch."""

    model: Model

    @cached_property
    def inputs(self) -> list[Any]:
        return networks.concrete(self.model, BATCH)

    @cached_property
    def network(self) -> TfliteNetwork:
        return open_network(self.model, self.inputs)

    @cached_property
    def feeds(self) -> dict[str, Any]:
        return networks.feeds(self.inputs)

    @cached_property
    def given(self) -> dict[str, Any]:
        """The feeds by the names of tensors."""
        return {self.network.input_names[name]: array for name, array in self.feeds.items()}

    @property
    def observable(self) -> list[str]:
        graph = self.network.graph
        return [name for name in graph.order if graph.tensors[name].observable and name not in graph.inputs]

    @property
    def cuts(self) -> list[str]:
        return [name for name in self.observable if self.network.graph.tensors[name].is_real]

    @cached_property
    def captured(self) -> dict[str, Any]:
        """Every observable tensor, inputs included."""
        return {**self.given, **self.network.segment(self.network.graph.inputs, self.observable).run(self.given)}

    def near(self, name: str) -> dict[str, float]:
        """Differences that the same kernels may show: none but for a quantized tensor's step."""
        quantization = self.network.graph.tensors[name].quantization
        step = quantization.scale if quantization else 0.0
        return {"rtol": 1e-5, "atol": max(step * 1.001, 1e-6 * float(np.abs(self.captured[name]).max(initial=0)))}


_KEPT = tempfile.TemporaryDirectory(prefix="conrepair-tflite-")


def opened(name: str) -> Opened:
    """One of `FILES` or `SYMBOLIC`, by its name."""
    return Opened(_converted(Path(_KEPT.name), name))


@made_once
def _converted(folder: Path, name: str) -> Model:
    what, kind = name.split("-", 1)
    network = networks.NETWORKS[what]()
    if kind != "symbolic":
        network = networks.fixed(network, BATCH)
    return networks.written(network, folder / f"{name}.tflite", "float" if kind == "symbolic" else kind)


def computed_nodes(one: Opened, near: float) -> int:
    """Compare each vocabulary node's function with what was captured; the number of tensors compared."""
    values, count = dict(one.captured), 0
    for node in one.network.graph.nodes:
        results = node_functions.compute(node, [values[name] for name in node.inputs if name])
        assert (results is None) == (node.op not in OPERATORS), node.op
        for tensor, array in zip(node.outputs, results or (), strict=results is not None):
            if tensor in one.captured:
                expected = one.captured[tensor]
                quantization = one.network.graph.tensors[tensor].quantization
                size = float(np.abs(expected.astype(np.float64)).max(initial=0))
                coarse = near * max(size, 1e-3)
                if quantization is not None:
                    # A quantized result is rounded, and ends where its type does.
                    coarse = max(coarse, 1.001 * quantization.scale)
                    limits = np.iinfo(one.network.graph.tensors[tensor].dtype)
                    ends = (np.array([limits.min, limits.max]) - quantization.zero_point) * quantization.scale
                    array = np.clip(array, *ends)
                np.testing.assert_allclose(array, expected, rtol=near, atol=coarse, err_msg=str(node))
                count += 1
            else:
                values[tensor] = np.asarray(array)
            assert one.network.graph.tensors[tensor].shape == np.shape(array), node
    return count
