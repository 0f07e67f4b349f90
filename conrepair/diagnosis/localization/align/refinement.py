"""Pair what two graphs compute by structure alone: colour refinement of both at once (Weisfeiler and Leman, 1968).

Both graphs are reduced to what is computed: what only moves or stores values otherwise, and constant factors, offsets
and bounds behind a layer with weights, go with what they follow. Each such value gets a colour of its operator; round
by round a colour is made of those of what a value reads and of what reads it. A colour that one value has on each
side makes these two a pair, which keeps a colour that nobody else has. Much context comes first: a change of one
layer changes the colours around it, and what it doesn't change is known by then.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from conrepair.diagnosis.localization.align.neighbourhood import Neighbourhood
from conrepair.diagnosis.localization.align.normalizations import normalizations
from conrepair.diagnosis.localization.align.weights import RECURRENT, Fingerprints, weight_of
from conrepair.diagnosis.localization.numbers import pairing
from conrepair.ground.graph.layer_graph import Node
from conrepair.ground.graph.operators import COMMUTATIVE, OPERATORS

_ROUNDS = (8, 4, 2, 1, 0)
_MOVES = {"Identity", "Cast", "Reshape", "Transpose", "QuantizeLinear", "DequantizeLinear"}
_BOUNDS = {"Relu", "Clip"}
_AFFINE = {"Add", "Sub", "Mul", "Div"}
_VALUES = "its values"

Places = tuple[int, int]
"""Of a tensor of the source, and one of the target."""

Fits = Callable[[int, int], bool]
"""Whether two compared tensors, by their places, may be a pair."""


@dataclass
class _Value:
    """What is computed once, however it's moved and stored.

    Attributes:
        op: Operator; that of a normalization that's written in pieces.
        node: That computes it; None for an input.
        output: Position among the node's outputs.
        weights: Sizes of the axes of its weights that are longer than 1, in order.
        steps: Places of the compared tensors that hold it: of the layer, then behind each that completes it.
        reads: Values.
        readers: Values that read it, and at which position.
        result: Whether it's a result of the network.
        bounded: Whether one of the steps is a bound.
    """

    op: str
    node: Node | None
    output: int
    weights: tuple[int, ...]
    reads: list[int]
    steps: list[list[int]] = field(default_factory=lambda: [[]])
    readers: list[tuple[int, int]] = field(default_factory=list)
    result: bool = False
    bounded: bool = False

    @property
    def is_ordered(self) -> bool:
        """Whether it matters which of its operands is the first one."""
        return self.op not in COMMUTATIVE


Label = Callable[[_Value], Hashable]


class _Reduced:
    """A graph's values, in its order.

    Attributes:
        values: Theirs.
        of: The value that holds each compared tensor, by its place.
    """

    def __init__(self, side: Neighbourhood) -> None:
        self.values: list[_Value] = []
        self.of = np.full(len(side.names), -1)
        self._side, self._held = side, dict[str, int]()
        for name in dict.fromkeys(side.graph.inputs):
            self._add(name, None, "input")
        pieces = normalizations(side.graph)
        waiting: dict[str, list[str]] = {}  # what a normalization in pieces reads, by its result
        for node in side.graph.nodes:
            read = [name for name in node.inputs if name]
            if not node.outputs:
                continue  # it only sets a state
            whole = pieces.get(node.outputs[0])
            if whole is not None:
                waiting.setdefault(whole, []).extend(name for name in read if pieces.get(name) != whole)
                if whole == node.outputs[0]:
                    self._add(whole, node, "LayerNormalization", dict.fromkeys(waiting[whole]))
            elif read and node.op in _MOVES and read[0] in self._held:
                self._hold(node.outputs[0], self._held[read[0]], bound=self._has_no_negative(node.outputs[0]))
            elif (layer := self._layer_before(node)) is not None:
                if node.op == "Mul" and "operand" not in node.parameters:
                    self.values[self._held[layer]].steps.clear()  # sums of integers, which stand for nothing yet
                self._hold(node.outputs[0], self._held[layer], step=True, bound=node.op in _BOUNDS)
            else:
                for place, name in enumerate(node.outputs):
                    self._add(name, node, node.op, read, place)
        for number, value in enumerate(self.values):
            for position, operand in enumerate(value.reads):
                self.values[operand].readers.append((number, position if value.is_ordered else 0))

    def _add(self, name: str, node: Node | None, op: str, read: Iterable[str] = (), output: int = 0) -> None:
        weight = None if node is None else weight_of(node)
        shape = () if weight is None else tuple(sorted(size for size in weight.shape if size > 1))
        reads = [self._held[item] for item in read if item in self._held]
        self.values.append(_Value(op, node, output, shape, reads))
        self._hold(name, len(self.values) - 1)

    def _hold(self, name: str, number: int, *, step: bool = False, bound: bool = False) -> None:
        self._held[name], value = number, self.values[number]
        value.result |= name in self._side.graph.outputs
        if step or (bound and not value.bounded):
            value.steps.append([])
        value.bounded |= bound
        place = self._side.place.get(name)
        if place is not None:
            value.steps[-1].append(place)
            self.of[place] = number

    def _layer_before(self, node: Node) -> str | None:
        """What a node completes and alone reads: by a bound; where that has weights, by a factor or an offset, too.

        Other files have these in the layer itself, quantized ones a bound in what its integers hold.
        """
        read, names = [name for name in node.inputs if name], list[str]()
        if (
            node.op in _BOUNDS
            or node.op == "BatchNormalization"
            or (node.op in _AFFINE and "operand" in node.parameters)
        ):
            names = read if len(read) == 1 else []
        elif node.op == "Mul" and len(read) == 2:  # integers of a product, and the scale found at run time
            names = [name for name, scale in (read, read[::-1]) if self._is_number(scale)]
        for name in names:
            before = self.values[self._held[name]].node if name in self._held else None
            completed = before is not None and (node.op in _BOUNDS or weight_of(before) is not None)
            if completed and self._side.graph.read_once(name):
                return name
        return None

    def computed_from_all(self, nodes: Collection[str]) -> Iterator[int]:
        """The values that are computed from each of some nodes, in the graph's order; none of no nodes."""
        reached: list[set[str]] = []
        for place, value in enumerate(self.values):
            own = {value.node.name}.intersection(nodes) if value.node is not None else set[str]()
            reached.append(own.union(*(reached[read] for read in value.reads)))
            if nodes and len(reached[place]) == len(nodes):
                yield place

    def _has_no_negative(self, name: str) -> bool:
        """Whether a tensor is stored in integers that stand for no negative numbers, as behind a ReLU."""
        stored = self._side.graph.tensors[name].stored
        return stored is not None and stored[0] >= 0

    def _is_number(self, name: str) -> bool:
        shape = self._side.graph.tensors[name].shape
        return shape is not None and len(shape) <= 1


