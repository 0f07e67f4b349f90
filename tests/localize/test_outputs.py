"""Which outputs of two models belong together."""

from __future__ import annotations

from conrepair.localize.outputs import named_alike


def test_outputs_are_paired_by_name_or_by_place() -> None:
    assert named_alike(["a", "b"], ["b", "a"]) == [("a", "a"), ("b", "b")]
    assert named_alike(["a", "b"], ["a", "c"]) == [("a", "a"), ("b", "c")]
    assert named_alike(["a", "b"], ["c"]) == [("a", "c")]
