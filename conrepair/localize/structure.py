"""How alike the tensors of two networks are by what surrounds them: operators, parameters, neighbours, names."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from conrepair.graph.layer_graph import Array, LayerGraph, Node, Parameter
from conrepair.localize.normalizations import normalizations
from conrepair.localize.similarity import Matrix

__all__ = ["Neighbourhood", "Structure", "weight_of"]

_WEIGHTS = {"Conv": 0, "ConvTranspose": 1, "MatMul": -1, "LSTM": 1, "GRU": 1, "RNN": 1, "Gather": -1}
_ROLES = ("weight", "W", "table")
_SAMPLED = 2048
_SEED = 20261120
_NEIGHBOURS = 6
_FAR = 12  # steps to the next node with weights

_NORMALIZATION = "LayerNormalization"
_FAMILIES = (
    {
        "Relu",
        "Clip",
        "LeakyRelu",
        "PRelu",
        "Elu",
        "Selu",
        "Celu",
        "Gelu",
        "Swish",
        "HardSwish",
        "Mish",
        "ThresholdedRelu",
    },
    {"Sigmoid", "HardSigmoid", "Tanh", "Softplus", "Softsign", "Erf", "Exp"},
    {"MaxPool", "AveragePool", "ReduceMean", "ReduceMax"},
    {"BatchNormalization", "InstanceNormalization", "GroupNormalization", "LayerNormalization", "RMSNormalization"},
    {"Add", "Sub"},
    {"Mul", "Div"},
    {"Reshape", "Transpose", "Identity", "Cast"},
    {"Softmax", "LogSoftmax"},
    {"Conv", "ConvTranspose"},
)


class Neighbourhood:
    """The tensors of a graph that are compared, and what lies around each."""

    def __init__(self, graph: LayerGraph, names: Sequence[str], shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Look around.

        Args:
            graph: The network.
            names: Tensors that are compared, in the graph's order.
            shapes: As they were when the network ran.
        """
        self.graph = graph
        self.names = names
        self._shapes = shapes
        self._place = {name: place for place, name in enumerate(names)}

    @cached_property
    def before(self) -> npt.NDArray[np.int64]:
        """The nearest compared tensors that each is computed from, [tensors, neighbours]; -1 where there's none."""
        return self._nearest(lambda name: self.graph.producers[name].inputs if name in self.graph.producers else ())

    @cached_property
    def behind(self) -> npt.NDArray[np.int64]:
        """The nearest compared tensors that are computed from each."""
        return self._nearest(
            lambda name: tuple(out for node in self.graph.consumers.get(name, ()) for out in node.outputs)
        )

    @cached_property
    def reaches(self) -> npt.NDArray[np.bool_]:
        """Whether one tensor (down) is needed to compute another (across)."""
        bits: dict[str, int] = {}
        for name in self.graph.order:
            node = self.graph.producers.get(name)
            found = 0
            for source in () if node is None else node.inputs:
                if source:
                    found |= bits[source] | (1 << self._place[source] if source in self._place else 0)
            bits[name] = found
        count = len(self.names)
        width = (count + 7) // 8
        rows = [np.frombuffer(bits[name].to_bytes(width, "little"), np.uint8) for name in self.names]
        return np.unpackbits(np.stack(rows), axis=1, bitorder="little")[:, :count].astype(bool).T

    def shape(self, name: str) -> tuple[int, ...]:
        """Of a compared tensor."""
        return self._shapes[name]

    def around(self, name: str) -> list[str]:
        """Compared tensors computed from one, the nearest first, then those that it's computed from."""
        place = self._place[name]
        found = [self.names[index] for side in (self.behind, self.before) for index in side[place] if index >= 0]
        return list(dict.fromkeys(found))

    def anchors(self, *, forward: bool) -> list[Node | None]:
        """The next node with weights before (or behind) each tensor."""
        return [self._anchor(name, forward=forward) for name in self.names]

    def _nearest(self, step: Callable[[str], Iterable[str]]) -> npt.NDArray[np.int64]:
        result = np.full((len(self.names), _NEIGHBOURS), -1, np.int64)
        for place, name in enumerate(self.names):
            found: list[int] = []
            queue, seen = deque(filter(None, step(name))), set[str]()
            while queue and len(found) < _NEIGHBOURS:
                item = queue.popleft()
                if item in seen:
                    continue
                seen.add(item)
                if item in self._place:
                    found.append(self._place[item])
                else:
                    queue.extend(filter(None, step(item)))
            result[place, : len(found)] = found
        return result

    def _anchor(self, name: str, *, forward: bool) -> Node | None:
        queue, seen = deque([(name, 0)]), {name}
        while queue:
            item, far = queue.popleft()
            nodes = self.graph.consumers.get(item, ()) if forward else (self.graph.producers.get(item),)
            for node in nodes:
                if node is None:
                    continue
                if weight_of(node) is not None:
                    return node
                for following in node.outputs if forward else node.inputs:
                    if following and following not in seen and far < _FAR:
                        seen.add(following)
                        queue.append((following, far + 1))
        return None