class _Pairing:
    """The values of two graphs, and which of them are pairs."""

    def __init__(self, sides: tuple[Neighbourhood, Neighbourhood], equal: Collection[Places], fits: Fits) -> None:
        self._sides = _Reduced(sides[0]), _Reduced(sides[1])
        self._equal, self._fits = equal, fits
        self._prints = Fingerprints(), Fingerprints()
        self.partners: tuple[dict[int, int], dict[int, int]] = {}, {}
        self.told_by: dict[int, str] = {}
        pairs = {(int(self._sides[0].of[row]), int(self._sides[1].of[column])) for row, column in equal}
        pairs = {pair for pair in pairs if min(pair) >= 0}  # what lies within a normalization is no value
        ours, theirs = (Counter(pair[number] for pair in pairs) for number in (0, 1))
        for pair in pairs:
            if ours[pair[0]] == theirs[pair[1]] == 1:
                self._pair(*pair, _VALUES)

    def tensors(self, ours: int, theirs: int) -> list[Places]:
        """The tensors of two values that stand for one another.

        Those of equal values, whatever lies between; of the others those of the complete layer, in their order, and
        those before it's complete if there are as many steps.
        """
        one, two = (side.values[place].steps for side, place in zip(self._sides, (ours, theirs), strict=True))
        found: dict[int, int] = {}
        every = itertools.product(itertools.chain(*one), itertools.chain(*two))
        # Of copies a result of the one network is that of the other.
        for row, column in sorted(filter(self._equal.__contains__, every), key=lambda pair: not self._fits(*pair)):
            if row not in found and column not in found.values():
                found[row] = column
        steps = zip(one, two, strict=True) if len(one) == len(two) else [(one[-1], two[-1])]
        for left, right in steps:
            for row in (row for row in left if row not in found):
                free = (column for column in right if column not in found.values() and self._fits(row, column))
                found.update((row, column) for column in itertools.islice(free, 1))
        return list(found.items())

    def _pair(self, ours: int, theirs: int, told_by: str) -> None:
        self.partners[0][ours], self.partners[1][theirs] = theirs, ours
        self.told_by[ours] = told_by

    def _may(self, ours: int, theirs: int) -> bool:
        """Whether two values may be a pair: tensors fit, where both have any."""
        holding = all(any(side.values[place].steps) for side, place in zip(self._sides, (ours, theirs), strict=True))
        return not holding or bool(self.tensors(ours, theirs))

    def refine(self) -> None:
        """Pair what can be, by the operator first, then by its family, then by what's around it alone."""
        # Where one side has more layers of a sort, which of them is missing is no matter of surroundings.
        other_counts = [item for item in self._classes(_of_operator, 0) if len(item[0]) != len(item[1])]
        self._by_weights(other_counts, alone=True)
        while self._has_free() and (any(self._by(label, told_by) for label, told_by in _LABELS) or self._joins()):
            pass

    def _has_free(self) -> bool:
        """Whether both sides have values without a partner; right conversions soon have none."""
        return all(len(known) < len(side.values) for side, known in zip(self._sides, self.partners, strict=True))

    def _by(self, label: Label, told_by: str) -> bool:
        """Whether any pair was found."""
        before = len(self.partners[0])
        for rounds in _ROUNDS if label is _of_operator else _ROUNDS[:-1]:
            classes = self._classes(label, rounds)
            for ours, theirs in classes:
                if len(ours) == len(theirs) == 1:
                    self._paired_if_free(ours[0], theirs[0], told_by)
            if len(self.partners[0]) == before:
                self._by_weights(classes)
        if len(self.partners[0]) == before and label is not _of_surroundings:
            for ours, theirs in self._classes(label, _ROUNDS[0]):  # nothing tells them from others like them
                for one, two in zip(ours, theirs, strict=True) if len(ours) == len(theirs) else ():
                    self._paired_if_free(one, two, "its place among others like it")
        self._along_edges()
        return len(self.partners[0]) > before

    def _classes(self, label: Label, rounds: int) -> list[tuple[list[int], list[int]]]:
        """Values of both sides that have one colour after some rounds, and no partner."""
        colours = [
            [
                ("pair", *((place, known[place]) if number == 0 else (known[place], place)))
                if place in known
                else label(value)
                for place, value in enumerate(side.values)
            ]
            for number, (side, known) in enumerate(zip(self._sides, self.partners, strict=True))
        ]
        coded = self._coded(colours)
        for _ in range(rounds):
            coded = self._coded(
                [
                    [
                        coded[number][place]
                        if place in self.partners[number]
                        else _around(value, coded[number], coded[number][place])
                        for place, value in enumerate(side.values)
                    ]
                    for number, side in enumerate(self._sides)
                ]
            )
        found: dict[int, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for number, side in enumerate(coded):
            for place, colour in enumerate(side):
                if place not in self.partners[number]:
                    found[colour][number].append(place)
        return [item for item in found.values() if all(item)]

    @staticmethod
    def _coded(colours: Sequence[Sequence[Hashable]]) -> list[list[int]]:
        numbers: dict[Hashable, int] = {}
        return [[numbers.setdefault(colour, len(numbers)) for colour in side] for side in colours]

    def _by_weights(self, classes: Collection[tuple[list[int], list[int]]], *, alone: bool = False) -> None:
        """Pair values of one colour that have weights, each with the one whose numbers are most like its own.

        Args:
            classes: Values of both sides by colour.
            alone: Whether no others may be as like them.
        """
        for ours, theirs in classes:
            nodes = [
                [node for place in places if (node := side.values[place].node) is not None and weight_of(node)]
                for side, places in zip(self._sides, (ours, theirs), strict=True)
            ]
            if len(nodes[0]) == len(ours) and len(nodes[1]) == len(theirs):
                alike = self._prints[0].alike(nodes[0], nodes[1], self._prints[1])
                same = alike >= pairing.CORRELATED
                best = alike.argmax(axis=1)
                for row, column in enumerate(best.tolist()):
                    several = alone and max(same[row].sum(), same[:, column].sum()) > 1
                    if same[row, column] and alike[:, column].argmax() == row and not several:
                        self._paired_if_free(ours[row], theirs[column], "its weights")

    def _joins(self) -> bool:
        """Pair recurrent layers with what loops of the same numbers, one for each direction, compute together."""
        before = len(self.partners[0])
        for number in (0, 1):
            side, other = self._sides[number], self._sides[1 - number]
            loops = {item.node.name: item.node for item in other.values if item.node and item.op in RECURRENT}
            for place, value in enumerate(side.values):
                if value.op not in RECURRENT or value.node is None or place in self.partners[number]:
                    continue
                same = [
                    name
                    for name, node in loops.items()
                    if node.op != value.op and self._prints[number].share(value.node, node, self._prints[1 - number])
                ]
                for joined in other.computed_from_all(same):
                    pair = (place, joined) if number == 0 else (joined, place)
                    if place not in self.partners[number] and self.tensors(*pair):  # a loop counts, too
                        self._paired_if_free(*pair, "the loops with its weights")
        return len(self.partners[0]) > before

    def _paired_if_free(self, ours: int, theirs: int, told_by: str) -> None:
        if ours not in self.partners[0] and theirs not in self.partners[1] and self._may(ours, theirs):
            self._pair(ours, theirs, told_by)

    def _along_edges(self) -> None:
        """Pair what two partners read at one position, whatever computes it."""
        for ours, theirs in list(self.partners[0].items()):
            one, two = self._sides[0].values[ours], self._sides[1].values[theirs]
            if len(one.reads) != len(two.reads) or one.op != two.op:
                continue
            left = [
                (mine, other)
                for mine, other in zip(one.reads, two.reads, strict=True)
                if mine not in self.partners[0] and other not in self.partners[1]
            ]
            if one.is_ordered or len(left) == 1:
                for mine, other in left:
                    self._paired_if_free(mine, other, "what reads it")


def _around(value: _Value, colours: Sequence[int], own: int) -> Hashable:
    reads = [colours[place] for place in value.reads]
    readers = sorted((colours[place], position) for place, position in value.readers)
    return own, tuple(reads if value.is_ordered else sorted(reads)), tuple(readers)


def _of_operator(value: _Value) -> Hashable:
    return value.op, value.output, value.weights, value.result


def _of_family(value: _Value) -> Hashable:
    family = OPERATORS[value.op].family if value.op in OPERATORS else ""
    return family or value.op, value.output, math.prod(value.weights), value.result


def _of_surroundings(_: _Value) -> Hashable:
    return None


_LABELS: tuple[tuple[Label, str], ...] = (
    (_of_operator, "its operator, and what's around it"),
    (_of_family, "the family of its operator, and what's around it"),
    (_of_surroundings, "what's around it"),
)


def refined(
    source: Neighbourhood, target: Neighbourhood, equal: Collection[Places], fits: Fits
) -> Iterator[tuple[Places, str]]:
    """Pair compared tensors by what surrounds them.

    Args:
        source: Tensors of the network that is right.
        target: Of the other.
        equal: Those whose values are the same.
        fits: Whether two others may be a pair.

    Yields:
        Places of the pairs, and what tells each, in words.
    """
    pairing = _Pairing((source, target), equal, fits)
    pairing.refine()
    for ours, theirs in pairing.partners[0].items():
        yield from ((pair, pairing.told_by[ours]) for pair in pairing.tensors(ours, theirs))
