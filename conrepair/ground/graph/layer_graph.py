"""A network as a graph of layers, whichever framework it's written in."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.ground.data.following import reached
from conrepair.ground.data.tensor_spec import Quantization, numpy_dtype
from conrepair.ground.graph.attributes import Attributed
from conrepair.ground.metrics.tensors import blocks
from conrepair.ground.operators.record import Attribute

__all__ = ["FEW_BITS", "Array", "Attribute", "LayerGraph", "Node", "Parameter", "Tensor", "without_sizes"]

FEW_BITS = {"int8", "uint8", "int16", "uint16"}
"""Integers that stand for real numbers on a grid which ends."""
_OF_SIZES = {"Shape", "Size", "Rank"}  # they read how large a tensor is, and none of its values

Array = npt.NDArray[Any]


def _is_alike(one: Array, two: Array) -> bool:
    """Whether as many numbers are the same to half precision's digits; most differ at the first ones."""
    with np.errstate(over="ignore"):
        return all(len(set(map(_digits, block, [block[0]] * 2))) == 1 for block in blocks(one, two))


def _digits(block: Array, of: Array) -> bytes:
    """Numbers in half precision, where the largest of others is 1: none is beyond it, few are too small for it."""
    sizes = np.abs(of.astype(np.float64))
    exponent = np.frexp(sizes.max(initial=0, where=np.isfinite(sizes)))[1]
    return bytes(np.ldexp(block.astype(np.float64), -exponent).astype(np.float16))


