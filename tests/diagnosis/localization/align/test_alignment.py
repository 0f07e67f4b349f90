"""Which tensors are paired, on networks that are written in other words, by other libraries, and with faults."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest
import rewritten_networks as networks
import small_models as small
from random_graphs import FUNCTIONS, SHAPE, Computed, drawn_feeds, graph_of
from rewritten_networks import CUBE, damaged, feeds_of, opened, renamed

from conrepair.diagnosis.localization.align.alignment import Alignment, align, comparable
from conrepair.diagnosis.localization.align.layout import layouts
from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.run.activations import Activations
from conrepair.formats.networks.network import Network, open_network
from conrepair.ground.graph.layer_graph import Tensor

Array = np.ndarray


def aligned(
    source: Network, target: Network, ours: dict[str, Array], theirs: dict[str, Array], folder: Path
) -> Alignment:
    work = folder / "work"
    work.mkdir()
    return align(Activations(source, ours, work / "source"), Activations(target, theirs, work / "target"), work)


def aligned_files(name: str, target: Path, folder: Path) -> tuple[Alignment, Network, Network]:
    feeds = feeds_of(name)
    source, other = opened(folder / "source.onnx", feeds), opened(target, feeds)
    return aligned(source, other, feeds, feeds, folder), source, other


@pytest.mark.parametrize("copies", [False, True])
@pytest.mark.parametrize("name", sorted(networks.WRITERS))
def test_the_same_network_in_other_words(name: str, copies: bool, tmp_path: Path) -> None:
    """Every tensor finds itself; where it was copied, the copy may stand for it."""
    networks.WRITERS[name](tmp_path / "source.onnx")
    names = renamed(tmp_path / "source.onnx", tmp_path / "target.onnx", copies=copies)
    alignment, source, target = aligned_files(name, tmp_path / "target.onnx", tmp_path)
    assert alignment.unpaired_sources == ()
    assert not [pair for pair in alignment.outputs if source.graph.tensors[pair.source].is_real]
    assert alignment.sources == comparable(source.graph)
    for pair in alignment.pairs:
        assert pair.confidence == 1.0
        assert pair.layout.is_plain
        right = names.get(pair.source, pair.source)
        assert right in _same(target, pair.target), pair
    if not copies:
        assert alignment.unpaired_targets == ()


def _same(network: Network, name: str) -> list[str]:
    """A tensor, and those that it is a copy of."""
    producer = network.graph.producers.get(name)
    if producer is None or producer.op != "Identity":
        return [name]
    return [name, *_same(network, producer.inputs[0])]


FAULTS = [
    ("residual blocks", ["one1"]),
    ("residual blocks", ["stem"]),
    ("residual blocks", ["one_b2", "two0", "dense"]),
    ("encoder blocks", ["wq0"]),
    ("encoder blocks", ["wu1", "wv2"]),
    ("branches", ["w1"]),
    ("branches", ["w0", "w1", "w2", "w3"]),
    ("lstm", ["R"]),
    ("gru", ["W"]),
    ("text", ["table"]),
    ("pair", ["weight"]),
    ("convnet", ["first"]),
]


@pytest.mark.parametrize(("name", "weights"), FAULTS)
def test_faults_confuse_nothing(name: str, weights: list[str], tmp_path: Path) -> None:
    """Behind a fault no value is what it was; blocks that are written alike are told apart all the same."""
    path = networks.WRITERS[name](tmp_path / "source.onnx")
    names = renamed(damaged(path, tmp_path / "damaged.onnx", weights), tmp_path / "target.onnx")
    alignment, _, _ = aligned_files(name, tmp_path / "target.onnx", tmp_path)
    found = {pair.source: pair.target for pair in alignment.pairs}
    wrong = {one: two for one, two in found.items() if two != names.get(one, one)}
    assert not wrong
    assert len(found) >= 0.9 * len(alignment.sources)
    assert all(pair.layout.is_plain for pair in alignment.pairs)


def keras_of(path: Path) -> tuple[Network, dict[str, Array]]:
    """The residual blocks in Keras, with channels last, and what they're fed."""
    import keras
    import onnx
    from keras import layers
    from onnx import numpy_helper

    held = {item.name: numpy_helper.to_array(item) for item in onnx.load(path).graph.initializer}

    def convolved(tensor: keras.KerasTensor, weight: str, bias: str) -> keras.KerasTensor:
        layer = layers.Conv2D(CUBE, 3, padding="same", name=weight)
        result = layer(tensor)
        layer.set_weights([held[weight].transpose(2, 3, 1, 0), held[bias]])
        return result

    image = keras.Input((CUBE, CUBE, CUBE), name="image")
    tensor = convolved(image, "stem", "stem_b")
    for place in range(4):
        norm = layers.BatchNormalization(epsilon=1e-5, name=f"norm{place}")
        inner = norm(convolved(tensor, f"one{place}", f"one_b{place}"))
        norm.set_weights([held[f"{role}{place}"] for role in ("scale", "shift", "mean", "var")])
        inner = convolved(layers.ReLU(name=f"relu{place}")(inner), f"two{place}", f"two_b{place}")
        tensor = layers.ReLU(name=f"out{place}")(layers.Add(name=f"add{place}")([tensor, inner]))
    dense = layers.Dense(6, name="dense")
    result = dense(layers.GlobalAveragePooling2D(name="pool")(tensor))
    dense.set_weights([held["dense"], held["dense_b"]])
    keras.Model(image, result).save(path.with_name("net.keras"))
    feeds = {"image": np.ascontiguousarray(feeds_of("residual blocks")["image"].transpose(0, 2, 3, 1))}
    network = open_network(
        small.model_of("keras", path.with_name("net.keras")),
        [small.TensorSpec("image", feeds["image"].shape, "float32")],
    )
    return network, {network.input_names["image"]: feeds["image"]}


