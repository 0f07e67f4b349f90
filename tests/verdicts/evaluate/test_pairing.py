"""Which outputs are compared, and how they're laid over one another."""

from __future__ import annotations

import numpy as np
import pytest

from conrepair.verdicts.evaluate.pairing import OutputPair, fit, pair_outputs

NUMBERS = np.random.default_rng(0)


def drawn(*shape: int) -> np.ndarray:
    return NUMBERS.normal(size=shape).astype(np.float32)


def test_names_decide_where_both_have_the_same() -> None:
    one, two = drawn(4, 3), drawn(4, 3)
    pairs, left = pair_outputs({"a": one, "b": two}, {"b": one, "a": two})
    assert [(pair.reference, pair.candidate) for pair in pairs] == [("a", "a"), ("b", "b")]
    assert left == []
    pairs, left = pair_outputs({"a": one, "b": drawn(4, 5)}, {"b": one, "a": drawn(4, 5)})
    assert pairs == []
    assert len(left) == 4


def test_one_that_has_its_name_keeps_no_other_from_a_partner() -> None:
    pairs, left = pair_outputs({"a": drawn(4, 3), "b": drawn(4, 3)}, {"z": drawn(4, 3), "a": drawn(4, 3)})
    assert [(pair.reference, pair.candidate) for pair in pairs] == [("a", "a"), ("b", "z")]
    assert left == []


def test_others_are_taken_in_order_where_they_fit() -> None:
    ours = {"a": drawn(4, 3), "b": drawn(4, 5), "c": drawn(4, 7)}
    theirs = {"x": drawn(4, 5), "y": drawn(4, 3), "a": drawn(4, 9), "z": drawn(4, 3)}
    pairs, left = pair_outputs(ours, theirs)
    assert [(pair.reference, pair.candidate) for pair in pairs] == [("a", "y"), ("b", "x")]
    own = "the converted model has an extra output"
    assert [words.partition(" [")[0] for words in left] == [
        "the converted model has no output that fits c", f"{own} a", f"{own} z",
    ]  # fmt: skip
    assert "c [7]" in left[0]
    assert left[2].endswith("extra output z [3]")


@pytest.mark.parametrize(("classes", "others", "background"), [(1000, 1001, 1), (1001, 1000, -1), (1000, 1000, 0)])
def test_a_background_class_is_left_out(classes: int, others: int, background: int) -> None:
    ours, theirs = drawn(4, classes), drawn(4, others)
    ([pair], left) = pair_outputs({"y": ours}, {"y": theirs})
    assert left == []
    assert pair.background == background
    one, two = fit(pair, ours, theirs)
    assert one.shape == two.shape == (4, 1000)
    assert np.array_equal(one, ours[:, -1000:])
    assert np.array_equal(two, theirs[:, -1000:])
    side = {1: "converted", -1: "original"}.get(background)
    assert pair.notes == ([f"the {side} model has a background class in front: compared without it"] if side else [])


def test_other_numbers_of_classes_fit_nothing() -> None:
    assert pair_outputs({"y": drawn(4, 100)}, {"y": drawn(4, 101)})[0] == []


@pytest.mark.parametrize("axes", [(0, 2, 3, 1), (0, 3, 1, 2)])
@pytest.mark.parametrize("shape", [(20, 3, 4, 5), (20, 4, 4, 4)])
def test_a_layout_is_found_by_sizes_or_by_values(axes: tuple[int, ...], shape: tuple[int, ...]) -> None:
    ours = drawn(*shape)
    theirs = np.ascontiguousarray(ours.transpose(axes))
    ([pair], _) = pair_outputs({"y": ours}, {"y": theirs})
    one, two = fit(pair, ours, theirs)
    assert np.array_equal(one, two)
    assert pair.permutation is not None
    assert pair.notes == [f"the converted model's output was transposed by {list(pair.permutation)} to compare it"]
    ([plain], _) = pair_outputs({"y": ours}, {"y": ours})
    assert plain == OutputPair("y", "y")


@pytest.mark.parametrize(("one", "two"), [((4, 6, 1, 1), (4, 6)), ((4, 1, 1), (4, 1)), ((4, 1, 6), (4, 6, 1))])
def test_axes_of_length_one_are_no_difference(one: tuple[int, ...], two: tuple[int, ...]) -> None:
    ours = drawn(*one)
    theirs = ours.reshape(two)
    ([pair], left) = pair_outputs({"y": ours}, {"y": theirs})
    assert left == []
    first, second = fit(pair, ours, theirs)
    assert np.array_equal(first, second)


@pytest.mark.parametrize(
    ("ordered", "names", "wanted"),
    [
        ((True, False), ("alpha", "zeta"), {"scores": "zeta", "boxes": "alpha"}),  # a signature's names say nothing
        ((True, True), ("alpha", "zeta"), {"scores": "alpha", "boxes": "zeta"}),  # an order is what callers rely on
        ((True, False), ("output_0", "output_1"), {"scores": "output_0", "boxes": "output_1"}),
        ((False, False), ("boxes", "scores"), {"scores": "scores", "boxes": "boxes"}),
    ],
)
@pytest.mark.parametrize("wrong", ["", "scores", "boxes"])
def test_outputs_without_an_order_are_what_they_hold(
    ordered: tuple[bool, bool], names: tuple[str, str], wanted: dict[str, str], wrong: str
) -> None:
    """One of them is at fault, and the other one's values still tell."""
    generator = np.random.default_rng(0)
    ours = {name: generator.normal(size=(8, 4)) for name in ("scores", "boxes")}
    held = dict(zip(names, (ours["boxes"] + 1e-7, ours["scores"] + 1e-7), strict=True))
    by_values = {"scores": names[1], "boxes": names[0]}
    if wrong:
        held[by_values[wrong]] = held[by_values[wrong]] + 1.0
    pairs, unpaired = pair_outputs(ours, held, ordered=ordered)
    assert {pair.reference: pair.candidate for pair in pairs} == wanted
    assert not unpaired
