"""Find a framework's networks by its name; import it only then."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from conrepair.data.tensor_spec import TensorSpec
from conrepair.frameworks.model import Model
from conrepair.frameworks.registry import FRAMEWORKS, channels_of
from conrepair.graph.sizes import without_sizes
from conrepair.networks.network import Network
from conrepair.runtime.recent import Recent

_RECENT: Recent[Network] = Recent(256 << 20)


def open_network(model: Model, inputs: Sequence[TensorSpec]) -> Network:
    """Open a model as a network, whose graph leaves out what only computes sizes; small ones are held for the next.

    Args:
        model: What to open.
        inputs: The model's, all sizes numbers.

    Raises:
        ModelLoadError: if it can't be read or has no graph that can be cut.
    """
    if model.framework not in FRAMEWORKS:
        raise ValueError(f"unknown framework {model.framework!r}; known: {', '.join(FRAMEWORKS)}")
    # Which axis counts the samples says nothing to who opens it.
    sizes = [dataclasses.replace(spec, sample_axis=None) for spec in inputs]
    how = repr((model.bare, sizes))
    return _RECENT.of(Path(model.path), how, lambda: _opened(model, inputs))


def _opened(model: Model, inputs: Sequence[TensorSpec]) -> Network:
    module = importlib.import_module(f"conrepair.networks.{model.framework}")
    network = cast(Network, module.open_network(model, inputs))
    network.graph, network.channels = without_sizes(network.graph), channels_of(model.framework, network.producer)
    return network
