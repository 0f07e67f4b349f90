"""One fault for one cause."""

from __future__ import annotations

import math

from located_faults import located

from conrepair.diagnosis.localization.located import merge
from conrepair.ground.graph.kinds import Kind


def test_one_cause_is_one_fault_and_the_guiltiest_is_first() -> None:
    faults = [(located("a", 0.1), "lost"), (located("b", 0.3), "lost"), (located("c", 0.2), "other")]
    first, second = merge(faults)
    assert (first.source_tensor, first.introduced_error, first.full_run_error) == ("b", 0.3, 0.6)
    assert (first.source_layers, first.evidence) == (("b", "a"), ("of b", "of a"))
    assert second.source_tensor == "c"


def test_other_kinds_are_other_faults() -> None:
    faults = [(located("a", 0.1), "x"), (located("b", 0.3, Kind.GRAPH), "x"), (located("c", math.inf), "y")]
    assert [fault.source_tensor for fault in merge(faults)] == ["c", "b", "a"]
    assert merge([]) == []