@pytest.mark.parametrize("weights", [[], ["two1"], ["stem", "one3"]])
def test_channels_last_where_all_sizes_are_equal(weights: list[str], tmp_path: Path) -> None:
    path = networks.residual_blocks(tmp_path / "source.onnx")
    target, theirs = keras_of(path)
    source = opened(damaged(path, tmp_path / "damaged.onnx", weights), feeds_of("residual blocks"))
    alignment = aligned(source, target, feeds_of("residual blocks"), theirs, tmp_path)
    layers = {
        pair.source: target.graph.producers[pair.target].layer for pair in alignment.pairs if pair.source != "image"
    }
    assert {layers[f"a{place}"] for place in range(4)} == {f"one{place}" for place in range(4)}
    for place in range(4):
        assert layers[f"a{place}"] == f"one{place}"
        assert layers[f"n{place}"] == f"norm{place}"
        assert layers[f"c{place}"] == f"two{place}"
        assert layers[f"s{place}"] == f"add{place}"
        assert layers[f"t{place + 1}"] == f"out{place}"
    right = next(item for item in layouts((2, 8, 8, 8), (2, 8, 8, 8)) if item.axes == (0, 2, 3, 1))
    assert {
        pair.layout for pair in alignment.pairs if len(pair.layout.source) == 4 and 1 not in pair.layout.source
    } == {right}


def test_missing_layers_stay_unpaired(tmp_path: Path) -> None:
    """The target has lost a normalization in the second block, and scales the stem."""
    import onnx
    from onnx import helper

    path = networks.residual_blocks(tmp_path / "source.onnx")
    proto = onnx.load(path)
    [lost] = [node for node in proto.graph.node if node.output[0] == "n1"]
    [reader] = [node for node in proto.graph.node if node.output[0] == "r1"]
    proto.graph.node.remove(lost)
    reader.input[0] = "a1"
    [stem] = [node for node in proto.graph.node if node.output[0] == "t0"]
    stem.output[0] = "raw"
    extra = helper.make_node("Mul", ["raw", "var0_column"], ["t0"], "extra")
    proto.graph.initializer.append(
        onnx.numpy_helper.from_array(networks.drawn(CUBE, 1, 1, seed=5) + 2, "var0_column")
    )
    proto.graph.node.insert(1, extra)
    onnx.save(proto, tmp_path / "target.onnx")
    alignment, _, _ = aligned_files("residual blocks", tmp_path / "target.onnx", tmp_path)
    found = {pair.source: pair.target for pair in alignment.pairs}
    assert "n1" not in found
    assert found["a1"] == "a1"
    assert {one: two for one, two in found.items() if one != two and one != "t0"} == {}
    assert found["t0"] in {"raw", "t0"}


