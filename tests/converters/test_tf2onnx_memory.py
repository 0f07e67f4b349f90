"""tf2onnx's copies are freed while it goes on."""

from __future__ import annotations

import gc

from conrepair.converters.tf2onnx_memory import collecting_often


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


def test_the_collector_is_left_as_it_was() -> None:
    before = gc.get_threshold(), gc.get_freeze_count()
    with collecting_often():
        during = gc.get_threshold()
    assert during != before[0]
    assert (gc.get_threshold(), gc.get_freeze_count()) == before
