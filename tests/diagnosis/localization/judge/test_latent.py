"""Faults that no sample shows: found where other values show them, and nothing where a network is right."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import onnx
import pytest
import rewritten_networks as networks
from localizing import localize_networks
from onnx_networks import drawn, written
from rewritten_networks import feeds_of, opened, renamed
from small_models import model_of, tflite_of
from tflite_networks import concrete

from conrepair.diagnosis.localization.align.alignment import align
from conrepair.diagnosis.localization.judge.judgement import Judged
from conrepair.diagnosis.localization.judge.latent import latent_faults
from conrepair.diagnosis.localization.localize import Found
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.run.activations import Activations
from conrepair.diagnosis.localization.run.measurement import Cut
from conrepair.formats.networks.network import open_network
from conrepair.verdicts.evaluate.verdict import Verdict

LOUD, QUIET = 3.0, 0.02  # what a layer is fed, so that its bounds are reached, or aren't


def bounded(path: Path, upper: bool = True, epsilon: float = 1e-6) -> Path:
    """Two layers with an upper bound, of which samples reach the first one only; and a normalization."""
    lines = []
    for place in range(2):
        read = "x" if not place else "s0"
        bounds = "(c{0}, low, high)" if upper else "(c{0}, low)"
        lines += [f"c{place} = MatMul ({read}, w{place})", f"r{place} = Clip {bounds.format(place)}"]
        lines += [f"s{place} = Mul (r{place}, quiet)"] if not place else []
    lines += [f"n = LayerNormalization <epsilon = {epsilon}> (r1, g, b)", "y = MatMul (n, v)"]
    text = f"small (float[batch, 8] x) => (float[batch, 4] y) {{ {chr(10).join(lines)} }}"
    weights = {"w0": drawn(8, 8, seed=1, scale=2), "w1": drawn(8, 8, seed=2), "v": drawn(8, 4, seed=3)}
    weights |= {"low": np.float32(0), "quiet": np.float32(QUIET), "g": np.ones(8, np.float32), "b": drawn(8, seed=4)}
    if upper:
        weights["high"] = np.float32(6)
    return written(path, text, weights)


def localized(source: Path, target: Path, folder: Path, scale: float, **options: bool) -> Found:
    batches = [({"x": drawn(4, 8, seed=seed, scale=scale)},) * 2 for seed in range(2)]
    sides = opened(source, batches[0][0]), opened(target, batches[0][0])
    return localize_networks(*sides, batches, folder / "work", Options(**options))  # type: ignore[arg-type]


def test_a_bound_that_no_sample_reaches(tmp_path: Path) -> None:
    source, target = bounded(tmp_path / "s.onnx"), bounded(tmp_path / "t.onnx", upper=False)
    found = localized(source, target, tmp_path, 0.1)
    assert found.result.verdict is Verdict.EQUIVALENT
    assert [fault.target_layers[0] for fault in found.result.latent] == ["r0", "r1"]
    assert found.guilty == ()
    assert any("not triggered by these inputs" in words for words in found.result.latent[0].evidence)
    found = localized(source, target, tmp_path, 0.1, latent_counts=True)
    assert found.result.verdict is Verdict.FAULTY
    assert len(found.guilty) == 2


def test_one_that_belongs_to_a_rule_that_samples_show(tmp_path: Path) -> None:
    source, target = bounded(tmp_path / "s.onnx"), bounded(tmp_path / "t.onnx", upper=False)
    found = localized(source, target, tmp_path, LOUD)
    [rule] = found.result.rules
    assert rule.layers == ("r0", "r1")
    assert (found.latent, found.result.latent) == (1, ())


def test_an_epsilon_that_counts_where_values_are_small(tmp_path: Path) -> None:
    source, target = bounded(tmp_path / "s.onnx"), bounded(tmp_path / "t.onnx", epsilon=1.05e-6)
    found = localized(source, target, tmp_path, 200.0)
    assert found.result.verdict in {Verdict.EQUIVALENT, Verdict.NOISE}
    assert [fault.target_layers[0] for fault in found.result.latent] in ([], ["n"])


BEHIND: dict[str, tuple[str, str]] = {
    "a bias": ("h = Add (c, b)", "Clip (h, low, high)"),
    "a residual sum": ("d = MatMul (c, u)\n h = Add (c, d)", "Clip (h, low, high)"),
    "a difference of layers": ("d = MatMul (x, u)\n h = Sub (c, d)", "Clip (h, low, high)"),
    "a Concat": ("d = MatMul (x, u)\n h = Concat <axis = 1> (c, d)", "Clip (h, low, high)"),
    "a pooling": (
        "i = Unsqueeze (c, ones)\n a = AveragePool <kernel_shape = [2], strides = [1], pads = [0, 1]> (i)\n"
        "h = Squeeze (a, ones)",
        "Clip (h, low, high)",
    ),
    "sums above zero": ("h = Add (c, far)", "Clip (h, low, )"),
}


@pytest.mark.parametrize("name", BEHIND)
def test_a_bound_that_is_gone_behind(name: str, tmp_path: Path) -> None:
    before, bounded_by = BEHIND[name]
    numbers = {"w": drawn(8, 8, seed=1), "u": drawn(8, 8, seed=2), "b": drawn(8, seed=3)}
    numbers |= {"ones": np.array([1]), "low": np.float32(-6), "high": np.float32(6), "far": drawn(8, seed=4) / 10 + 4}
    numbers["v"] = drawn(16 if name == "a Concat" else 8, 4, seed=5)
    paths = []
    for role, bound in (("s", bounded_by), ("t", "Identity (h)")):
        body = f"c = MatMul (x, w)\n {before}\n r = {bound}\n y = MatMul (r, v)"
        words = {word.strip("(),") for word in body.split()}
        weights = {word: array for word, array in numbers.items() if word in words}
        paths.append(
            written(tmp_path / f"{role}.onnx", f"g (float[batch, 8] x) => (float[batch, 4] y) {{ {body} }}", weights)
        )
    found = localized(paths[0], paths[1], tmp_path, 0.1)
    assert found.result.verdict.is_right
    [fault] = found.result.latent
    assert "r" in fault.source_layers


@pytest.mark.parametrize("name", sorted(networks.WRITERS))
def test_none_where_a_network_is_right(name: str, tmp_path: Path) -> None:
    source = networks.WRITERS[name](tmp_path / "s.onnx")
    renamed(source, tmp_path / "t.onnx", copies=True)
    feeds = feeds_of(name)
    sides = opened(source, feeds), opened(tmp_path / "t.onnx", feeds)
    found = localize_networks(*sides, [(feeds, feeds)], tmp_path / "work", Options())
    assert found.result.latent == ()


def removed(graph: onnx.GraphProto, output: str) -> None:
    [node] = [node for node in graph.node if node.output[0] == output]
    graph.node.remove(node)
    for other in graph.node:
        other.input[:] = [node.input[0] if name == output else name for name in other.input]


REDUNDANT: dict[str, str] = {
    "a bound that a sigmoid never reaches": "h = Sigmoid (c)\n r = Clip (h, zero, one)",
    "a ReLU behind a softmax": "h = Softmax <axis = 1> (c)\n r = Relu (h)",
    "a ReLU twice": "h = Relu (c)\n r = Relu (h)",
    "an absolute value of squares": "h = Mul (c, c)\n r = Abs (h)",
}


@pytest.mark.parametrize("name", REDUNDANT)
def test_what_never_does_anything_may_be_left_out(name: str, tmp_path: Path) -> None:
    text = f"""small (float[batch, 8] x) => (float[batch, 4] y) {{
        c = MatMul (x, w)
        {REDUNDANT[name]}
        y = MatMul (r, v)
    }}"""
    weights = {"w": drawn(8, 8, seed=1), "v": drawn(8, 4, seed=2)}
    weights |= {"zero": np.float32(0), "one": np.float32(1)} if "zero" in text else {}
    source = written(tmp_path / "s.onnx", text, weights)
    proto = onnx.load(source)
    removed(proto.graph, "r")
    onnx.save(proto, tmp_path / "t.onnx")
    found = localized(source, tmp_path / "t.onnx", tmp_path, 1.0)
    assert found.result.verdict is Verdict.EQUIVALENT
    assert found.result.latent == ()


HEAD = "c = MatMul (x, w)\n r = Sigmoid (c)\n"
ALIKE: dict[str, tuple[str, str]] = {
    "a layer twice, or once": (
        HEAD + "a = MatMul (r, u)\n b = MatMul (r, u)\n s = Sigmoid (a)\n m = Mul (b, s)\n y = MatMul (m, v)",
        HEAD + "a = MatMul (r, u)\n s = Sigmoid (a)\n m = Mul (a, s)\n y = MatMul (m, v)",
    ),
    "a tensor computed twice, in two ways": (
        HEAD + "a = MatMul (r, u)\n m = Add (a, r)\n y = MatMul (m, v)",
        HEAD + "n = Neg (c)\n e = Exp (n)\n p = Add (e, one)\n q = Div (one, p)\n a = MatMul (q, u)\n"
        "m = Add (a, r)\n y = MatMul (m, v)",
    ),
    "a bound behind a bias in two operators": (
        "h = MatMul (x, w)\n c = Add (h, bias)\n r = Clip (c, under, over)\n y = MatMul (r, v)",
        "h = MatMul (x, w)\n c = Add (h, bias)\n m = Min (c, over)\n r = Max (m, under)\n y = MatMul (r, v)",
    ),
    "scores under a mask, added to or replaced": (
        "c = MatMul (x, w)\n h = Where (seen, zero, never)\n r = Add (c, h)\n s = Softmax <axis = 1> (r)\n"
        "y = MatMul (s, v)",
        "c = MatMul (x, w)\n r = Where (seen, c, never)\n s = Softmax <axis = 1> (r)\n y = MatMul (s, v)",
    ),
}


@pytest.mark.parametrize("name", ALIKE)
@pytest.mark.parametrize("turned", [False, True])
def test_none_where_it_is_written_otherwise(name: str, turned: bool, tmp_path: Path) -> None:
    numbers = {"w": drawn(8, 8, seed=1), "u": drawn(8, 8, seed=2), "v": drawn(8, 4, seed=3), "one": np.float32(1)}
    numbers |= {"bias": drawn(8, seed=4), "under": np.float32(-3), "over": np.float32(3)}
    numbers |= {"seen": np.arange(8) < 5, "zero": np.float32(0), "never": np.float32(-1e4)}
    paths = []
    for place, body in enumerate(ALIKE[name][::-1] if turned else ALIKE[name]):
        text = f"small (float[batch, 8] x) => (float[batch, 4] y) {{ {body} }}"
        weights = {word: array for word, array in numbers.items() if f"{word}," in body or f"{word})" in body}
        paths.append(written(tmp_path / f"{place}.onnx", text, weights))
    found = localized(paths[0], paths[1], tmp_path, 1.0, latent_counts=True)
    assert found.result.verdict.is_right, found.result.reason
    assert found.result.latent == ()


def test_an_axis_of_no_elements_in_front_of_a_softmax(tmp_path: Path) -> None:
    text = """small (float[batch, 8] x) => (float[batch, 4] y) {
        c = MatMul (x, w)\n n = Slice (c, none, none, one)\n s = Softmax <axis = 1> (n)\n h = Concat <axis = 1> (c, s)
        y = MatMul (h, v) }"""
    weights = {"w": drawn(8, 8, seed=1), "v": drawn(8, 4, seed=2), "none": np.array([0]), "one": np.array([1])}
    written_once = written(tmp_path / "s.onnx", text, weights)
    other = written(tmp_path / "t.onnx", text.replace("c = MatMul (x, w)", "e = Neg (x)\n c = MatMul (e, w)"), {
        **weights, "w": -weights["w"]
    })  # fmt: skip
    found = localized(written_once, other, tmp_path, 1.0, latent_counts=True)
    assert found.result.verdict.is_right


def test_weights_that_differ_before_a_function_of_the_same_operator(tmp_path: Path) -> None:
    """TFLite computes ReLU within the convolution: what that gives by itself is no tensor that can be looked at."""
    import keras

    image, paths = keras.Input((6, 6, 3), batch_size=1), []
    first, second = (keras.layers.Conv2D(4, 3, activation="relu", name=name) for name in ("one", "two"))
    network = keras.Model(image, keras.layers.GlobalAveragePooling2D()(second(first(image))))
    kernel = drawn(3, 3, 3, 4, seed=1)
    for factor in (1.0, 1.5):  # of a channel that is always cut off
        first.set_weights([kernel * np.float32([factor, 1, 1, 1]), np.float32([-100, 0, 0, 0])])
        paths.append(tflite_of(network, tmp_path / f"{factor}.tflite"))
    sides = [open_network(model, concrete(model, 1)) for model in (model_of("tflite", path) for path in paths)]
    batch = [{name: drawn(1, 6, 6, 3, seed=2) for name in side.input_names.values()} for side in sides]
    work = [tmp_path / "s", tmp_path / "t"]
    first_batch = tuple(Activations(*item) for item in zip(sides, batch, work, strict=True))
    aligned = align(*first_batch, tmp_path)
    ends = aligned.pairs[0], aligned.pairs[-1]
    alone = dataclasses.replace(aligned, pairs=ends)
    judged = [Judged(Cut(ends[1]), 0.0, 0.0, 1e-6, guilty=False)]
    [found] = latent_faults(first_batch, alone, judged, tmp_path)
    assert "scaled by 1.5 in 1 of 4 slices" in found.fault.evidence[0]


def test_rows_of_weights_in_the_order_that_channels_at_the_end_have(tmp_path: Path) -> None:
    """A right conversion: what the layer reads lies otherwise, and so do its rows."""
    kernel, rows = drawn(4, 3, 3, 3, seed=1), drawn(4, 6, 6, 5, seed=2)
    source = written(
        tmp_path / "s.onnx",
        """small (float[2, 3, 6, 6] image) => (float[2, 5] y) {
            c = Conv <pads = [1, 1, 1, 1]> (image, k)\n r = Relu (c)\n f = Flatten (r)\n y = MatMul (f, w)
        }""",
        {"k": kernel, "w": rows.reshape(144, 5)},
    )
    target = written(
        tmp_path / "t.onnx",
        """small (float[2, 3, 6, 6] image) => (float[2, 5] y) {
            c = Conv <pads = [1, 1, 1, 1]> (image, k)\n r = Relu (c)\n l = Transpose <perm = [0, 2, 3, 1]> (r)
            f = Flatten (l)\n y = MatMul (f, w)
        }""",
        {"k": kernel, "w": rows.transpose(1, 2, 0, 3).reshape(144, 5)},
    )
    feeds = {"image": drawn(2, 3, 6, 6, seed=3)}
    sides = opened(source, feeds), opened(target, feeds)
    found = localize_networks(*sides, [(feeds, feeds)], tmp_path / "work", Options(latent_counts=True))
    assert found.result.verdict.is_right, found.result.reason
    assert found.result.latent == ()
