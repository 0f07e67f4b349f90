"""Parameters of one operator that are spread over others, or joined there."""

from __future__ import annotations

import numpy as np
import pytest

from conrepair.diagnosis.localization.align.layout import layouts
from conrepair.diagnosis.localization.faces.numbers.carried import carried_differences
from conrepair.diagnosis.localization.faces.region import Finding, Region, Side
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Array, LayerGraph, Node, Parameter

WIDTH = 6


def drawn(*shape: int, seed: int) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def side(parameters: dict[str, dict[str, Array]]) -> Side:
    nodes = tuple(
        Node(
            name,
            name,
            "MatMul",
            "MatMul",
            ("x",),
            (name,),
            parameters={
                role: Parameter(f"{name}.{role}", array.shape, "float32", lambda array=array: array)
                for role, array in held.items()
            },
        )
        for name, held in parameters.items()
    )
    return Side(LayerGraph(("x",), ("y",), {}, nodes), nodes, ("x",), "y")


def found(source: dict[str, dict[str, Array]], target: dict[str, dict[str, Array]]) -> list[Finding]:
    array = np.zeros((1, WIDTH), np.float32)
    layout = layouts(array.shape, array.shape)[0]
    return list(
        carried_differences(Region(side(source), side(target), layout, {}, {}, array, array, lambda _: array))
    )


QUERY, KEY, VALUE, OUTPUT = (drawn(WIDTH, WIDTH, seed=seed) for seed in range(4))
JOINED = {"all": {"weight": np.concatenate([QUERY, KEY, VALUE], axis=1)}, "last": {"weight": OUTPUT}}


def attention(**changes: Array) -> dict[str, dict[str, Array]]:
    return {"attention": {"query": QUERY, "key": KEY, "value": VALUE, "output": OUTPUT, **changes}}


def test_parts_of_one_matrix_are_paired_off() -> None:
    assert found(JOINED, attention()) == []
    assert found(attention(), JOINED) == []


@pytest.mark.parametrize(
    ("change", "words", "kind"),
    [
        (lambda array: 1.25 * array, "scaled by 1.25", Kind.PARAMETERS),
        (lambda array: array.astype(np.float16).astype(np.float32), "float16", Kind.PRECISION),
    ],
)
def test_what_is_left_over_is_compared(change: object, words: str, kind: Kind) -> None:
    [finding] = found(JOINED, attention(output=change(OUTPUT)))  # type: ignore[operator]
    assert finding.kind is kind
    assert words in finding.words
    assert (finding.source_layers, finding.target_layers) == (("last",), ("attention",))


@pytest.mark.parametrize("turned", [False, True])
def test_all_parts_are_compared_with_what_they_are_nearest_to(turned: bool) -> None:
    """Every projection is rounded: nothing is left that's the same."""
    halves = {name: array.astype(np.float16).astype(np.float32) for name, array in attention()["attention"].items()}
    source = {layer: {"weight": held["weight"].T if turned else held["weight"]} for layer, held in JOINED.items()}
    findings = found(source, {"attention": halves})
    assert {finding.rule for finding in findings} == {"weights are rounded to float16"}
    parts = {finding.words.split()[1]: finding.source_layers for finding in findings}
    assert parts == {"query": ("all",), "key": ("all",), "value": ("all",), "output": ("last",)}


def test_what_is_as_near_to_two_is_not_said_to_be_of_either() -> None:
    same = {"one": {"weight": QUERY}, "two": {"weight": QUERY * 1.0001}}
    assert found(same, {"attention": {"query": QUERY.astype(np.float16).astype(np.float32), "key": KEY}}) == []
