"""What a repaired case is worth, on results made by hand."""

from __future__ import annotations

from typing import Any

import pytest
from benchmark_rows import left, result, side, untouched

from benchmarks.repair.scoring import score


def outcome(**more: Any) -> str:
    return score(result(**more), faulty=True).outcome


def test_a_whole_repair() -> None:
    found = score(result(), faulty=True)
    assert (found.outcome, found.minimal, found.written, found.kept, found.honest) == (
        "repaired",
        True,
        True,
        None,
        True,
    )


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (side(0.2, 1, 0, runs=True), "partly"),  # an answer still differs
        (side(2e-4, 0, 0, runs=True), "partly"),  # no answer does, but the numbers
        (side(2e-7, 0, 1, runs=True), "partly"),  # a layer is still at fault
        (side(0.6, 0, 0, runs=True), "worse"),  # further off than before
        (side(0.2, 4, 0, runs=True), "worse"),  # more answers differ
        (side(0.2, 1, 2, runs=True), "worse"),  # more layers are at fault
        (side(None, 0, 0, runs=True), "worse"),  # infinite
        (side(None, 0, 0, runs=False), "worse"),  # can't be run any more
    ],
)
def test_what_is_measured_decides(after: dict[str, Any], expected: str) -> None:
    found = score(result(after=after), faulty=True)
    assert found.outcome == expected
    assert not found.honest  # the result claims that it's repaired


def test_an_infinite_error_before_can_only_become_better() -> None:
    assert outcome(before=side(None, 3, 2), after=side(0.4, 3, 1, runs=True)) == "partly"


def test_eight_bits_may_differ_as_much_as_before_the_fault() -> None:
    after = side(0.015, 1, 0, runs=True)
    assert outcome(base=side(0.01, 1, 0), after=after) == "repaired"
    assert outcome(base=side(0.005, 1, 0), after=after) == "partly"
    assert outcome(base=side(0.01, 0, 0), after=after) == "partly"


def test_no_edits_leave_it() -> None:
    assert score(left(), faulty=True).outcome == "left"
    assert score(left(), faulty=True).honest
    assert not score(left(mended=True), faulty=True).honest  # an injected fault that isn't seen


def test_a_refused_target_is_left() -> None:
    refused = {name: value for name, value in left().items() if name not in {"mended", "edits", "tried", "in_time"}}
    assert score(refused | {"refused": "can't be edited"}, faulty=True).outcome == "left"


def test_a_target_that_was_written_to_is_worse() -> None:
    assert outcome(unchanged={"source": True, "target": False}) == "worse"
    assert score(left(unchanged={"source": False, "target": True}), faulty=True).outcome == "worse"


@pytest.mark.parametrize(
    ("places", "minimal"),
    [([["conv"]], True), ([["conv", "relu"], ["conv"]], True), ([["conv"], ["relu"]], False), ([["relu"]], False)],
)
def test_every_edit_must_be_about_an_injected_layer(places: list[list[str]], minimal: bool) -> None:
    found = score(result(places=places, edits=["one"]), faulty=True)
    assert (found.placed, found.minimal) == (minimal, minimal)


@pytest.mark.parametrize(
    ("repaired", "edits", "minimal"),
    [
        ({"operators": 1, "parameters": 1, "elements": 94}, 1, True),
        ({"operators": 12, "parameters": 0, "elements": 0}, 1, False),  # a graft where one number was wrong
        ({"operators": 0, "parameters": 1, "elements": 9000}, 1, False),  # a whole weight where one filter was
        ({"operators": 0, "parameters": 1, "elements": 90}, 2, False),
    ],
)
def test_a_repair_is_as_small_as_what_was_injected(repaired: dict[str, int], edits: int, minimal: bool) -> None:
    found = score(result(repaired_changes=repaired, edits=["edit"] * edits), faulty=True)
    assert (found.placed, found.minimal) == (True, minimal)


def test_nobody_knows_how_small_a_repair_of_unknown_layers_is() -> None:
    assert score(result(at_fault=[]), faulty=True).minimal is None
    assert score(result(injected_changes=None), faulty=True).minimal is None


def test_another_format_is_not_written_back() -> None:
    file = result()["file"] | {"own_format": False}
    found = score(result(file=file), faulty=True)
    assert (found.written, found.minimal) == (False, None)


@pytest.mark.parametrize(
    ("size", "quantized", "kept"),
    [(1049, 5, True), (950, 5, True), (1051, 5, False), (1000, 4, False), (1000, None, False)],
)
def test_eight_bits_are_kept(size: int, quantized: int | None, kept: bool) -> None:
    counts = {"quantized_meant": 5, "quantized_before": 5, "quantized": quantized}
    file = result()["file"] | {"bytes": size} | counts
    assert score(result(file=file), faulty=True).kept is kept


@pytest.mark.parametrize(
    ("size", "quantized", "kept"), [(1000, 5, True), (2000, 4, True), (1500, 3, False), (2101, 5, False)]
)
def test_a_fault_in_the_storage_may_be_taken_back(size: int, quantized: int, kept: bool) -> None:
    counts = {"quantized_meant": 5, "quantized_before": 4, "quantized": quantized}
    file = result()["file"] | {"bytes": size, "bytes_meant": 1000, "bytes_before": 2000} | counts
    assert score(result(file=file), faulty=True).kept is kept


def test_a_correct_conversion() -> None:
    assert score(untouched(), faulty=False).outcome == "untouched"
    for more in (
        {"edits": ["something"]},
        {"out": ["patch.json"]},
        {"unchanged": {"source": True, "target": False}},
        {"command": {"exit": 1, "out": False, "words": ""}},
        {"command": {"exit": 0, "out": True, "words": ""}},
    ):
        assert score(untouched(**more), faulty=False).outcome == "touched", more
    assert score(untouched(command={"exit": 0, "out": False, "words": ""}), faulty=False).outcome == "untouched"
