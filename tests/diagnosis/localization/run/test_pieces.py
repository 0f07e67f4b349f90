"""Networks that run in pieces: the same values as in one go, in bounded memory."""

from __future__ import annotations

import tracemalloc
import weakref
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import onnx_networks
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_graphs import Computed, all_values, drawn_feeds, graph_of, graphs
from small_models import model_of

from conrepair.diagnosis.localization.align.compensating import Isolated
from conrepair.diagnosis.localization.align.layout import layouts
from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.run import pieces
from conrepair.diagnosis.localization.run.activations import Activations
from conrepair.diagnosis.localization.run.pieces import Pieces
from conrepair.diagnosis.localization.run.shelf import Shelf
from conrepair.formats.networks.network import Segment
from conrepair.formats.onnx.read.network import open_network
from conrepair.ground.graph.layer_graph import LayerGraph
from conrepair.ground.runtime.errors import InferenceError
from conrepair.ground.runtime.processes.memory import large_blocks_returned
from conrepair.ground.runtime.shown.heartbeat import at_work, current_work

MEGABYTE = 1 << 20


@pytest.fixture
def one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "_LEAST", 1)


@pytest.mark.usefixtures("one_at_a_time")
@pytest.mark.parametrize("name", sorted(onnx_networks.NETWORKS))
def test_the_same_values_as_in_one_go(name: str, tmp_path: Path) -> None:
    network, feeds, _ = onnx_networks.opened(name, tmp_path)
    wanted = onnx_networks.observable(network, real=True)
    shelf = Shelf(tmp_path)
    for given_name, array in feeds.items():
        shelf.put(given_name, array)
    found = {}
    for tensor, array in Pieces.in_a_row(network, wanted).run(shelf.__getitem__):
        shelf.put(tensor, array)
        found[tensor] = array
    assert list(found) == sorted(wanted, key=network.graph.order.__getitem__)
    expected = onnx_networks.captured(network, feeds)
    for tensor, array in found.items():
        np.testing.assert_allclose(array, expected[tensor], rtol=1e-5, atol=1e-6)
    between = dict(Pieces.between(network, [*feeds, *wanted], wanted).run(shelf.__getitem__))
    for tensor, array in between.items():
        np.testing.assert_allclose(array, expected[tensor], rtol=1e-5, atol=1e-6)


@settings(deadline=None)
@given(graphs(), st.data())
def test_some_of_the_tensors_are_enough(graph: LayerGraph, data: st.DataObject) -> None:
    """Nothing is computed from what wasn't computed before, whatever was left out."""
    network = Computed(graph)
    values = all_values(network, drawn_feeds(graph))
    computed = [name for node in graph.nodes for name in node.outputs]
    wanted = data.draw(st.lists(st.sampled_from(computed), min_size=1, unique=True))
    known = {name: values[name] for name in graph.inputs}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "_LEAST", 1)
        row = Pieces.in_a_row(network, wanted)
        found = []
        for name, array in row.run(known.__getitem__):
            np.testing.assert_array_equal(array, values[name])
            found.append(name)
            known[name] = array
    assert sorted(found) == sorted(wanted)


def chain(count: int, shape: tuple[int, ...]) -> LayerGraph:
    names = ["x", *(f"t{place}" for place in range(count))]
    nodes = [(f"n{place}", "Sin", [names[place]], [names[place + 1]]) for place in range(count)]
    return graph_of(["x"], nodes, [names[-1]], shape)


def test_activations_of_twenty_times_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of 80 activations has 0.5 MiB, pieces may have 2: all together they'd have 40."""
    monkeypatch.setattr(pieces, "_LEAST", 2 * MEGABYTE)
    graph = chain(80, (2, 256, 256))
    network = Computed(graph)
    shelf = Shelf(tmp_path, memory=0)
    shelf.put("x", np.random.default_rng(0).normal(size=(2, 256, 256)).astype(np.float32))
    wanted = [name for node in graph.nodes for name in node.outputs]
    tracemalloc.start()
    try:
        for name, array in Pieces.in_a_row(network, wanted).run(shelf.__getitem__):
            shelf.put(name, array)
        del array
        for name, again in Pieces.between(network, ["x", *wanted], wanted).run(shelf.__getitem__):
            np.testing.assert_array_equal(again, shelf[name])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * MEGABYTE


