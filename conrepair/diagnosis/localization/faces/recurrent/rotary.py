"""Rotary positions (Su et al. 2021) of the other form: halves of the features turned together, or neighbours.

The one form is the other with the features in another order: so it's proven by feeding the target's rotation the
features in that order, and putting its result's back.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from conrepair.diagnosis.localization.faces.attributes import axis_map
from conrepair.diagnosis.localization.faces.region import Finding, Region, left_of
from conrepair.diagnosis.localization.faces.steps.steps import MOVES
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Array, LayerGraph, Node
from conrepair.ground.metrics.running_error import relative_l2

_TURNS = frozenset({"Mul", "Add", "Sub", "Neg"})
_TAKES = frozenset({"Slice", "Split", "Gather", "Concat", "Stack", "Cast", *MOVES})
_FAR = 40  # operators on the way from the end of a piece to a rotation's begin
_LONG = 24  # operators of one rotation
_PORTIONS = (1, 2, 4)  # of the features: all are turned, a half, or a quarter


@dataclass(frozen=True)
class OtherForm:
    """A rotary position embedding of the target that turns other pairs of features than the source's.

    Attributes:
        begin: The tensor that's turned.
        end: The turned one.
        nodes: What computes it, in the graph's order.
        sources: The same of the source.
        order: Of the features, the last axis in the source, in which the target's rotation is the source's.
        axes: Of the features, in both tensors of the target; None where they're no axis of their own.
        in_halves: Whether it's the target that turns halves.
    """

    begin: str
    end: str
    nodes: tuple[Node, ...]
    sources: tuple[Node, ...]
    order: tuple[int, ...]
    axes: tuple[int, int] | None
    in_halves: bool

    @property
    def layer(self) -> str:
        """That gives the turned tensor."""
        return self.nodes[-1].layer


def rotary_findings(region: Region) -> Iterator[Finding]:
    """The findings of rotary position embeddings in a segment, or that it's a part of."""
    for form in other_forms(region):
        halves, pairs = "halves of the features", "interleaved pairs"
        turned = (halves, pairs) if form.in_halves else (pairs, halves)
        rule = "rotary position embeddings turn {} in the converted model, {} in the original".format(*turned)
        words = f"{rule} (up to `{form.layer}`); with the features in the other order, the result is the original's"
        ours = tuple(node.layer for node in reversed(form.sources))
        theirs = (form.layer, *(node.layer for node in form.nodes))
        yield Finding(Kind.STRUCTURE, words, ours, theirs, f"rotary {form.end}", rule=rule)


def other_forms(region: Region) -> list[OtherForm]:
    """Rotary position embeddings of the other form in a segment, or that it's a part of.

    Args:
        region: Guilty.
    """
    found: dict[str, OtherForm] = {}
    inside = {node.name for node in region.target.nodes}
    for begin in _before(region):
        layout, partner = region.layouts[begin], region.partners[begin]
        if len(layout.source) < 2 or layout.source[-1] % 2:
            continue
        theirs = _rotation(region.target.graph, begin)
        if theirs is None or theirs[-1].outputs[0] in found or inside.isdisjoint(node.name for node in theirs):
            continue
        ours = _rotation(region.source.graph, partner)
        form = None if ours is None else _proven(region, begin, theirs, ours)
        if form is not None:
            found[form.end] = form
    return list(found.values())


def _before(region: Region) -> Iterator[str]:
    """Boundaries in front of a segment, or not far before it, the nearest first."""
    graph, end = region.target.graph, region.target.end
    near = itertools.islice(graph.nearest([end]), _FAR)
    for name in dict.fromkeys(name for node in near for name in node.inputs):
        if name in region.layouts and name != end and graph.tensors[name].is_real:
            yield name


