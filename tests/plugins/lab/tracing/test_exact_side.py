"""Exact values as a side: when its bound says something, and what stands for it where it doesn't."""

from __future__ import annotations

import numpy as np
import onnx

from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair_lab.tracing.exact_side import ExactSide

DEPTH, WIDTH = 30, 16


def side(depth: int) -> ExactSide:
    rng = np.random.default_rng(0)
    body = "".join(
        f"m{place} = MatMul (h{place}, w{place}) h{place + 1} = Tanh (m{place}) " for place in range(depth)
    )
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> '
        f"g (float[1, {WIDTH}] h0) => (float[1, {WIDTH}] h{depth}) {{ {body} }}"
    )
    for place in range(depth):
        weight = rng.normal(0, 0.4, (WIDTH, WIDTH)).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weight, f"w{place}"))
    shape = (1, WIDTH)
    specs = [TensorSpec(name, shape, "float32") for name in ("h0", f"h{depth}")]
    return ExactSide(model, specs[:1], specs[1:])


def test_a_bound_that_says_something_stays() -> None:
    exact = side(1)
    feeds = {"h0": np.ones((1, WIDTH), np.float32)}
    truth = exact.run(feeds)
    bound = dict(exact.bound)
    assert exact.tells
    assert not exact.estimated(feeds, {"h1": 1.5 * truth["h1"]})["h1"].any()
    np.testing.assert_array_equal(exact.bound["h1"], bound["h1"])


def test_an_estimate_stands_for_one_that_says_nothing_where_an_answer_is_far_off() -> None:
    exact = side(DEPTH)
    feeds = {"h0": np.ones((1, WIDTH), np.float32)}
    name = f"h{DEPTH}"
    truth = exact.run(feeds)[name]
    bound = exact.bound[name]
    assert not exact.tells
    given = truth.copy()
    given[0, 2] *= 1.1
    assert np.flatnonzero(exact.estimated(feeds, {name: truth}, {name: given})[name]).tolist() == [2]
    assert exact.bound[name][0, 2] < 0.05 * np.abs(truth[0, 2])
    np.testing.assert_array_equal(np.delete(exact.bound[name], 2), np.delete(bound, 2))


def test_an_estimate_is_asked_for_from_some_units_in_the_last_place_on() -> None:
    exact = side(10)
    feeds = {"h0": np.ones((1, WIDTH), np.float32)}
    truth = exact.run(feeds)["h10"]
    unit = float(np.finfo(np.float32).eps)
    given = truth.astype(np.float32)
    given[0, 1] *= 1 + 2 * unit
    given[0, 2] *= 1 + 20 * unit
    assert not exact.estimated(feeds, {"h10": given})["h10"].any()
    assert np.flatnonzero(exact.estimated(feeds, {"h10": given}, ulps=4.0)["h10"]).tolist() == [2]