def resident() -> int:
    """Memory of this process that isn't a file's, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) << 10


def test_how_many_layers_are_done_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "_LEAST", 1)
    network, told = Computed(chain(4, (2, 3))), []
    wanted = [name for node in network.graph.nodes for name in node.outputs]
    known = {"x": np.zeros((2, 3), np.float32)}
    with at_work("localize"):
        for name, array in Pieces.in_a_row(network, wanted).run(known.__getitem__):
            known[name] = array
            told.append(current_work())
    assert told == [f"localize, {done} of 4 layers" for done in range(4)]


def test_activations_of_onnx_runtime_are_let_go(tmp_path: Path) -> None:
    """40 tensors of 8 MiB, ten times what a piece may compute."""
    lines = "\n".join(f"t{place} = Sin ({'x' if not place else f't{place - 1}'})" for place in range(39))
    text = f"small (float[2, 1024, 1024] x) => (float[2, 1024, 1024] y) {{ {lines}\n y = Sin (t38) }}"
    path = onnx_networks.written(tmp_path / "long.onnx", text, {})
    model = onnx_networks.model_of("onnx", path)
    feeds = {"x": onnx_networks.drawn(2, 1024, 1024)}
    network = onnx_networks.open_network(model, onnx_networks.specs(model, feeds))
    shelf = Shelf(tmp_path, memory=0)
    shelf.put("x", feeds["x"])
    before = highest = resident()
    with large_blocks_returned():
        for name, array in Pieces.in_a_row(network, onnx_networks.observable(network)).run(shelf.__getitem__):
            shelf.put(name, array)
            highest = max(highest, resident())
    assert len(shelf.shapes()) == 41
    assert highest - before < 200 * MEGABYTE
    value = feeds["x"].astype(np.float64)
    for _ in range(40):
        value = np.sin(value)
    np.testing.assert_allclose(shelf["y"], value, atol=1e-4)


def test_a_shelf_keeps_what_was_put_last(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    small, large = np.arange(6.0).reshape(2, 3), np.arange(40_000.0).reshape(2, -1).T
    for name, array in (("small", small), ("large", large)):
        shelf.put(name, 0 * array)
        shelf.put(name, array)
        np.testing.assert_array_equal(shelf[name], array)
    assert shelf.shapes() == {"small": (2, 3), "large": (20_000, 2)}
    assert "small" in shelf
    assert "other" not in shelf
    with pytest.raises(KeyError):
        shelf["other"]


@pytest.mark.parametrize("first", ["small", "large"])
def test_a_shelf_takes_another_size_under_the_same_name(tmp_path: Path, first: str) -> None:
    arrays = {"small": np.ones(3), "large": np.arange(40_000.0)}
    [second] = set(arrays) - {first}
    shelf = Shelf(tmp_path)
    for name in (first, second, first, second):
        shelf.put("x", arrays[name])
    np.testing.assert_array_equal(shelf["x"], arrays[second])
    assert shelf.shapes() == {"x": arrays[second].shape}


@pytest.mark.usefixtures("one_at_a_time")
@pytest.mark.parametrize(
    ("wanted", "weights", "keep"), [(False, 1 << 20, False), (True, 1 << 20, True), (True, 8, False)]
)
def test_segments_are_dropped_unless_kept(
    wanted: bool, weights: int, keep: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of a network with more weights than it may hold are dropped in any case."""
    monkeypatch.setattr(pieces, "_WEIGHTS", weights)
    network, feeds, _ = onnx_networks.opened("convnet", tmp_path)
    alive: weakref.WeakSet[Segment] = weakref.WeakSet()
    made: list[tuple[str, ...]] = []
    segment = network.segment

    def watched(fed: Collection[str], wanted: Sequence[str]) -> Segment:
        result = segment(fed, wanted)
        made.append(result.wanted)
        alive.add(result)
        return result

    monkeypatch.setattr(network, "segment", watched)
    shelf = Shelf(tmp_path)
    shelf.put_all(feeds.items())
    row = Pieces.in_a_row(network, onnx_networks.observable(network), keep=wanted)
    assert not made
    for _ in range(2):
        for name, array in row.run(shelf.__getitem__):
            shelf.put(name, array)
            assert len(alive) == (len(set(made)) if keep else 0)
    assert len(set(made)) > 2
    assert len(made) == len(set(made)) * (1 if keep else 2)


