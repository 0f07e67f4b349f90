"""Blocks of layers by their names."""

from __future__ import annotations

import pytest

from conrepair.application.report.page.folding import Block, blocks_of

_INNER = ["conv1", "bn1", "relu", "conv2", "bn2"]


def test_blocks_are_what_names_say_as_finely_as_fits() -> None:
    names = ["stem/Conv", *(f"/model/layer.{block}/{name}" for block in range(20) for name in _INNER), "head"]
    blocks = blocks_of(names)
    assert [block.label for block in blocks] == [f"/model/layer.{block}" for block in range(20)]
    assert [(block.first, block.last) for block in blocks[:2]] == [(1, 5), (6, 10)]


def test_layers_without_a_name_belong_to_what_stands_before_them() -> None:
    names = [name for block in range(8) for name in (f"a.{block}.x", "", f"a.{block}.y")]
    assert blocks_of([*names, ""])[-2:] == [Block("a.6", 18, 20), Block("a.7", 21, 24)]
    assert blocks_of(names[:6]) == [Block("a.0.x", 0, 1), Block("a.1.x", 3, 4)], "few layers need no other blocks"


@pytest.mark.parametrize("count", [1, 100, 1000, 5000])
@pytest.mark.parametrize("name", ["Conv_{}", "x{}", "layers/conv{}", "", "a.b.c"])
def test_names_that_say_nothing_give_blocks_of_one_size(name: str, count: int) -> None:
    blocks = blocks_of([name.format(place) for place in range(count)])
    assert len(blocks) <= 130
    places = [place for block in blocks for place in range(block.first, block.last + 1)]
    assert places == sorted(set(places))
    assert count - len(places) + len(blocks) <= 130, "what is shown when all are folded"
    assert all(block.last - block.first < max(80, count / 50) for block in blocks)


def test_a_network_of_no_layers_has_no_blocks() -> None:
    assert blocks_of([]) == []