def _rotation(graph: LayerGraph, begin: str) -> tuple[Node, ...] | None:
    """What turns a tensor: its features taken apart, multiplied, added, and put together to one of its sizes.

    Nothing else reads that tensor or what's between, so that there's one end.
    """
    sizes, waiting, nodes = _sizes(graph, begin), {begin: _reads(graph, begin)}, list[Node]()
    ahead = {node.name: node for node in graph.consumers.get(begin, ())}
    while ahead and len(nodes) < _LONG:
        node = min(ahead.values(), key=lambda item: graph.order[item.outputs[0]])
        del ahead[node.name]
        if node.op not in _TURNS | _TAKES:
            return None
        nodes.append(node)
        for name in dict.fromkeys(node.inputs):
            if name in waiting:
                waiting[name] -= 1
        waiting |= {name: _reads(graph, name) for name in node.outputs}
        ahead |= {item.name: item for name in node.outputs for item in graph.consumers.get(name, ())}
        left = [name for name, count in waiting.items() if count]
        operators = {item.op for item in nodes}
        whole = left == [node.outputs[0]] and _sizes(graph, left[0]) == sizes
        if whole and "Mul" in operators and operators & {"Add", "Sub"} and not operators <= _TURNS:
            return tuple(nodes)
    return None


def _reads(graph: LayerGraph, tensor: str) -> int:
    """How often a tensor is read; an output is, by who runs the network."""
    return len(graph.consumers.get(tensor, ())) + (tensor in graph.outputs)


def _sizes(graph: LayerGraph, tensor: str) -> tuple[int, ...]:
    """Of a tensor, but for axes of length 1, which come and go."""
    return tuple(size for size in graph.tensors[tensor].shape or () if size != 1)


def _axes(region: Region, begin: str, end: str) -> tuple[int, int] | None:
    """Which axis the features are, the source's last one, where the target turns them, and where they're turned."""
    layout = region.layouts[begin]
    first = axis_map(layout).get(len(layout.source) - 1)
    if first is None:
        return None
    shapes = [region.target.graph.tensors[name].shape or () for name in (begin, end)]
    place = sum(size != 1 for size in shapes[0][:first])
    return first, [axis for axis, size in enumerate(shapes[1]) if size != 1][place]


def _proven(region: Region, begin: str, theirs: Sequence[Node], ours: Sequence[Node]) -> OtherForm | None:
    """The order of features that makes the one rotation the other."""
    end, layout = theirs[-1].outputs[0], region.layouts[begin]
    expected = region.value(ours[-1].outputs[0])
    given = layout.to_source(region.fed(begin))
    if expected is None or expected.shape != given.shape:
        return None
    behind = {name for node in theirs for name in node.outputs}

    def turned(array: Array) -> Array | None:
        feed = layout.to_target(array).astype(region.fed(begin).dtype)
        result = region.trial(end, lambda name: feed if name == begin else region.fed(name), behind)
        return None if result is None or result.size != array.size else layout.to_source(result)

    as_it_is = turned(given)
    if as_it_is is None:
        return None
    most = left_of(relative_l2(expected, as_it_is))
    for order in _orders(given.shape[-1]):
        result = turned(given[..., order])
        if result is not None and relative_l2(expected, result[..., np.argsort(order)]) <= most:
            other = given.copy()
            other[..., 0] += 1
            moved = turned(other)
            near = moved is not None and bool((moved[..., 1] != as_it_is[..., 1]).any())
            return OtherForm(
                begin,
                end,
                tuple(theirs),
                tuple(ours),
                tuple(map(int, order)),
                _axes(region, begin, end),
                in_halves=not near,
            )
    return None


def _orders(features: int) -> Iterator[Array]:
    """Evens in front of odds, and back; of all features, or of the first ones."""
    for portion in _PORTIONS:
        turned, odd = divmod(features, portion)
        if odd or turned % 2 or turned == 2:
            continue
        rest = np.arange(turned, features)
        halves = np.r_[np.arange(0, turned, 2), np.arange(1, turned, 2)]
        yield np.r_[halves, rest]
        if turned > 4:  # of four, it's the way back, too
            yield np.r_[np.argsort(halves), rest]
