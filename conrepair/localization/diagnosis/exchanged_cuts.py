"""Two tensors that a piece takes for one another: proven by giving it each in the other's place."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from conrepair.graph.kinds import Kind
from conrepair.graph.layer_graph import Array, Node
from conrepair.localization.diagnosis.attention import ROLES, roles_of
from conrepair.localization.diagnosis.finding import Finding
from conrepair.localization.diagnosis.region import Region, error_in, left_of
from conrepair.localization.diagnosis.wiring import wiring_findings
from conrepair.localization.layout import Layout
from conrepair.metrics.running_error import relative_l2

__all__ = ["Exchange", "comes_out_right", "exchange_findings", "fixing_exchange"]

_MOST = 15  # pairs of tensors that are tried: all of six


@dataclass(frozen=True)
class Exchange:
    """Two tensors of the target that are read in each other's place.

    Attributes:
        one: The first.
        two: The other one.
        readers: The nodes of the piece that read either.
    """

    one: str
    two: str
    readers: tuple[Node, ...]


def fixing_exchange(region: Region) -> Exchange | None:
    """Find the two tensors by running the piece with each in the other's place.

    However the piece is written, with the right exchange it gives the source's result.

    Args:
        region: Guilty.
    """
    if region.expected.shape != region.computed.shape:
        return None
    error = relative_l2(region.expected, region.computed)
    for one, two in itertools.islice(_alike(region), _MOST):
        if comes_out_right(region, (one, two), region.target.end, (region.layout, region.expected, error)):
            return Exchange(one, two, tuple(node for node in region.target.nodes if {one, two} & {*node.inputs}))
    return None


def comes_out_right(
    region: Region,
    names: tuple[str, str],
    end: str,
    right: tuple[Layout, Array, float],
    uncut: Collection[str] = (),
) -> bool:
    """Whether a tensor comes out right where two cuts are each fed what the other one holds, in its own layout.

    Args:
        region: Whose cuts they are.
        names: Theirs.
        end: What is computed.
        right: How the source's lies in it, that one, and the relative L2 error as it is.
        uncut: See `Isolation.trial`.
    """
    other = {names[0]: names[1], names[1]: names[0]}

    def fed(name: str) -> Array:
        if name not in other:
            return region.fed(name)
        given = other[name]
        return region.layouts[name].to_target(region.layouts[given].to_source(region.fed(given)))

    layout, expected, error = right
    return error_in(layout, expected, region.trial(end, fed, uncut)) <= left_of(error)


def exchange_findings(region: Region) -> Iterator[Finding]:
    """The exchange that fixes a piece, in words."""
    exchange = fixing_exchange(region)
    if exchange is None:
        return
    roles = roles_of(region.target)
    named = sorted((roles[name] for name in (exchange.one, exchange.two) if name in roles), key=ROLES.index)
    in_roles = len({*named}) > 1
    if not in_roles and any(item.cause.startswith("order ") for item in wiring_findings(region)):
        return  # the operator that reads both says it in its own words
    what = " and ".join(named) if in_roles else "two tensors"
    readers = [
        _names([node for node in exchange.readers if name in node.inputs]) for name in (exchange.one, exchange.two)
    ]
    if readers[0] == readers[1]:
        where = f"{readers[0]} reads `{exchange.one}` and `{exchange.two}` in each other's place"
    else:
        where = f"{readers[0]} reads `{exchange.one}` in place of `{exchange.two}`, which {readers[1]} reads"
    words = f"{what} are exchanged: {where}; the other way round, the result is the source's"
    at_input = all(name in region.target.graph.inputs for name in (exchange.one, exchange.two))
    layers = tuple(node.layer for node in exchange.readers)
    yield Finding(
        Kind.INPUT if at_input else Kind.GRAPH,
        words,
        region.source.layers,
        layers,
        f"exchanged {exchange.one} {exchange.two}",
        rule=f"{what} are exchanged",
    )


def _alike(region: Region) -> Iterator[tuple[str, str]]:
    """Pairs of the tensors in front of a piece that can stand for one another."""
    tensors = region.target.graph.tensors
    begins = [name for name in region.target.begins if name in region.layouts and tensors[name].is_real]
    for one, two in itertools.combinations(begins, 2):
        if tensors[one].dtype == tensors[two].dtype and region.layouts[one].source == region.layouts[two].source:
            yield one, two


def _names(nodes: Sequence[Node]) -> str:
    return " and ".join(dict.fromkeys(f"`{node.layer}`" for node in nodes))