class Structure:
    """Static evidence for every pair of tensors, 0 to 1."""

    def __init__(self, source: Neighbourhood, target: Neighbourhood) -> None:
        """Compare two networks.

        Args:
            source: Down.
            target: Across.
        """
        self._source, self._target = source, target

    @cached_property
    def surface(self) -> Matrix:
        """Operators, places and names: cheap, and weak."""
        return 0.6 * self._operators() + 0.25 * self._places() + 0.15 * self._names()

    @cached_property
    def weights(self) -> Matrix:
        """Whether the next weights before and behind are the same, up to a factor per output channel."""
        sides = []
        for forward in (False, True):
            ours, theirs = self._source.anchors(forward=forward), self._target.anchors(forward=forward)
            sides.append(_same_anchors(ours, theirs, self._alike))
        return np.asarray((sides[0] + sides[1]) / 2)

    @cached_property
    def _alike(self) -> Mapping[tuple[str, str], float]:
        """Of every two nodes with weights of one shape."""
        found: dict[tuple[str, str], float] = {}
        ours, theirs = _fingerprints(self._source.graph), _fingerprints(self._target.graph)
        for key in ours.keys() & theirs.keys():
            names, values = ours[key]
            others, numbers = theirs[key]
            products = _unit(values) @ _unit(numbers).T
            found.update(
                ((name, other), float(products[i, j]))
                for i, name in enumerate(names)
                for j, other in enumerate(others)
                if products[i, j] > 0.5
            )
        return found

    def neighbours(self, score: Matrix) -> Matrix:
        """How well what lies before and behind each pair goes together.

        Args:
            score: Of every pair, 0 to 1.
        """
        before = _agreement(score, self._source.before, self._target.before)
        behind = _agreement(score, self._source.behind, self._target.behind)
        return np.asarray((before + behind) / 2)

    def _operators(self) -> Matrix:
        ours, theirs = (_roles(side.graph, side.names) for side in (self._source, self._target))
        same, near, complete = (
            np.equal.outer(np.array([role[part] for role in ours]), np.array([role[part] for role in theirs]))
            for part in range(3)
        )
        return np.where(same & complete, 1.0, np.where(near, 0.5, 0.0))

    def _places(self) -> Matrix:
        one, two = (np.linspace(0, 1, len(side.names)) for side in (self._source, self._target))
        return np.asarray(1 - np.abs(one[:, None] - two[None, :]))

    def _names(self) -> Matrix:
        ours, theirs = (
            [_words(name, side.graph.producers.get(name)) for name in side.names]
            for side in (self._source, self._target)
        )
        result = np.zeros((len(ours), len(theirs)))
        columns: dict[str, list[int]] = {}
        for place, words in enumerate(theirs):
            for word in words:
                columns.setdefault(word, []).append(place)
        for place, words in enumerate(ours):
            for word in words:
                result[place, columns.get(word, [])] = 1.0
        return result


def weight_of(node: Node) -> Parameter | None:
    """A node's weights, None when it has none."""
    if node.op not in _WEIGHTS:
        return None
    return next((node.parameters[role] for role in _ROLES if role in node.parameters), None)


def _fingerprints(graph: LayerGraph) -> dict[tuple[str, tuple[int, ...]], tuple[list[str], Matrix]]:
    """Some weights of each node, by operator and shape."""
    found: dict[tuple[str, tuple[int, ...]], tuple[list[str], list[Array]]] = {}
    for node in graph.nodes:
        parameter = weight_of(node)
        if parameter is None:
            continue
        names, rows = found.setdefault((node.op, parameter.shape), ([], []))
        names.append(node.name)
        rows.append(_fingerprint(parameter.numpy(), _WEIGHTS[node.op]))
    return {key: (names, np.stack(rows)) for key, (names, rows) in found.items()}


def _fingerprint(weight: Array, axis: int) -> Array:
    """Sampled values, each divided by the largest of its output channel: blind to folded normalizations."""
    rows = np.moveaxis(weight, axis, 0).reshape(weight.shape[axis], -1).astype(np.float64)
    if rows.shape[1] == 1:
        rows = rows.reshape(1, -1)
    peak = np.take_along_axis(rows, np.abs(rows).argmax(1)[:, None], 1)
    flat = (rows / np.where(peak == 0, 1, peak)).reshape(-1)
    if flat.size > _SAMPLED:
        flat = flat[np.random.default_rng(_SEED).choice(flat.size, _SAMPLED, replace=False)]
    return np.asarray(flat - flat.mean())


def _unit(rows: Matrix) -> Matrix:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms == 0, 1, norms)