@dataclass(frozen=True)
class Parameter:
    """Numbers that a node brings along.

    Attributes:
        name: As in the file; "" for numbers without a name.
        shape: In the convention of `conrepair.ground.graph.operators`, not necessarily the file's.
        dtype: numpy's name of the type that the file stores ("int8" for quantized weights).
        load: Reads the numbers, in that convention; quantized ones as the real numbers they stand for.
        bits: Of a quantized parameter; None for others.
        scales: Of a quantized parameter, one per tensor, per channel, or per block, of which there may be millions.
        blocks: How many numbers along each axis share a scale, where blocks of neighbours do; scales are in the
            order of the blocks, the last axis first. () elsewhere.
        made_by: The layer of the file that computes it from other numbers; "" where they're stored.
        known: What was found out of its numbers, which take long to read, by a name for it.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    load: Callable[[], Array] = field(repr=False, compare=False)
    bits: int | None = None
    scales: Sequence[float] = ()
    made_by: str = ""
    blocks: tuple[int, ...] = ()
    known: dict[str, float] = field(default_factory=dict, init=False, repr=False, compare=False)

    def numpy(self) -> Array:
        """The numbers, read at each call: a large network's don't fit into memory twice."""
        return self.load()

    def transposed(self) -> Array:
        """The numbers, with the axes in the other order."""
        return self.load().T


@dataclass(frozen=True)
class Tensor:
    """What flows between nodes.

    Attributes:
        name: As in the file where it has one; unique in the graph.
        shape: Sizes for the batch that the network was opened with; None where only running it tells.
        dtype: numpy's name of the type that the file computes with ("int8" for a quantized tensor).
        quantization: For an integer tensor that stands for real numbers.
        observable: Whether it can be captured and fed. What lies between the parts of a fused operator can't.
        others: Scales and zero points by which the file has its integers elsewhere, and which contradict its own.
    """

    name: str
    shape: tuple[int, ...] | None
    dtype: str
    quantization: Quantization | None = None
    observable: bool = True
    others: tuple[Quantization, ...] = ()

    @property
    def is_real(self) -> bool:
        """Whether the values are, or stand for, real numbers."""
        return self.quantization is not None or self.dtype == "bfloat16" or self.dtype.startswith("float")

    @property
    def is_float(self) -> bool:
        """Whether the values are real numbers that no integers stand for."""
        return self.quantization is None and self.is_real

    @property
    def stored(self) -> tuple[float, float] | None:
        """The smallest and the largest real number that its integers can stand for; None where none do.

        Integers of 32 bits hold whatever they're made for: they end nowhere that matters.
        """
        if self.quantization is None or self.dtype not in FEW_BITS:
            return None
        return self.held_by(self.quantization)

    def held_by(self, quantization: Quantization) -> tuple[float, float]:
        """The smallest and the largest real number that its integers would stand for.

        Args:
            quantization: In place of its own.
        """
        limits, scale, zero = np.iinfo(self.dtype), quantization.scale, quantization.zero_point
        return scale * (int(limits.min) - zero), scale * (int(limits.max) - zero)

    @property
    def nbytes(self) -> int | None:
        """Size when its values are real numbers of 32 bits or what the type says; None for an unknown shape."""
        if self.shape is None:
            return None
        if self.quantization is None and not self.is_real and self.dtype not in np.sctypeDict:
            return None  # text, handles
        size = 4 if self.quantization else 2 if self.dtype == "bfloat16" else np.dtype(self.dtype).itemsize
        return int(np.prod(self.shape, dtype=np.int64)) * size


@dataclass(frozen=True)
class Node(Attributed):
    """One operator.

    Attributes:
        name: Unique in the graph.
        layer: What it's called in the file; the parts of a fused operator, or of a layer, share it.
        op: Operator in the vocabulary of `conrepair.ground.graph.operators`; the native one where that has none.
        native: Operator as the framework calls it.
        inputs: Tensors that depend on the network's inputs, in order; "" for an optional one that's left out.
        outputs: Tensors.
        attributes: In the vocabulary's convention; all of the operator's, those with their default values too.
        parameters: Numbers that depend on no input, by role.
        written: Attributes of the file that became part of the parameters here: factors, transpositions.
        own: All attributes of the file's operator as the framework calls them, where it's nothing but this node.
        channels_last: Whether the channels are the last axis of its tensors, for operators that have channels.
        sizes: What computes the sizes that it reads, by the input's position: nodes that are in no graph.
    """

    name: str
    layer: str
    op: str
    native: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    channels_last: bool = False
    written: Mapping[str, Attribute] = field(default_factory=dict)
    sizes: Mapping[int, Node] = field(default_factory=dict, repr=False, compare=False)
    own: Mapping[str, Attribute] = field(default_factory=dict, repr=False, compare=False)

    @property
    def is_copy(self) -> bool:
        """Whether its result is what it reads, each number where it was: pads of nothing, axes in their order."""
        if self.op == "Identity":
            return any(self.inputs[:1])
        if self.op == "Pad":
            pads = self.attributes.get("pads")
            return isinstance(pads, tuple) and not any(pads)
        perm = self.attributes.get("perm")
        return self.op == "Transpose" and isinstance(perm, tuple) and perm == tuple(range(len(perm)))


def _same_numbers(one: Mapping[str, Parameter], other: Mapping[str, Parameter]) -> bool:
    """Whether nodes have equal parameters; parts of one, which share its name, have others."""
    return one.keys() == other.keys() and all(
        mine == other[role] and np.array_equal(mine.numpy(), other[role].numpy()) for role, mine in one.items()
    )


_TERMS = dict.fromkeys(("W", "R", "left"), -1) | dict.fromkeys(("weight", "query", "key", "value", "output"), -2)
"""Which axis of a parameter is added up along, by its role."""


@dataclass(frozen=True)
class LayerGraph:
    """A network's nodes and tensors.

    What depends on no input is a parameter, not a node: a graph says what happens to its inputs.

    Attributes:
        inputs: Names of the tensors that are fed, in the model's order.
        outputs: Names of the tensors that are the result, in the model's order; one may occur twice.
        tensors: By name.
        nodes: Each behind those that it reads from.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    tensors: Mapping[str, Tensor]
    nodes: tuple[Node, ...]

    @cached_property
    def producers(self) -> Mapping[str, Node]:
        """The node that each tensor comes from; the graph's inputs come from none."""
        return {tensor: node for node in self.nodes for tensor in node.outputs}

    def layer_of(self, name: str) -> str:
        """The layer that computes a tensor; the tensor's own name where none does."""
        return self.producers[name].layer if name in self.producers else name

    def made_by(self, name: str, passed: Callable[[Node], bool]) -> Node | None:
        """What computes a tensor, back through operators that are passed by: of each, to what it reads first.

        Args:
            name: The tensor.
            passed: Whether an operator is passed by.
        """
        node = self.producers.get(name)
        while node is not None and passed(node):
            node = self.producers.get(node.inputs[0])
        return node

    def read_once(self, name: str) -> bool:
        """Whether one node reads a tensor, and nobody else does."""
        return len(self.consumers.get(name, ())) == 1 and name not in self.outputs

    @cached_property
    def unfed(self) -> frozenset[str]:
        """Computed tensors that no input's values reach: they follow from sizes alone."""
        reached = set(self.inputs)
        for node in self.nodes:
            if node.op not in _OF_SIZES and not reached.isdisjoint(node.inputs):
                reached.update(node.outputs)
        return frozenset(self.producers) - reached

    @cached_property
    def consumers(self) -> Mapping[str, tuple[Node, ...]]:
        """The nodes that read each tensor, in the graph's order; () for results that nobody reads."""
        found: dict[str, list[Node]] = {name: [] for name in self.tensors}
        for node in self.nodes:
            for name in dict.fromkeys(filter(None, node.inputs)):
                found[name].append(node)
        return {name: tuple(nodes) for name, nodes in found.items()}

    @cached_property
    def order(self) -> Mapping[str, int]:
        """Position of each tensor: the inputs first, then as they are computed."""
        names = [*dict.fromkeys(self.inputs), *(name for node in self.nodes for name in node.outputs)]
        return {name: position for position, name in enumerate(names)}

    @cached_property
    def repeated(self) -> Mapping[str, tuple[str, ...]]:
        """Tensors that several nodes compute in the same way (common subexpressions), by each one's name."""
        first: dict[str, str] = {}
        nodes: dict[tuple[str, tuple[str, ...]], list[Node]] = {}
        found: dict[str, tuple[str, ...]] = {}
        for node in self.nodes:
            words = repr((node.op, sorted(node.attributes.items()), sorted(node.own.items()), len(node.outputs)))
            alike = nodes.setdefault((words, tuple(first.get(name, name) for name in node.inputs)), [])
            other = next((other for other in alike if _same_numbers(node.parameters, other.parameters)), node)
            alike.append(node)
            for mine, theirs in zip(node.outputs, other.outputs, strict=True) if other is not node else ():
                first[mine] = first.get(theirs, theirs)
                names = (*found.get(first[mine], (first[mine],)), mine)
                found |= dict.fromkeys(names, names)
        return found

    @cached_property
    def weights_up_to(self) -> Mapping[str, int]:
        """The bytes of the weights that are read up to each tensor, in the order of the nodes."""
        found, total = {}, 0
        for node in self.nodes:
            for item in node.parameters.values():
                total += math.prod(item.shape) * (item.bits or 8 * numpy_dtype(item.dtype).itemsize) // 8
            found.update(dict.fromkeys(node.outputs, total))
        return found

    def holder(self, array: Array) -> str | None:
        """The last layer that has the real numbers of an array, also in half precision or with axes of length 1."""
        own = [(node.layer, item) for node in self.nodes for item in node.parameters.values()]
        for layer, item in reversed(own):
            if math.prod(item.shape) == array.size > 1:
                other = item.numpy()
                if other.dtype.kind == "f" and _is_alike(array, other):
                    return layer
        return None

    @cached_property
    def with_bias(self) -> Set[str]:
        """Operators, as the framework calls them, that have a bias somewhere in the network."""
        return {node.native for node in self.nodes if "bias" in node.parameters}

    def terms(self, node: Node) -> int:
        """How many products a sum of a node has.

        Args:
            node: That adds up products: by its largest weight, else as many as the last axis of what it reads has.
        """
        shapes = {role: item.shape for role, item in node.parameters.items() if len(item.shape) > 1}
        if "output_padding" in node.attributes:  # [in, out / group, *kernel]
            groups = node.attributes.get("group") or 1
            sizes = [math.prod(shape) // max(shape[1] * int(str(groups)), 1) for shape in shapes.values()]
        elif "kernel_shape" in node.attributes:  # [out, in / group, *kernel]
            sizes = [math.prod(shape[1:]) for shape in shapes.values()]
        else:
            sizes = [shape[_TERMS[role]] for role, shape in shapes.items() if role in _TERMS]
        read = [self.tensors[name].shape or (1,) for name in node.inputs[:1] if name]
        return max(sizes or [shape[-1] for shape in read], default=1)

    def between(self, begin: Collection[str], end: Iterable[str]) -> tuple[Node, ...]:
        """The nodes that compute some tensors from others.

        Costs what is found: where it's asked once per tensor, `begin` should be a set.

        Args:
            begin: Tensors that are known.
            end: Tensors that are wanted; they are computed even when they are among those that are known.

        Returns:
            In the graph's order.
        """
        known = begin if isinstance(begin, Set) else frozenset(begin)

        def computing(names: Iterable[str]) -> list[int]:
            return [self._places[name] for name in names if name in self._places]

        def feeding(place: int) -> list[int]:
            return computing(name for name in self.nodes[place].inputs if name and name not in known)

        return tuple(self.nodes[place] for place in sorted(reached(computing(end), feeding)))

    def nearest(self, tensors: Iterable[str], *, forward: bool = False) -> Iterator[Node]:
        """The nodes that some tensors are computed from, or those that are computed from them, the nearest first.

        Args:
            tensors: Where to begin.
            forward: Whether to go with the data: to what reads them, what reads that, and so on.

        Yields:
            Each node once, by how few others lie on the way to it.
        """
        ahead, seen = list(tensors), set[str]()
        for name in ahead:  # grows
            makers = [self.producers[name]] if name in self.producers else []
            for node in self.consumers.get(name, ()) if forward else makers:
                if node.name not in seen:
                    seen.add(node.name)
                    yield node
                    ahead.extend(node.outputs if forward else filter(None, node.inputs))

    @cached_property
    def _places(self) -> Mapping[str, int]:
        """Where in the graph's order the node is that each tensor comes from."""
        return {name: place for place, node in enumerate(self.nodes) for name in node.outputs}

    def feeding(self, fed: Collection[str]) -> Mapping[str, tuple[str, ...]]:
        """The nearest tensors of a selection that each computed tensor comes from.

        Args:
            fed: The selection.

        Returns:
            For every tensor that a node computes, those of the selection on the way to it, in the graph's order.
        """
        found: dict[str, dict[str, None]] = {}
        for node in self.nodes:
            needs: dict[str, None] = {}
            for name in node.inputs:
                needs.update({name: None} if name in fed else found.get(name, {}))
            found.update(dict.fromkeys(node.outputs, needs))
        return {name: tuple(sorted(needs, key=self.order.__getitem__)) for name, needs in found.items()}


# Leave out of a graph what only computes sizes: no layer, and a number once the inputs' sizes are fixed.


_ASKING = {"Shape", "Size"}


def without_sizes(graph: LayerGraph) -> LayerGraph:
    """The graph without nodes that compute whole numbers from nothing but the sizes of tensors.

    What reads those has "" for them, and so isn't taken for something that depends on the tensors whose sizes were
    asked for. Outputs of the network stay, whatever they're computed from. What was left out is in `Node.sizes` of
    what reads it.

    Args:
        graph: As a framework's file has it.
    """
    kept: list[Node] = []
    gone: dict[str, Node] = {}
    for node in graph.nodes:
        read = [name for name in node.inputs if name]
        whole = not any(graph.tensors[name].is_real or name in graph.outputs for name in node.outputs)
        sizes = {place: gone[name] for place, name in enumerate(node.inputs) if name in gone}
        left = replace(node, inputs=tuple("" if name in gone else name for name in node.inputs), sizes=sizes)
        if whole and (node.op in _ASKING or (read and gone.keys() >= set(read))):
            gone.update(dict.fromkeys(node.outputs, left))
        else:
            kept.append(left)
    if not gone:
        return graph
    tensors = {name: tensor for name, tensor in graph.tensors.items() if name not in gone}
    return LayerGraph(graph.inputs, graph.outputs, tensors, tuple(kept))
