"""What's measured of large networks is right on small ones."""

from __future__ import annotations

import pytest

from benchmarks.alignment_cost import BLOCKS, measure


@pytest.mark.parametrize("kind", sorted(BLOCKS))
@pytest.mark.parametrize("faults", [0, 2])
def test_what_was_done_is_found(kind: str, faults: int) -> None:
    row = measure(kind, 90, faults)
    assert row["found"], row["blamed"]
    assert row["wrong"] == 0
    assert row["pairs"] == row["tensors"] >= 90
