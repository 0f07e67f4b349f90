"""tf2onnx's copies are freed while it goes on."""

from __future__ import annotations

import gc

import pytest

from conrepair.formats.converters.tf2onnx_shared import collecting_often


class _Copy:
    """In cycles, and in use until there's another: the collector meets it when it's old."""

    alive = 0

    def __init__(self) -> None:
        self.itself = self
        self.nodes: list[list[object]] = [[] for _ in range(2000)]
        _Copy.alive += 1

    def __del__(self) -> None:
        _Copy.alive -= 1


def _most_alive() -> int:
    most, copy = 0, _Copy()
    for _ in range(100):
        copy = _Copy()
        most = max(most, _Copy.alive)
    assert copy.nodes
    return most


def test_copies_are_freed_soon() -> None:
    libraries: list[list[object]] = [[] for _ in range(500_000)]
    gc.collect()
    usually = _most_alive()
    with collecting_often():
        most = _most_alive()
    assert libraries
    assert most < 10 < usually


@pytest.mark.parametrize("left_out", [False, True])
def test_the_collector_is_left_as_it_was(left_out: bool) -> None:
    """What somebody else keeps from it is kept from it still."""
    gc.unfreeze()
    if left_out:
        gc.freeze()
    before = gc.get_threshold()
    with collecting_often():
        during = gc.get_threshold()
    after = gc.get_threshold(), bool(gc.get_freeze_count())
    gc.freeze()  # as conftest.py has left it
    assert during != before
    assert after == (before, left_out)
