"""What a network gives by other means."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np
import pytest
from random_graphs import SHAPE, Computed, drawn_feeds, graph_of

from conrepair.formats.networks.network import Network, Segment
from conrepair.ground.graph.layer_graph import Node
from conrepair.ground.metrics.running_error import relative_l2
from conrepair.ground.runtime.errors import InferenceError
from conrepair.verdicts.judging import numbers
from conrepair.verdicts.judging.measured import measured

CHAIN = [(f"n{place}", "Sin", [f"t{place - 1}" if place else "x"], [f"t{place}"]) for place in range(5)]


def chain(kind: type[Computed] = Computed) -> Computed:
    return kind(graph_of(["x"], CHAIN, ["t4", "x"]))


def test_what_rounding_on_the_way_does_to_the_outputs() -> None:
    network = chain()
    feeds = drawn_feeds(network.graph)
    (rounded,) = measured(network, [feeds]).runs["rounded"]
    right = network.segment(["x"], ["t4"]).run(feeds)["t4"]
    assert numbers.DISTURBANCE / 4 < relative_l2(right, rounded["output 0"]) < 300 * numbers.DISTURBANCE
    assert np.array_equal(rounded["output 1"], feeds["x"]), "what is handed on is rounded by nobody"


def test_other_arithmetics_are_simulated_on_as_many_batches_as_are_little_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = chain()
    batches = [drawn_feeds(network.graph, seed) for seed in range(6)]
    found = measured(network, iter(batches), ("bfloat16", "float16")).runs
    assert [len(found[name]) for name in ("rounded", "bfloat16", "float16")] == [1, 6, 6]
    whole = network.segment(["x"], ["t4"])
    for feeds, outputs in zip(batches, found["bfloat16"], strict=True):
        assert 1e-4 < relative_l2(whole.run(feeds)["t4"], outputs["output 0"]) < 0.1
    monkeypatch.setattr(numbers, "SIMULATED", 2 * 3.5 * (len(CHAIN) * numbers.STEP))
    assert len(measured(network, iter(batches), ("bfloat16", "float16")).runs["float16"]) == 3
    monkeypatch.setattr(numbers, "SIMULATED", 0)
    assert len(measured(network, iter(batches), ("bfloat16", "float16")).runs["float16"]) == 1, "one in any case"


class Lacking(Computed):
    """Can't compute what isn't in float32."""

    def apply(self, node: Node, reads: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        if node.name == "n2" and not np.any(reads[0].view(np.uint32) & 0xFFFF):
            raise InferenceError("no index")
        return super().apply(node, reads)


def test_an_arithmetic_that_the_network_fails_in_is_left_out() -> None:
    network = chain(Lacking)
    feeds = {"x": np.full(SHAPE, 0.3, np.float32)}
    assert set(measured(network, [feeds], ("bfloat16",)).runs) == {"rounded"}


class Unbuilt(Computed):
    """Can't be built with other weights."""

    def with_weights(self, change: Callable[[np.ndarray], np.ndarray]) -> Network:
        return Refusing(self.graph)


class Refusing(Computed):
    def segment(self, fed: Collection[str], wanted: Sequence[str]) -> Segment:
        raise InferenceError("no kernel for its weights")


def test_an_arithmetic_that_the_network_is_not_built_in_is_left_out() -> None:
    network = chain(Unbuilt)
    assert set(measured(network, [drawn_feeds(network.graph)], ("bfloat16",)).runs) == {"rounded"}


def test_no_more_batches_are_read_than_are_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    network = chain()
    read: list[int] = []

    def batches() -> Iterator[dict[str, np.ndarray]]:
        for seed in range(99):
            read.append(seed)
            yield drawn_feeds(network.graph, seed)

    measured(network, batches())
    assert len(read) == 1
    monkeypatch.setattr(numbers, "BATCHES", 3)
    assert len(measured(network, batches(), ("bfloat16",)).runs["bfloat16"]) == 3
    assert len(read) == 4


def test_a_network_that_computes_nothing_gives_nothing() -> None:
    network = Computed(graph_of(["x"], [], ["x"]))
    assert not measured(network, [drawn_feeds(network.graph)], ("bfloat16",)).runs
