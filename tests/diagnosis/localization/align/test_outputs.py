"""Which outputs of two models belong together."""

from __future__ import annotations

import pytest
from random_graphs import SHAPE, Computed, graph_of

from conrepair.diagnosis.localization.align.layout import layouts
from conrepair.diagnosis.localization.align.matching import Pair
from conrepair.diagnosis.localization.align.outputs import named_alike, output_pairs, partners
from conrepair.ground.graph.layer_graph import Tensor


def test_outputs_are_paired_by_name_or_by_place() -> None:
    assert named_alike(["a", "b"], ["b", "a"]) == [("a", "a"), ("b", "b")]
    assert named_alike(["a", "b"], ["a", "c"]) == [("a", "a"), ("b", "c")]
    assert named_alike(["a", "b"], ["c"]) == [("a", "c")]


def network(*names: str, whole: tuple[str, ...] = ()) -> Computed:
    """Outputs of these names and tensors, some of them of whole numbers."""
    graph = graph_of(["x"], [(name, "Tanh", ["x"], [name]) for name in names], names)
    for name in whole:
        graph.tensors[name] = Tensor(name, SHAPE, "int64")  # type: ignore[index]
    result = Computed(graph)
    result.output_names = {name.upper(): name for name in names}
    return result


@pytest.mark.parametrize(
    ("source", "target", "paired", "expected"),
    [
        (network("a", "b"), network("b", "a"), {}, [("A", "A"), ("B", "B")]),
        (network("a", "b"), network("c", "d"), {"c": "b"}, [("A", "C"), ("B", "D")]),
        (network("a", "b"), network("c"), {"c": "b"}, [("B", "C")]),
        (network("a", "b"), network("b"), {"b": "a"}, [("A", "B")]),  # what's known comes before a name
        (network("a", "b"), network("b"), {}, [("B", "B")]),
        (network("a"), network("b", "a"), {"b": "a", "x": "x"}, [("A", "B")]),
        (network("a", "b"), network("c"), {}, []),
        (network("a", "n", whole=("n",)), network("m", whole=("m",)), {}, [("N", "M")]),
        (network("n", "a", whole=("n",)), network("m"), {}, []),
        (network("n", "k", whole=("n", "k")), network("m", whole=("m",)), {}, [("N", "M")]),
    ],
)
def test_outputs_of_unequal_numbers_are_paired_by_what_is_known(
    source: Computed, target: Computed, paired: dict[str, str], expected: list[tuple[str, str]]
) -> None:
    assert partners(source, target, paired) == expected


def test_outputs_that_no_pair_stands_for() -> None:
    source, target = network("a", "b"), network("c", "d")
    shapes = {"a": (2, 3), "b": (2, 4)}, {"c": (2, 3), "d": (2, 4)}
    layout = layouts((2, 3), (2, 3))[0]
    known = [Pair("a", "c", layout, 0.5, "")]
    (found,) = output_pairs(source, target, known, shapes)
    assert (found.source, found.target, found.layout, found.confidence) == ("b", "d", layouts((2, 4), (2, 4))[0], 1.0)
    assert [pair.target for pair in output_pairs(source, target, [], shapes)] == ["c", "d"]
    other = shapes[0], {"c": (2, 3), "d": (7,)}
    assert [pair.target for pair in output_pairs(source, target, [], other)] == ["c"], "no layout"
    cubes = {"a": (4, 4, 4), "b": (2,)}, {"c": (4, 4, 4), "d": (2,)}
    turned = layouts((4, 4, 4), (4, 4, 4))[1]
    (first, _) = output_pairs(source, target, [Pair("other", "c", turned, 0.5, "")], cubes)
    assert first.layout == turned, "as what stands for it lies"


def test_whole_numbers_are_paired_by_their_axes() -> None:
    source, target = network("n", "k", whole=("n", "k")), network("p", "q", "r", whole=("p", "q", "r"))
    shapes = {"n": (2, 3), "k": (2,), "p": (5,), "q": None, "r": (7, 7)}
    for side in (source, target):
        for name in side.output_names.values():
            side.graph.tensors[name] = Tensor(name, shapes[name], "int64")  # type: ignore[index]
    assert partners(source, target, {}) == [("N", "R"), ("K", "P")]