def _same_anchors(
    ours: Sequence[Node | None], theirs: Sequence[Node | None], alike: Mapping[tuple[str, str], float]
) -> Matrix:
    result = np.zeros((len(ours), len(theirs)))
    columns: dict[str, list[int]] = {}
    for place, node in enumerate(theirs):
        if node is not None:
            columns.setdefault(node.name, []).append(place)
    partners: dict[str, list[tuple[str, float]]] = {}
    for (one, two), value in alike.items():
        partners.setdefault(one, []).append((two, value))
    for place, node in enumerate(ours):
        for other, value in partners.get(node.name, ()) if node is not None else ():
            result[place, columns.get(other, [])] = value
    return result


def _agreement(score: Matrix, ours: npt.NDArray[np.int64], theirs: npt.NDArray[np.int64]) -> Matrix:
    """For each pair the mean, over the source's neighbours, of the best score with a neighbour of the target's."""
    padded = np.pad(score, ((0, 1), (0, 1)))  # row and column -1: nobody
    total, count = np.zeros(score.shape), np.zeros((score.shape[0], 1))
    for one in range(ours.shape[1]):
        present = ours[:, one] >= 0
        if not present.any():
            break
        best = np.zeros(score.shape)
        for two in range(theirs.shape[1]):
            if not (theirs[:, two] >= 0).any():
                break
            best = np.maximum(best, padded[ours[:, one]][:, theirs[:, two]])
        total += best * present[:, None]
        count += present[:, None]
    nobody = (ours[:, 0] < 0)[:, None] & (theirs[:, 0] < 0)[None, :]
    return np.where(nobody, 1.0, total / np.maximum(count, 1))


def _roles(graph: LayerGraph, names: Sequence[str]) -> list[tuple[str, str, str]]:
    pieces = normalizations(graph)
    return [_role(graph, name, pieces) for name in names]


def _role(graph: LayerGraph, name: str, pieces: Mapping[str, str]) -> tuple[str, str, str]:
    """What a tensor is: its operator, the operator's family, and whether that is all of it.

    A bias or a normalization behind a layer with weights is a part of that layer, as other libraries write both in
    one: its result is the layer's, and what lies in between is incomplete. So is what lies in a normalization that's
    written in pieces, whose result is the normalization's.
    """
    node = graph.producers.get(name)
    if node is None:
        return ("input", "input", "whole")
    if pieces.get(name) == name:
        return (_NORMALIZATION, _family(_NORMALIZATION), "whole")
    if name in pieces:
        return (node.op, _family(node.op), "part")
    layer = _completed(graph, node)
    family = _family(layer.op)
    goes_on = weight_of(layer) is not None and name not in graph.outputs and _goes_on(graph, name)
    return (layer.op, family, "part" if goes_on else "whole")


def _family(operator: str) -> str:
    return next((str(place) for place, family in enumerate(_FAMILIES) if operator in family), operator)


def _completed(graph: LayerGraph, node: Node) -> Node:
    """The layer with weights that a node adds a factor or an offset to; the node itself where there's none."""
    last = node
    while (name := _changed(graph, last)) is not None:
        before = graph.producers.get(name)
        if before is None or len(graph.consumers.get(name, ())) != 1:
            return node
        if weight_of(before) is not None:
            return before
        last = before
    return node


def _goes_on(graph: LayerGraph, name: str) -> bool:
    """Whether nothing but a factor or an offset reads a tensor; maybe as real numbers, when it's of integers."""
    readers = graph.consumers.get(name, ())
    if len(readers) == 1 and readers[0].op == "Cast" and readers[0].outputs[0] not in graph.outputs:
        readers = graph.consumers.get(readers[0].outputs[0], ())
        return len(readers) == 1 and _changed(graph, readers[0]) == name
    return len(readers) == 1 and _changed(graph, readers[0]) is not None


def _changed(graph: LayerGraph, node: Node) -> str | None:
    """The tensor that a node adds a constant factor or offset to, or the scale of integers that a product gave."""
    if node.op == "BatchNormalization":
        return node.inputs[0]
    if node.op in {"Add", "Sub", "Mul", "Div"} and "operand" in node.parameters and len(node.inputs) == 1:
        return node.inputs[0]
    if node.op != "Mul" or len(node.inputs) == 1:
        return None
    for name, scale in (node.inputs, node.inputs[::-1]):
        cast, shape = graph.producers.get(name), graph.tensors[scale].shape
        if cast is not None and cast.op == "Cast" and shape is not None and len(shape) <= 1:
            product = graph.producers.get(cast.inputs[0])
            if product is not None and weight_of(product) is not None:
                return cast.inputs[0]
    return None


def _words(name: str, node: Node | None) -> set[str]:
    """Names without what frameworks add: separators, upper case, output numbers."""
    names = {name} if node is None else {name, node.layer}
    return {re.sub(r"[^a-z0-9]+", "", re.sub(r":\d+$", "", item).lower()) for item in names} - {""}
