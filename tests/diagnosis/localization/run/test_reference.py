"""What rounding makes of the source's values: disturbances, stages, batches, ranges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from random_graphs import SHAPE, Computed, drawn_feeds, graph_of

from conrepair.diagnosis.localization.align.layout import layouts
from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.run.activations import Activations
from conrepair.diagnosis.localization.run.measurement import CutOff, measure
from conrepair.diagnosis.localization.run.reference import Reference
from conrepair.ground.graph.layer_graph import Node
from conrepair.ground.runtime.errors import InferenceError
from conrepair.verdicts.judging.numbers import DISTURBANCE

CHAIN = [(f"n{place}", "Sin", [f"t{place - 1}" if place else "x"], [f"t{place}"]) for place in range(5)]


def test_what_is_carried_on_is_of_all_elements(tmp_path: Path) -> None:
    """Most results are a hundredth of what's read, beside a few large ones: disturbed a hundred times as much."""
    large = np.arange(4096).reshape(64, 64) % 64 == 0
    network = Computed(
        graph_of(["x"], [("n", "Identity", ["x"], ["y"])], ["y"]),
        {"n": lambda x: np.where(large, x, x - np.float32(0.99))},
    )
    values = np.where(large, 100.3, np.random.default_rng(0).uniform(0.995, 1.005, (64, 64))).astype(np.float32)
    reference = Reference(network, tmp_path)
    reference.batch(0, {"x": values}).compute(["y"])
    floor = reference.floors((), ["y"])["y"]
    assert floor.carried == pytest.approx(DISTURBANCE, rel=0.2)
    assert floor.disturbed > 20 * DISTURBANCE


def test_outputs_by_other_means_are_measured_once(tmp_path: Path) -> None:
    network = Computed(graph_of(["x"], CHAIN, ["t4"]))
    reference, batches = Reference(network, tmp_path), [drawn_feeds(network.graph)]
    found = reference.measured(batches, ("bfloat16",))
    assert reference.measured(batches, ("bfloat16",)) is found
    assert set(reference.measured(batches, ()).runs) < set(found.runs)


def test_batches_are_kept_where_several_targets_need_them(tmp_path: Path) -> None:
    network = Computed(graph_of(["x"], CHAIN, ["t4"]))
    feeds = [drawn_feeds(network.graph, seed) for seed in range(3)]
    for keep in (True, False):
        reference = Reference(network, tmp_path / str(keep), keep=keep)
        batches = [reference.batch(number, item) for number, item in enumerate(feeds)]
        assert len(set(map(id, batches))) == (3 if keep else 2)
        assert reference.batch(0, feeds[0]) is batches[0]
        assert np.array_equal(batches[2].feeds["x"], feeds[2]["x"])
        seen = feeds if keep else [feeds[0], feeds[2]]
        low, high = reference.range_of("x")
        assert (low, high) == (min(item["x"].min() for item in seen), max(item["x"].max() for item in seen))


def test_how_far_other_samples_may_reach(tmp_path: Path) -> None:
    """As far beyond the ends as these lie beyond those of most samples; no further than where several end."""
    network = Computed(graph_of(["x"], CHAIN, ["t4"]))
    shape = drawn_feeds(network.graph)["x"].shape
    rows = np.arange(1, shape[0] + 1, dtype=np.float32).reshape(-1, *[1] * (len(shape) - 1))
    limited = np.minimum(rows, shape[0] - 1)  # the two largest
    beyond = 2 * shape[0] - float(np.median(rows))
    for ends, expected in ((rows, beyond), (limited, shape[0] - 1), (np.full_like(rows, 255), 255)):
        reference = Reference(network, tmp_path / str(expected), keep=True)
        reference.batch(0, {"x": np.broadcast_to(ends, shape).copy()})
        assert reference.range_of("x", of_others=True)[1] == expected


def test_another_arithmetic_is_asked_once(tmp_path: Path) -> None:
    network = Computed(graph_of(["x"], CHAIN, ["t4"]))
    other = Computed(network.graph, {"n4": lambda x: x * np.float32(1.5)})
    opened: list[int] = []

    def second() -> Computed:
        opened.append(1)
        return other

    reference = Reference(network, tmp_path, second_opinion=second)
    right = reference.batch(0, drawn_feeds(network.graph))
    right.compute(["t4"])
    found = reference.second_outputs
    assert found is not None
    assert np.allclose(found["output 0"], 1.5 * right["t4"])
    assert reference.second_outputs is found
    assert len(opened) == 1
    assert Reference(network, tmp_path / "other").second_outputs is None


