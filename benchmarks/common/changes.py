"""What differs between two files of one format: a model with a fault and without, or with its repair."""

from __future__ import annotations

import difflib
import hashlib
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from conrepair.formats.editing.editor import Editor
from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.models.model import Model
from conrepair.ground.graph.layer_graph import Array, LayerGraph, Node

__all__ = ["Changes", "changes"]

_ROUNDING = 1e-5  # times the largest of a tensor: what two ways to fold a normalization may differ by


@dataclass(frozen=True)
class Changes:
    """What one file has otherwise than another.

    Attributes:
        layers: Names, in the second file, of what is new or other, and of the neighbours of what is gone.
        operators: How many are new, gone, of another sort or with other attributes, or read something else.
        parameters: How many tensors of numbers are other, beside those of new or lost operators.
        elements: Numbers in these that are other by more than rounding, and all of new and lost ones.
    """

    layers: frozenset[str]
    operators: int
    parameters: int
    elements: int

    @property
    def counts(self) -> dict[str, int]:
        """All but the names, as plain values."""
        return {"operators": self.operators, "parameters": self.parameters, "elements": self.elements}


def changes(before: Model, after: Model) -> Changes:
    """Compare two files.

    Nodes are partners that have the same name and content, then those with the same content in the same order, then
    those with the same name, then those of the same sort in the same order, then those that read the same.

    Args:
        before: One file.
        after: The other one, of the same format.

    Raises:
        UsageError: if their format isn't read.
    """
    one, two = open_editor(before), open_editor(after)
    return _Comparison(one.graph, two).changes()


class _Comparison:
    def __init__(self, before: LayerGraph, editor: Editor) -> None:
        self._before, self._after, self._editor = before, editor.graph, editor
        self._partner: dict[str, Node] = {}  # by the name of the node before
        self._content = {id(node): _content(graph, node) for graph in (before, editor.graph) for node in graph.nodes}
        self._match()

    def _match(self) -> None:
        self._pair(lambda node: (node.name, node.inputs, self._content[id(node)]))
        gone, new = self._left()
        contents = [[self._content[id(node)] for node in nodes] for nodes in (gone, new)]
        for block in difflib.SequenceMatcher(None, *contents, autojunk=False).get_matching_blocks():
            pairs = zip(gone[block.a :][: block.size], new[block.b :][: block.size], strict=True)
            self._partner |= {node.name: other for node, other in pairs}
        self._pair(lambda node: self._content[id(node)])
        self._pair(lambda node: (node.name, node.op))
        self._pair(lambda node: (node.op, tuple((role, item.shape) for role, item in node.parameters.items())))
        self._pair(lambda node: node.name)
        self._pair(self._readings)

    def _readings(self, node: Node) -> Hashable:
        """Where a node stands: what it reads, by the names behind."""
        if self._before.producers.get(node.outputs[0]) is not node:
            return tuple(item and item.name for item in map(self._after.producers.get, node.inputs))
        makers = [
            item and self._partner.get(item.name, item) for item in map(self._before.producers.get, node.inputs)
        ]
        return tuple(item and item.name for item in makers)

    def _left(self) -> tuple[list[Node], list[Node]]:
        taken = {node.name for node in self._partner.values()}
        gone = [node for node in self._before.nodes if node.name not in self._partner]
        return gone, [node for node in self._after.nodes if node.name not in taken]

    def _pair(self, key: Callable[[Node], Hashable]) -> None:
        """Make partners of those that have none yet and the same key, in order."""
        gone, new = self._left()
        waiting: dict[Hashable, list[Node]] = defaultdict(list)
        for node in reversed(new):
            waiting[key(node)].append(node)
        self._partner |= {node.name: waiting[key(node)].pop() for node in gone if waiting.get(key(node))}

    def changes(self) -> Changes:
        gone, new = self._left()
        layers, operators, parameters, elements = set(self._around(gone)), len(gone) + len(new), 0, 0
        elements += sum(int(np.prod(item.shape)) for node in (*gone, *new) for item in node.parameters.values())
        for node in new:
            layers |= self._editor.names(node)
        for node in self._before.nodes:
            if (other := self._partner.get(node.name)) is None:
                continue
            counts = [count for count in _differing(node, other) if count]
            altered = self._altered(node, other)
            parameters, elements, operators = parameters + len(counts), elements + sum(counts), operators + altered
            if counts or altered:
                layers |= self._editor.names(other)
        ends = self._before.outputs, self._after.outputs
        if len(ends[0]) != len(ends[1]) or any(map(self._reads_another, *ends)):
            operators += 1
            layers |= {name for end in ends[1] for name in self._editor.tensor_names(end)}
        return Changes(frozenset(layers), operators, parameters, elements)

    def _altered(self, node: Node, other: Node) -> bool:
        if _sort(self._before, node) != _sort(self._after, other):
            return True
        return len(node.inputs) == len(other.inputs) and any(map(self._reads_another, node.inputs, other.inputs))

    def _reads_another(self, one: str, two: str) -> bool:
        """Whether two tensors come from nodes that aren't partners; of what is new or gone that's said already."""
        before, after = self._before.producers.get(one), self._after.producers.get(two)
        if before is None and after is None:
            ends = self._before.inputs, self._after.inputs
            return one in ends[0] and two in ends[1] and ends[0].index(one) != ends[1].index(two)
        partners = {node.name for node in self._partner.values()}
        if (before is not None and before.name not in self._partner) or (after and after.name not in partners):
            return False
        return before is None or after is None or self._partner[before.name].name != after.name

    def _around(self, gone: Sequence[Node]) -> Iterator[str]:
        for node in gone:
            makers = [self._before.producers.get(name) for name in node.inputs]
            readers = [reader for name in node.outputs for reader in self._before.consumers[name]]
            for other in (*makers, *readers):
                if other is not None and other.name in self._partner:
                    yield from self._editor.names(self._partner[other.name])


def _sort(graph: LayerGraph, node: Node) -> tuple[Hashable, ...]:
    """All of a node but its parameters' numbers and what it reads."""
    attributes = tuple(sorted((name, str(value)) for name, value in node.attributes.items()))
    stored = tuple(str(graph.tensors[name].quantization) for name in node.outputs)
    return node.op, attributes, stored


def _content(graph: LayerGraph, node: Node) -> tuple[Hashable, ...]:
    held = tuple(sorted((role, _hash(item.numpy())) for role, item in node.parameters.items()))
    return *_sort(graph, node), held


def _hash(array: Array) -> str:
    about = f"{array.dtype}{array.shape}".encode()
    return hashlib.sha256(about + np.ascontiguousarray(array).tobytes()).hexdigest()


def _differing(one: Node, two: Node) -> Iterator[int]:
    """How many numbers of each parameter differ."""
    for role in {**one.parameters, **two.parameters}:
        held = [node.parameters[role].numpy() for node in (one, two) if role in node.parameters]
        if len(held) == 2 and held[0].shape == held[1].shape:
            yield _elements(*held)
        else:
            yield max(array.size for array in held)


def _elements(one: Array, two: Array) -> int:
    if one.dtype.kind not in "fiu" or two.dtype.kind not in "fiu":
        return int(np.count_nonzero(one != two))
    numbers = [array.astype(np.float64) for array in (one, two)]
    limit = _ROUNDING * max((float(np.abs(array).max()) for array in numbers if array.size), default=0.0)
    return int(np.count_nonzero(~(np.abs(numbers[0] - numbers[1]) <= limit)))
