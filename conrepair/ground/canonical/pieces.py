"""Which pieces of a network compute what the original's do, by what the files say: no input is needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from conrepair.ground.canonical.reading import Reader
from conrepair.ground.canonical.views import Shape, View
from conrepair.ground.graph.layer_graph import LayerGraph


@dataclass(frozen=True)
class Cut:
    """A tensor of both networks.

    Attributes:
        source: Its name.
        target: The same in the target.
        ways: How the one may lie in the other, the likeliest first: the shape that it's seen in, the order of that
            one's axes, and the target's shape.
    """

    source: str
    target: str
    ways: Sequence[tuple[Shape, Sequence[int], Shape]]


@dataclass(frozen=True)
class Proven:
    """What two files say about the pieces between cuts.

    Attributes:
        targets: The cuts, by the target's tensors, that both compute alike from the cuts in front.
        rounding: The largest relative difference of parameters that only rounding tells apart; 0 where all are equal.
        ends: Of the others that were asked for, in order, whether both compute them alike.
        same: Of the target's tensors, a tensor of the source that holds the same numbers in some order.
    """

    targets: frozenset[str]
    rounding: float
    ends: tuple[bool, ...]
    same: Mapping[str, str]


class Pieces:
    """Two networks, whose pieces between cuts are compared; the source is read once."""

    def __init__(self, source: LayerGraph, target: LayerGraph) -> None:
        """Read the source.

        Args:
            source: The network that is right.
            target: The other one.
        """
        self._reader, self._target = Reader(), target
        sizes = enumerate((name, source.tensors[name].shape or ()) for name in source.inputs)
        given = {name: self._reader.input(place, shape) for place, (name, shape) in sizes}
        self._ours = self._reader.read(source, given, {})

    def proven(self, cuts: Sequence[Cut], ends: Sequence[Cut] = ()) -> Proven:
        """Compare what both compute between cuts, in real numbers.

        Both are canonical values, the target with the source's at each cut. What's computed between two cuts is the
        same if it's one value then.

        Args:
            cuts: Tensors that stand for one another, inputs among them; in any order.
            ends: Others, which are compared and no cuts: what reads them is given what the target computes, and they
                lie in the first of their ways.
        """
        made, ours = self._reader.made, self._ours
        assumed = {cut.target: list(_views(ours[cut.source], cut)) for cut in cuts if cut.source in ours}
        inputs = {
            name: assumed[name][0] if assumed.get(name) else made.unknown(self._target.tensors[name].shape or ())
            for name in self._target.inputs
        }
        theirs = self._reader.read(self._target, inputs, assumed)
        wanted = [list(_views(ours[cut.source], cut))[:1] for cut in ends]
        told = tuple(theirs[cut.target] in views for cut, views in zip(ends, wanted, strict=True))
        alike = frozenset(name for name, views in assumed.items() if theirs.get(name) in views)
        first = {view.value: name for name, view in reversed(ours.items())}
        same = {name: first[view.value] for name, view in theirs.items() if view.value in first}
        return Proven(alike, max(made.numbers.rounding.values(), default=0.0), told, same)


def _views(view: View, cut: Cut) -> Iterator[View]:
    """The ways in which a source's tensor may lie in the target."""
    for shape, axes, end in cut.ways:
        turned = view.reshaped(shape).transposed(axes)
        if turned is not None:
            yield turned.reshaped(end)