def test_floors_are_measured_once_and_not_of_inputs(tmp_path: Path) -> None:
    network = Computed(graph_of(["x"], CHAIN, ["t4"]))
    reference = Reference(network, tmp_path)
    right = reference.batch(0, drawn_feeds(network.graph))
    right.compute([name for _, _, _, (name,) in CHAIN])
    found = reference.floors(["x", "t1"], ["x", "t1", "t3"])
    assert set(found) == {"t1", "t3"}
    assert all(0 < floor.disturbed < 300 * DISTURBANCE and floor.other is None for floor in found.values())
    before = found["t1"]
    assert reference.floors(["t1"], ["t1", "t2"])["t1"] is before
    assert reference.floors((), ["t3"])["t3"].disturbed != found["t3"].disturbed, "from elsewhere"


@pytest.mark.parametrize(
    ("values", "beyond", "lost"),
    [
        ([-1.0, 2.0], 1.0, 0.0),
        ([-0.5, 1.0], 0.5, 0.0),
        ([-2.0, 2.0], 2.0, math.sqrt(1 / 8)),
        ([0.0, 5.0], 2.5, 3 / 5),
        ([0.0, 0.0], 0.0, 0.0),
    ],
)
def test_what_a_range_does_not_hold(values: list[float], beyond: float, lost: float) -> None:
    found = CutOff(-1.0, 2.0)
    found.add(np.array(values))
    assert found.beyond == beyond
    assert found.relative_l2 == pytest.approx(lost)
    found.add(np.array([-0.1, 0.1]))
    assert found.beyond == max(beyond, 0.1)


def test_a_range_that_ends_at_zero_holds_nothing_below() -> None:
    found = CutOff(0.0, 2.0)
    found.add(np.array([-0.1, 1.0]))
    assert found.beyond == math.inf


@pytest.mark.parametrize("whole", [1, 2, 3])
def test_as_many_samples_run_as_a_whole_as_asked(tmp_path: Path, whole: int) -> None:
    source = Computed(graph_of(["x"], CHAIN, ["t4"]))
    target = Computed(source.graph, {"n1": lambda x: 1.5 * x})
    feeds = [drawn_feeds(source.graph, seed) for seed in range(4)]
    plain = layouts(SHAPE, SHAPE)[0]
    pairs = [Pair(name, name, plain, 1.0, "") for name in ("x", "t0", "t1", "t4")]
    reference = Reference(source, tmp_path / "s")
    reference.batch(0, feeds[0])
    seen: list[int] = []
    cuts = measure(
        reference,
        pairs,
        Activations(target, feeds[0], tmp_path / "t"),
        [(item, item) for item in feeds[1:]],
        whole=whole * SHAPE[0],
        observe=lambda *_: seen.append(1),
        ranges={"t1": (-0.5, 0.5)},
    )
    assert [cut.pair.target for cut in cuts] == ["t0", "t1", "t4"]
    assert {cut.introduced.count for cut in cuts} == {4 * math.prod(SHAPE)}
    assert {cut.full.count for cut in cuts} == {min(whole, 2) * math.prod(SHAPE)}
    assert len(seen) == whole
    assert [cut.introduced.relative_l2 > 0.1 for cut in cuts] == [False, True, False]
    assert [cut.full.relative_l2 > 0.01 for cut in cuts] == [False, True, True]
    assert [cut.cut_off is not None and cut.cut_off.beyond > 1 for cut in cuts] == [False, True, False]
    assert all(cut.floor.disturbed > 0 and cut.floor.other is None for cut in cuts)


class Lacking(Computed):
    """Has no kernel for one node."""

    def apply(self, node: Node, reads: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        if node.name == "n2":
            raise InferenceError("no kernel")
        return super().apply(node, reads)


def test_what_another_arithmetic_has_no_kernels_for_has_no_second_opinion(tmp_path: Path) -> None:
    network = Computed(graph_of(["x"], CHAIN, ["t4"]))
    other = Lacking(network.graph, dict.fromkeys(("n1", "n3", "n4"), lambda x: x * np.float32(1 + 1e-4)))
    reference = Reference(network, tmp_path, second_opinion=lambda: other)
    right = reference.batch(0, drawn_feeds(network.graph))
    names = [name for _, _, _, (name,) in CHAIN]
    right.compute(names)
    found = reference.floors(names, names)
    told = {name: floor.other for name, floor in found.items()}
    assert told == {
        "t0": 0.0,
        "t1": pytest.approx(1e-4, rel=1e-2),
        "t2": None,
        "t3": pytest.approx(1e-4, rel=1e-2),
        "t4": pytest.approx(1e-4, rel=1e-2),
    }
    assert reference.second_outputs is None