def test_a_shelf_makes_files_when_its_memory_is_full(tmp_path: Path) -> None:
    megabytes = {name: np.full(MEGABYTE // 4, number, np.float32) for number, name in enumerate("abcd")}
    shelf = Shelf(tmp_path, memory=2 * MEGABYTE)
    shelf.put_all(megabytes.items())
    assert [shelf[name] is array for name, array in megabytes.items()] == [True, True, False, False]
    assert all(np.array_equal(shelf[name], array) for name, array in megabytes.items())
    assert list(tmp_path.iterdir())
    shelf.put("a", np.zeros(1, np.float32))  # which frees what the next one takes
    shelf.put("d", megabytes["b"])
    assert shelf["d"] is megabytes["b"]


def test_a_shelf_holds_no_more_than_it_was_given(tmp_path: Path) -> None:
    large = np.zeros((100, MEGABYTE // 40), np.float32)
    shelf = Shelf(tmp_path)
    shelf.put("row", large[3])
    assert shelf["row"].base is None


LOOKED_UP = """table (float[2, 3] x) => (float[2, 3] y) {
    a = Relu (x)
    r = Abs (a)
    i = Cast <to = 7> (r)
    b = Gather (words, i)
    c = ReduceSum <keepdims = 0> (b, last)
    d = Neg (a)
    large = Mul (d, d)
    y = Add (c, d)
}"""


@pytest.mark.usefixtures("one_at_a_time")
@pytest.mark.parametrize("together", [False, True])
def test_what_cannot_be_computed_from_a_guess_is_left_out(
    together: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if together:
        monkeypatch.setattr(pieces, "_LEAST", MEGABYTE)
    weights = {"words": onnx_networks.drawn(5, 4), "last": np.array([2])}
    model = model_of("onnx", onnx_networks.written(tmp_path / "table.onnx", LOOKED_UP, weights))
    network = open_network(model, onnx_networks.specs(model, {"x": np.zeros((2, 3), np.float32)}))
    fed, wanted = ["x", "r"], ["a", "b", "c", "d", "large", "y"]
    right = {"x": np.full((2, 3), 2, np.float32), "r": np.full((2, 3), 4, np.float32)}
    cut = Pieces.between(network, fed, wanted)
    assert [name for name, _ in cut.attempt(right.__getitem__)] == wanted
    wrong = right | {"r": np.full((2, 3), 5, np.float32)}
    assert [name for name, _ in cut.attempt(wrong.__getitem__)] == ["a", "d", "large"]
    with pytest.raises(InferenceError):
        list(cut.run(wrong.__getitem__))


def test_a_guess_that_cannot_be_fed_gives_no_number(tmp_path: Path) -> None:
    """Feeding what a token's number is computed from with other numbers asks for rows that aren't there."""
    weights = {"words": onnx_networks.drawn(5, 4), "last": np.array([2])}
    model = model_of("onnx", onnx_networks.written(tmp_path / "table.onnx", LOOKED_UP, weights))
    feeds = {"x": np.full((2, 3), 4, np.float32)}
    network = open_network(model, onnx_networks.specs(model, feeds))
    names = ["a", "r", "b", "c", "d", "large", "y"]
    source, target = (Activations(network, feeds, tmp_path / side) for side in ("source", "target"))
    source.compute(names)
    target.compute(names)
    layout = layouts((2, 3), (2, 3))[0]
    right, wrong = (Pair(name, "r", layout, 0.5, "") for name in ("r", "large"))
    ends = [Pair(name, name, layout, 1.0, "") for name in ("d", "y")]
    isolated = Isolated(source, target, tmp_path / "isolated")
    assert isolated.errors([right], ends) == {"d": 0.0, "y": 0.0}
    assert isolated.errors([wrong], ends) == {"d": 0.0, "y": np.inf}
    values = isolated.run([wrong], ["d", "y"])
    np.testing.assert_array_equal(values("d"), source["d"])
    assert np.isnan(values("y")).all()
