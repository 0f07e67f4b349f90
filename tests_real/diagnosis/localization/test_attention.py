"""Faults of attention that a mask, or an offset of the stream, hides from a tensor's norm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from attention_networks import MASKS, decoder, feeds
from crossed import crossed
from localizing import localize_networks
from rewritten_networks import opened

from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.result import Localization
from conrepair.verdicts.evaluate.verdict import Verdict

FAULTS: dict[str, dict[str, Any]] = {
    "queries and keys exchanged": {"swapped": True},
    "scale missing": {"scale": 1.0},
    "scale of another size": {"scale": 0.5},
    "neighbours rotated in place of halves": {"interleaved": True},
}
PLACES = ((0,), (1,), (0, 1))

_OFFSETS = (1e3, 1e4, 1e5)


def localized(folder: Path, common: dict[str, Any], fault: dict[str, Any]) -> Localization:
    batches = [(feeds(seed), feeds(seed)) for seed in range(2)]
    source, target = decoder(folder / "s.onnx", **common), decoder(folder / "t.onnx", **(common | fault))
    sides = opened(source, feeds()), opened(target, feeds())
    return localize_networks(*sides, batches, folder / "work", Options()).result


@pytest.mark.parametrize(
    ("mask", "fault", "places"),
    crossed(
        MASKS,
        FAULTS,
        PLACES,
        quick=[
            (mask, fault, PLACES[(row + column) % len(PLACES)])
            for row, mask in enumerate(MASKS)
            for column, fault in enumerate(FAULTS)
        ],
    ),
)
def test_whatever_the_mask(mask: str, fault: str, places: tuple[int, ...], tmp_path: Path) -> None:
    result = localized(tmp_path, {"mask": mask}, FAULTS[fault] | {"at_fault": places})
    assert result.verdict is Verdict.FAULTY, result.reason
    named = {digit for item in result.faults for digit in item.target_tensor if digit.isdigit()}
    assert named == set(map(str, places)), result.faults
    assert result.coverage is not None
    assert result.coverage.explained == 1.0
    assert result.coverage.nodes == result.coverage.all_nodes


@pytest.mark.parametrize(
    ("offset", "fault"),
    crossed(_OFFSETS, FAULTS, quick=[(_OFFSETS[place % len(_OFFSETS)], fault) for place, fault in enumerate(FAULTS)]),
)
def test_whatever_is_added_to_the_stream(fault: str, offset: float, tmp_path: Path) -> None:
    result = localized(tmp_path, {"offset": offset}, FAULTS[fault] | {"at_fault": (1,)})
    assert result.verdict is Verdict.FAULTY, result.reason
    assert {digit for item in result.faults for digit in item.target_tensor if digit.isdigit()} == {"1"}


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e5])
@pytest.mark.parametrize("mask", MASKS)
def test_what_is_right_stays_right(mask: str, offset: float, tmp_path: Path) -> None:
    result = localized(tmp_path, {"mask": mask, "offset": offset}, {})
    assert result.verdict is Verdict.EQUIVALENT, result.reason


@pytest.mark.parametrize(("one", "two"), [("-1e9", "-inf"), ("-1e4", "-inf"), ("lowest", "-1e4"), ("-1e4", "-1e9")])
def test_masks_that_mean_the_same(one: str, two: str, tmp_path: Path) -> None:
    result = localized(tmp_path, {"mask": one}, {"mask": two})
    assert result.verdict is Verdict.EQUIVALENT, result.reason
