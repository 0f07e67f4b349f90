"""The outputs of both networks, batch by batch, as one run each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from localizing import localize_networks
from random_graphs import SHAPE, Computed, drawn_feeds, graph_of

from conrepair.diagnosis.localization.judge.agreement import _joined, _precision, _run
from conrepair.diagnosis.localization.options import Options
from conrepair.ground.data.tensor_spec import Quantization
from conrepair.ground.graph.layer_graph import Node, Parameter, Tensor
from conrepair.verdicts.evaluate.verdict import Verdict


def parameter(size: int, dtype: str, bits: int | None = None) -> Parameter:
    return Parameter(dtype, (size, 2), dtype, lambda: np.zeros((size, 2)), bits)


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ([], (False, "float32")),
        ([parameter(8, "float16"), parameter(7, "float32")], (False, "float16")),
        ([parameter(8, "bfloat16")], (False, "bfloat16")),
        ([parameter(8, "float64")], (False, "float32")),
        ([parameter(8, "int8", 8), parameter(7, "float16")], (True, "float32")),
        ([parameter(8, "int8", 8), parameter(9, "float16")], (False, "float16")),
        ([parameter(8, "int16", 16)], (True, "float32")),
        ([parameter(8, "int32", 32)], (False, "float32")),  # a bias in the steps of a product
        ([parameter(5, "int8", 8), parameter(5, "uint8", 8), parameter(9, "float32")], (True, "float32")),
    ],
)
def test_the_precision_is_that_of_most_weights(parameters: list[Parameter], expected: tuple[bool, str]) -> None:
    graph = graph_of(["x"], [], ["x"])
    nodes = [Node(f"{n}", "", "", "", (), (), {}, {"weight": item}) for n, item in enumerate(parameters)]
    graph = type(graph)(graph.inputs, graph.outputs, graph.tensors, tuple(nodes))
    assert _precision(graph) == expected


@pytest.mark.parametrize(
    ("shapes", "rows", "expected"),
    [
        ([(4, 3), (4, 3)], 4, (8, 3)),
        ([(4, 3)], 4, (4, 3)),
        ([(3,), (3,)], 4, (2, 3)),  # one result of each batch
        ([(), ()], 4, (2,)),
    ],
)
def test_batches_become_one_array(shapes: list[tuple[int, ...]], rows: int, expected: tuple[int, ...]) -> None:
    arrays = [np.full(shape, place, np.float32) for place, shape in enumerate(shapes)]
    joined = _joined(arrays, rows)
    assert joined.shape == expected
    assert np.array_equal(joined.reshape(-1), np.concatenate([array.reshape(-1) for array in arrays]))


@pytest.mark.parametrize("batches", [0, 1, 3])
def test_a_run_has_the_samples_of_its_batches(batches: int) -> None:
    network = Computed(graph_of(["x"], [("n", "Sin", ["x"], ["y"])], ["y"]))
    held = {"output 0": [np.ones((4, 5), np.float32)] * batches} if batches else {}
    run = _run("given", network, held, 4)
    assert (run.count, [array.shape for array in run.arrays.values()]) == (
        4 * batches,
        [(4 * batches, 5)] * len(held),
    )


@pytest.mark.parametrize(
    ("op", "quantization", "rounds"),
    [
        ("Sin", None, False),
        ("QuantizeLinear", None, True),
        ("Sin", Quantization(0.1, 0), True),
        ("QuantizeLinear", Quantization(0.1, 0), True),
    ],
)
def test_a_network_rounds_where_a_tensor_or_an_operator_says_so(
    op: str, quantization: Quantization | None, rounds: bool
) -> None:
    graph = graph_of(["x"], [("n", op, ["x"], ["h"]), ("m", "Sin", ["h"], ["y"])], ["y"])
    graph = replace(graph, tensors={**graph.tensors, "h": Tensor("h", SHAPE, "int8", quantization)})
    assert _run("given", Computed(graph), {}, 4).rounds is rounds


@pytest.mark.parametrize(
    ("off", "other", "verdict"),
    [
        (1e-4, 1.5e-5, Verdict.NOISE),
        (1e-4, 3e-6, Verdict.FAULTY),
        (5e-4, 3e-4, Verdict.FAULTY),  # what rounding does to the outputs doesn't confirm that
    ],
)
def test_another_arithmetic_says_what_rounding_does_to_outputs(
    off: float, other: float, verdict: Verdict, tmp_path: Path
) -> None:
    nodes = [("a", "Sin", ["x"], ["a"]), ("b", "Sin", ["a"], ["b"])]
    source, target, second = (
        Computed(graph_of(["x"], nodes, ["b"]), {"b": lambda x, part=part: x * np.float32(1 + part)})
        for part in (0.0, off, other)
    )
    batches = [(drawn_feeds(source.graph, seed),) * 2 for seed in (0, 1)]
    found = localize_networks(source, target, batches, tmp_path, Options(), second_opinion=lambda: second).result
    assert found.verdict is verdict, found.reason
    assert ("measured" in found.reason) is (verdict is Verdict.NOISE)


def test_sizes_that_vary_are_rows_of_batches() -> None:
    network = Computed(graph_of(["x"], [("n", "Sin", ["x"], ["y"])], ["y"]))
    batches = [np.zeros((2, 3), np.float32), np.ones((5, 3), np.float32)]
    run = _run("source", network, {"output 0": batches}, 4, vary=True)
    assert run.arrays["output 0"].shape == (7, 3)
    assert run.lengths["output 0"].tolist() == [2, 0, 0, 0, 5, 0, 0, 0]
