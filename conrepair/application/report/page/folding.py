"""Fold a network of hundreds of layers to as many blocks as fit a screen, by the names of its layers."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_FEW, _MOST = 12, 60  # blocks; between them three times the root of the number of layers
_LARGE = 80  # layers of a block
_PART = 40
_DEPTH = 16  # parts of a name

_TOKEN = re.compile(r"[^/._:;]+")


@dataclass(frozen=True)
class Block:
    """Layers that stand behind each other and whose names begin alike.

    Attributes:
        label: How they begin.
        first: Place of the first of them.
        last: Place of the last.
    """

    label: str
    first: int
    last: int


def blocks_of(names: Sequence[str]) -> list[Block]:
    """Blocks of two layers or more, as fine as a person can survey; in order, and none overlaps another.

    They are what follows each other without a gap, so that a graph stays without cycles when they are folded.

    Args:
        names: Of layers in an order of the network; "" for one that belongs to what stands before it.
    """
    if not names:
        return []
    most = min(_MOST, max(_FEW, 3 * math.isqrt(len(names))))
    known: list[str] = []
    for name in names:
        known.append(name or (known[-1] if known else ""))
    tokens = [[found.group() for found in _TOKEN.finditer(name)] for name in known]
    runs: list[tuple[int, int, int]] = []
    for depth in range(1, _DEPTH):
        finer = list(_runs(tokens, depth))
        if len(finer) > most:
            break
        runs = finer
    runs = runs or [(0, len(known) - 1, 0)]
    return [block for run in runs for block in _parts(known, *run) if block.first < block.last]


def _runs(tokens: Sequence[Sequence[str]], depth: int) -> Iterator[tuple[int, int, int]]:
    for _, group in itertools.groupby(range(len(tokens)), lambda place: tokens[place][:depth]):
        places = list(group)
        yield places[0], places[-1], depth


def _parts(names: Sequence[str], first: int, last: int, depth: int) -> Iterator[Block]:
    """A run as a block; a large one as several of one size, called by their first layers."""
    count = last - first + 1
    if count <= _LARGE:
        ends = [found.end() for found in _TOKEN.finditer(names[first])][:depth]
        yield Block(names[first][: ends[-1]] if ends else names[first], first, last)
        return
    size = max(_PART, -(-count // _MOST))
    for start in range(first, last + 1, size):
        yield Block(f"{names[start]} …", start, min(start + size - 1, last))