def test_outputs_that_are_exchanged(tmp_path: Path) -> None:
    """The tensors are found by their values; that the outputs give others is said apart."""
    text = """small (float[batch, 4] x) => (float[batch, 4] {one}, float[batch, 4] {two}) {{
        h = MatMul (x, w)
        first = Sin (h)
        second = Tanh (h)
    }}"""
    weights = {"w": networks.drawn(4, 4)}
    networks.written(tmp_path / "source.onnx", text.format(one="first", two="second"), weights)
    networks.written(tmp_path / "target.onnx", text.format(one="second", two="first"), weights)
    target = tmp_path / "target.onnx"
    feeds = {"x": networks.drawn(2, 4, scale=1)}
    source, other = opened(tmp_path / "source.onnx", feeds), opened(target, feeds)
    by_name = aligned(source, other, feeds, feeds, tmp_path)
    assert by_name.outputs == ()  # names say which is which
    renamed_text = text.format(one="b", two="a").replace("first =", "a =").replace("second =", "b =")
    networks.written(target, renamed_text, weights)
    (tmp_path / "again").mkdir()
    by_place = aligned(source, opened(target, feeds), feeds, feeds, tmp_path / "again")
    assert {(pair.source, pair.target) for pair in by_place.pairs} == {
        ("x", "x"),
        ("h", "h"),
        ("first", "a"),
        ("second", "b"),
    }
    assert {(pair.source, pair.target) for pair in by_place.outputs} == {("first", "b"), ("second", "a")}


A_WAY_AROUND = (
    "t0=Tanh(x) t1=Erf(t0) t2=Sin(t1) t3=Abs(t2) t4=Sin(t3,t0) y=Abs(t4,t0)",
    "t1=Erf(x) t2=Sin(t1) t3=Abs(t2) extra=Softplus(t3) t4=Sin(extra,x) y=Abs(t4,x)",
)


def test_a_guess_that_makes_what_follows_wrong_is_another_one(tmp_path: Path) -> None:
    """The target has lost its first operator and has one more: what the first that's left reads has other values."""
    networks = []
    for text in A_WAY_AROUND:
        nodes = []
        for place, (end, op, reads) in enumerate(re.findall(r"(\w+)=(\w+)\(([\w,]+)\)", text)):
            nodes.append((f"n{place}", op, reads.split(","), [end]))
        networks.append(Computed(graph_of(["x"], nodes, ["y"])))
    feeds = drawn_feeds(networks[0].graph)
    alignment = aligned(*networks, feeds, feeds, tmp_path)
    found = {pair.target: pair.source for pair in alignment.pairs}
    assert found["t1"] == "t1"
    assert all(one == two for one, two in found.items() if two != "extra")


def test_what_large_numbers_hide_is_not_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores behind a mask have the mask's norm, whatever they are."""
    shape = (4, 8, 8)
    hidden = np.arange(np.prod(shape)).reshape(shape) % 2 == 0
    monkeypatch.setitem(FUNCTIONS, "Masked", lambda x: np.where(hidden, np.float32(-1e9), x))
    nodes = [("n0", "Sin", ["x"], ["t0"]), ("n1", "Masked", ["t0"], ["t1"]), ("n2", "Softplus", ["t1"], ["y"])]
    graph = graph_of(["x"], nodes, ["y"], shape)
    other = Computed(graph, {"n1": lambda x: np.where(hidden, x, np.cos(x))})
    feeds = {"x": np.random.default_rng(0).standard_normal(shape).astype(np.float32)}
    found = {pair.target: pair for pair in aligned(Computed(graph), other, feeds, feeds, tmp_path).pairs}
    assert "the same values" in found["t0"].evidence
    assert "the same values" not in found["t1"].evidence


def test_what_can_be_compared() -> None:
    nodes = [("a", "Sin", ["x"], ["a"]), ("b", "Identity", ["a"], ["b"]), ("c", "Identity", ["b"], ["c"])]
    graph = graph_of(["x"], nodes, ["c"])
    assert comparable(graph) == ("x", "a", "c"), "a copy only where it's an output"
    hidden = dataclasses.replace(graph, tensors={**graph.tensors, "a": Tensor("a", SHAPE, "int64")})
    assert comparable(hidden) == ("x", "c")


def test_what_has_no_partner() -> None:
    plain = layouts(SHAPE, SHAPE)[0]
    found = Alignment((Pair("a", "c", plain, 1.0, ""),), (), ("a", "b"), ("c", "d", "a"))
    assert found.unpaired_sources == ("b",)
    assert found.unpaired_targets == ("d", "a")
