"""What became of a conversion that failed, as values that a file can hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Stop:
    """What a converter stops at.

    Attributes:
        converter: Its name.
        error: What it says, in one line.
        operators: Of the smallest piece of the graph at which it stops in the same way, in order.
        nodes: The same nodes as the file calls them.
        of: How many nodes the graph has.
        tries: Pieces that were converted to find it.
        seconds: That this took.
        exact: Whether none of its nodes can be left out; False where time or tries were up.
        note: Why there's no piece, where there is none.
    """

    converter: str
    error: str
    operators: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    of: int = 0
    tries: int = 0
    seconds: float = 0.0
    exact: bool = False
    note: str = ""

    def __post_init__(self) -> None:
        """Check what a document may have otherwise.

        Raises:
            ValueError: if operators and nodes aren't as many.
        """
        if len(self.operators) != len(self.nodes):
            raise ValueError(f"{len(self.operators)} operators of {len(self.nodes)} nodes")


@dataclass(frozen=True)
class TriedRemedy:
    """A remedy that was tried.

    Attributes:
        words: What is done otherwise.
        conversion: The route, as rows are named by.
        outcome: In words.
        mends: Whether it's as good as a conversion should be.
    """

    words: str
    conversion: str
    outcome: str
    mends: bool = False


@dataclass(frozen=True, kw_only=True)
class Mending:
    """What was tried for a conversion that failed.

    Attributes:
        stops: What stopped it; more than one where another operator stops what got past the first.
        tried: In order; the last one helps where one does.
        via: The converters that do it, to be pinned in a configuration; empty where nothing helped.
        options: Theirs, by converter, as far as they aren't the defaults.
        verdict: Of the result against the source; "" where it wasn't compared.
        seconds: All in all.
        in_time: Whether nothing was left to try.
        hindered: Why other ways can't be tried here, whatever they are: the disk is full.
    """

    stops: tuple[Stop, ...] = ()
    tried: tuple[TriedRemedy, ...] = ()
    via: tuple[str, ...] = ()
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    verdict: str = ""
    seconds: float = 0.0
    in_time: bool = True
    hindered: str = ""

    @property
    def mended(self) -> TriedRemedy | None:
        """The remedy that helped."""
        return next((item for item in self.tried if item.mends), None)
