"""Whole networks: valid for ONNX, computed as predicted, finite everywhere, the same for the same seed."""

from __future__ import annotations

from random import Random

import numpy as np
import onnx
import pytest

from conrepair.generate.networks import Wishes, made
from conrepair.generate.onnx_form import model_of
from conrepair.generate.running import accepted, run
from conrepair.generate.support import Probed
from conrepair.generate.values.search import flaw_of

SUPPORT = Probed(20, accepted)


@pytest.mark.parametrize("nodes", [1, 5, 20])
@pytest.mark.parametrize("seed", range(8))
def test_a_network_is_valid_and_finite(nodes: int, seed: int) -> None:
    network = made(Wishes(nodes=nodes), Random(seed), SUPPORT)
    assert network is not None
    assert len(network.draft.nodes) == nodes
    sources = network.values.sources
    weights = {name: sources[name] for name in network.weights}
    model = model_of(network.draft, weights)
    onnx.checker.check_model(model, full_check=True)
    assert {item.name for item in model.graph.input} == sources.keys() - weights.keys()
    assert model.graph.input
    names = network.draft.outputs()
    found = run(model, {name: sources[name] for name in sources.keys() - weights.keys()}, names)
    for name, array in found.items():
        assert network.draft.tensors[name].type.describes(array.dtype.name, array.shape)
        expected = {**sources, **network.values.computed}[name]
        # ONNX Runtime leaves out conversions to 16 bits and back that nobody looks at
        near = 2**-8 if array.dtype.kind == "f" else 0
        assert np.allclose(array, expected, near, near)
    assert not [name for name, array in network.values.computed.items() if flaw_of(array)]


def test_a_seed_gives_the_same_bytes() -> None:
    def text() -> bytes:
        network = made(Wishes(nodes=15), Random(4), Probed(20, accepted))
        assert network is not None
        return model_of(network.draft, {}).SerializeToString(deterministic=True)

    assert text() == text()


def test_a_network_of_constants_alone_gets_an_input() -> None:
    wishes = Wishes(nodes=1, operators=("HannWindow", "Relu"))
    for seed in range(6):
        network = made(wishes, Random(seed), SUPPORT)
        assert network is None or network.draft.sources
