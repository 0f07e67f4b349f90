"""A TFLite file's operators as a graph in the neutral vocabulary."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from conrepair.formats.networks.parts import PREVIOUS
from conrepair.formats.tflite.read.constants import TfliteConstants
from conrepair.formats.tflite.read.file import WITHOUT_NUMBERS, TfliteFile
from conrepair.formats.tflite.read.operator import OperatorView
from conrepair.formats.tflite.read.operators import parts_of
from conrepair.formats.tflite.read.shapes import Probe
from conrepair.formats.tflite.read.subgraphs import handed_on
from conrepair.ground.graph.layer_graph import LayerGraph, Node, Tensor


@dataclass(frozen=True)
class TfliteGraph:
    """A graph, and where in the file its parts stand.

    Attributes:
        graph: The layers.
        operators: Index of the operator that each node is, or is a part of; constant results have none.
        tensors: Index of each tensor that can be observed.
    """

    graph: LayerGraph
    operators: Mapping[str, int]
    tensors: Mapping[str, int]


def build_graph(file: TfliteFile, constants: TfliteConstants, probed: Probe) -> TfliteGraph:
    """Build the graph.

    Args:
        file: The model.
        constants: What depends on no input.
        probed: Inputs and outputs in the model's order.
    """
    inputs = tuple(file.names[index] for _, index in probed.inputs)
    outputs = tuple(file.names[index] for _, index in probed.outputs)
    builder = _TfliteGraphBuilder(file, constants)
    for _, index in probed.inputs:
        builder.add_tensor(index)
    for _, index in probed.outputs:
        builder.add_constant_result(index)
    for index in range(len(file.operators)):
        if index not in constants.operators:
            builder.add_operator(index)
    graph = LayerGraph(inputs, outputs, builder.tensors, tuple(builder.nodes))
    return TfliteGraph(graph, builder.operators, builder.indices)


class _TfliteGraphBuilder:
    def __init__(self, file: TfliteFile, constants: TfliteConstants) -> None:
        self._file, self._constants = file, constants
        self._taken = set(file.names)
        self.tensors: dict[str, Tensor] = {}
        self.nodes: list[Node] = []
        self.operators: dict[str, int] = {}
        self.indices: dict[str, int] = {}
        # Handles of variables by name, and what stands for a variable since it was assigned.
        self._variables: dict[str, str] = {}
        self._assigned: dict[str, str] = {}

    def add_tensor(self, index: int, *, hidden: bool = False) -> str:
        """A tensor of the file; one that a loop only hands on is no result of it, unless it's the model's."""
        name, dtype = self._file.names[index], self._file.dtype(index)
        shape = None if dtype in WITHOUT_NUMBERS else self._constants.shapes[index]
        observable = dtype not in {"resource", "variant"} and (not hidden or index in self._file.outputs_of_graph)
        self.tensors[name] = Tensor(name, shape, dtype, self._file.quantization(index), observable)
        if observable:
            self.indices[name] = index
        return name

    def add_constant_result(self, index: int) -> None:
        """A result that is the same for all inputs has a node without inputs."""
        name = self._file.names[index]
        if index not in self._constants or name in self.tensors:
            return
        self.add_tensor(index)
        value = self._constants.parameter(index)
        self.nodes.append(Node(name, name, "CONSTANT", "CONSTANT", (), (name,), {}, {"value": value}))

    def add_operator(self, index: int) -> None:
        """An operator as one node or as several."""
        view = OperatorView(self._file, self._constants, index)
        unchanged = handed_on(self._file.model, self._file.operators[index])
        outputs = tuple(self.add_tensor(output, hidden=output in unchanged) for output in view.outputs)
        layer = outputs[0] if outputs else f"{view.kind}:{index}"
        parts, current = parts_of(view), self._handles_by_now()
        if view.kind == "VAR_HANDLE":
            self._variables[outputs[0]] = str(view.options.sharedName)
        elif view.kind == "ASSIGN_VARIABLE":
            outputs = (self._assign(self._file.names[view.inputs[0]]),)
        given = ""
        for position, part in enumerate(parts):
            reads = part.reads if part.reads is not None else (PREVIOUS,) if position else view.varying
            read = (given if place == PREVIOUS else view.name(place) for place in reads)
            inputs = tuple(current.get(name, name) for name in read)
            if position < len(parts) - 1:
                given = self._add_hidden(view.outputs[0], part.shape, parts[position + 1].op)
            results = (given,) if position < len(parts) - 1 else outputs
            name = _free(f"{layer}/{part.op}" if position else layer, self.operators)
            self.operators[name] = index
            attributes, parameters = part.attributes, part.parameters
            self.nodes.append(
                Node(name, layer, part.op, view.kind, inputs, results, attributes, parameters, part.channels_last)
            )

    def _handles_by_now(self) -> dict[str, str]:
        """Who reads a variable depends on who assigned it last."""
        return {
            handle: self._assigned[variable]
            for handle, variable in self._variables.items()
            if variable in self._assigned
        }

    def _assign(self, handle: str) -> str:
        name = _free(f"{handle}/assigned", self._taken)
        self._taken.add(name)
        self.tensors[name] = Tensor(name, None, "resource", observable=False)
        self._assigned[self._variables.get(handle, handle)] = name
        return name

    def _add_hidden(self, output: int, shape: tuple[int, ...] | None, following: str) -> str:
        """A tensor between the parts of an operator."""
        real = self.tensors[self._file.names[output]]
        what = "unshaped" if following in {"Reshape", "MatMul"} else "unfused"
        name = _free(f"{real.name}/{what}", self._taken)
        self._taken.add(name)
        known = real.shape if shape is None else shape
        self.tensors[name] = Tensor(name, known, real.dtype, real.quantization, observable=False)
        return name


def _free(name: str, taken: Collection[str]) -> str:
    """The name, or with a number behind it one that isn't taken."""
    numbered = (f"{name}:{number}" if number else name for number in itertools.count())
    return next(candidate for candidate in numbered if candidate not in taken)
