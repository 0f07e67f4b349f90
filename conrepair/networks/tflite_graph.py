"""A TFLite file's operators as a graph in the neutral vocabulary."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from conrepair.graph.layer_graph import LayerGraph, Node, Tensor
from conrepair.networks import tflite_arrays, tflite_elementwise, tflite_linear, tflite_windows
from conrepair.networks.tflite_constants import TfliteConstants
from conrepair.networks.tflite_file import WITHOUT_NUMBERS, TfliteFile
from conrepair.networks.tflite_operator import OperatorView, Rule, TfliteStep, native, same
from conrepair.networks.tflite_shapes import Probe
from conrepair.networks.tflite_subgraphs import handed_on

__all__ = ["RECURRENT", "TfliteGraph", "build_graph"]

_RULES: Mapping[str, Rule] = {
    **tflite_windows.RULES,
    **tflite_elementwise.RULES,
    **tflite_arrays.RULES,
    **tflite_linear.RULES,
}
RECURRENT = frozenset(
    {"LSTM", "RNN", "SVDF", "UNIDIRECTIONAL_SEQUENCE_LSTM", "UNIDIRECTIONAL_SEQUENCE_RNN"}
    | {"BIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_RNN"}
)
"""Operators whose fused activation is inside of the recurrence."""


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
        value = self._constants.parameter(index, self._constants.shape(index), same)
        self.nodes.append(Node(name, name, "CONSTANT", "CONSTANT", (), (name,), {}, {"value": value}))

    def add_operator(self, index: int) -> None:
        """An operator as one node or as several."""
        view = OperatorView(self._file, self._constants, index)
        unchanged = handed_on(self._file.model, self._file.operators[index])
        outputs = tuple(self.add_tensor(output, hidden=output in unchanged) for output in view.outputs)
        layer = outputs[0] if outputs else f"{view.kind}:{index}"
        steps = [self._reading_state(step) for step in _steps(view)]
        if view.kind == "VAR_HANDLE":
            self._variables[outputs[0]] = str(view.options.sharedName)
        elif view.kind == "ASSIGN_VARIABLE":
            outputs = (self._assign(self._file.names[view.inputs[0]]),)
        given = ""
        for position, step in enumerate(steps):
            inputs = tuple(name or given for name in step.inputs) if position else step.inputs
            if position < len(steps) - 1:
                given = self._add_hidden(view.outputs[0], step.shape, steps[position + 1].op)
            results = (given,) if position < len(steps) - 1 else outputs
            name = _free(f"{layer}/{step.op}" if position else layer, self.operators)
            self.operators[name] = index
            self.nodes.append(
                Node(
                    name, layer, step.op, view.kind, inputs, results,
                    step.attributes, step.parameters, step.channels_last, step.written,
                )
            )  # fmt: skip

    def _reading_state(self, step: TfliteStep) -> TfliteStep:
        """Who reads a variable depends on who assigned it last."""
        current = {
            handle: self._assigned[variable]
            for handle, variable in self._variables.items()
            if variable in self._assigned
        }
        return replace(step, inputs=tuple(current.get(name, name) for name in step.inputs))

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


def _steps(view: OperatorView) -> Sequence[TfliteStep]:
    found = _RULES.get(view.kind, native)(view)
    steps = [native(view)] if found is None else [found] if isinstance(found, TfliteStep) else found
    activation = getattr(view.options, "fusedActivationFunction", 0)
    if activation not in tflite_elementwise.FUSED or view.kind in RECURRENT:
        return steps
    op, attributes = tflite_elementwise.FUSED[activation]
    return [*steps, TfliteStep(op, ("",), attributes)]


def _free(name: str, taken: Collection[str]) -> str:
    """The name, or with a number behind it one that isn't taken."""
    numbered = (f"{name}:{number}" if number else name for number in itertools.count())
    return next(candidate for candidate in numbered if candidate not in taken)
