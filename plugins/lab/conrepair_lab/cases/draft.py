"""A mutable case during its reduction, which becomes a valid case again."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from conrepair.formats.onnx.load.proto_file import read_by
from conrepair.verdicts.truth.referees import Referee
from conrepair.verdicts.truth.widening import types_of
from conrepair_lab.cases.case import Array, Case
from conrepair_lab.cases.sizes import open_sizes


@dataclass
class Draft:
    """A case that reduction steps change in place.

    Attributes:
        model: The network.
        inputs: By name.
        options: Of systems.
        values: What every tensor of the case was before anything changed, by name.
        types: ONNX's numbers of their types.
        fixed: Those that depend on no input.
        shapes: Those in which a size is open that an input's name stands for: numbers, and such names.
    """

    model: onnx.ModelProto
    inputs: dict[str, Array]
    options: dict[str, dict[str, Any]]
    values: Mapping[str, Any] = field(default_factory=dict)
    types: Mapping[str, int] = field(default_factory=dict)
    fixed: frozenset[str] = frozenset()
    shapes: Mapping[str, Sequence[int | str]] = field(default_factory=dict)

    def copy(self) -> Draft:
        """A copy of the draft; arrays are replaced, never written to."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        options = copy.deepcopy(self.options)
        return Draft(model, dict(self.inputs), options, self.values, self.types, self.fixed, self.shapes)

    def tidied(self) -> Case | None:
        """The draft as a valid case; None where it's no network.

        Tensors that nobody computes any more become inputs with the value that they had, or weights where that
        depended on no input; nodes that nobody reads have an output; what nobody reads is left out.
        """
        graph = self.model.graph
        read = {name for node in graph.node for name in read_by(node)}
        computed = {name for node in graph.node for name in node.output if name}
        known = computed | set(self.inputs) | {item.name for item in graph.initializer}
        for name in sorted(read - known):
            if not isinstance(self.values.get(name), np.ndarray) or name not in self.types:
                return None
            self._give(name)
        keep(graph.output, lambda item: item.name in computed)
        for node in graph.node:
            shown = {item.name for item in graph.output}
            if not any(name in read or name in shown for name in node.output):
                graph.output.append(onnx.ValueInfoProto(name=node.output[0]))
        for item in graph.output:
            if item.name in self.types:  # its shape follows from what is left
                item.CopyFrom(helper.make_tensor_value_info(item.name, self.types[item.name], None))
        keep(graph.input, lambda item: item.name in read)
        keep(graph.initializer, lambda item: item.name in read)
        del graph.value_info[:]
        if not graph.output:
            return None
        inputs = {name: array for name, array in self.inputs.items() if name in read}
        return Case.of(self.model, inputs, self.options)

    def _give(self, name: str) -> None:
        graph, value = self.model.graph, self.values[name]
        if name in self.fixed:
            graph.initializer.append(numpy_helper.from_array(value, name))
        else:
            shape = self.shapes.get(name, value.shape)
            graph.input.append(helper.make_tensor_value_info(name, self.types[name], shape))
            self.inputs[name] = value


Change = Callable[[Draft], None]
"""Makes something smaller, in place."""

Level = Callable[[Draft], list[Change]]
"""What could be made smaller in a draft; neighbours belong together. Any of it may be done, in order."""


def opened(case: Case, referee: Referee) -> Draft:
    """A draft of a case.

    Args:
        case: A valid one.
        referee: Who computes its tensors.

    Raises:
        CannotJudgeError: if the referee can't run it.
    """
    model = case.model
    types = types_of(model)
    tensors = [name for node in model.graph.node for name in node.output if name]
    found = referee.answers(model, case.inputs, tensors)
    values = {name: _own(value, types.get(name)) for name, value in found.items()}
    moving = set(case.inputs)
    for node in model.graph.node:
        if not moving.isdisjoint(read_by(node)):
            moving.update(node.output)
    options = {system: dict(named) for system, named in case.options.items()}
    fixed = frozenset(set(tensors) - moving)
    return Draft(model, dict(case.inputs), options, values, types, fixed, _open_shapes(model, open_sizes(case)))


def _open_shapes(model: onnx.ModelProto, names: Collection[str]) -> dict[str, list[int | str]]:
    """Of tensors all of whose sizes are known by number or name, and some by name."""
    if not names:
        return {}
    graph, found = onnx.shape_inference.infer_shapes(model, data_prop=True).graph, {}
    for item in (*graph.value_info, *graph.output):
        dims = item.type.tensor_type.shape.dim
        if all(size.HasField("dim_value") or size.dim_param in names for size in dims):
            found[item.name] = [size.dim_param or size.dim_value for size in dims]
    return {name: shape for name, shape in found.items() if not all(isinstance(size, int) for size in shape)}


def needed(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    """Nodes that outputs depend on, each behind those that feed it, output by output."""
    makers = {name: node for node in graph.node for name in node.output if name}
    found: dict[int, onnx.NodeProto] = {}
    waiting = [makers[item.name] for item in reversed(graph.output) if item.name in makers]
    while waiting:
        node = waiting[-1]
        feeding = [makers[name] for name in read_by(node) if name in makers]
        missing = [other for other in feeding if id(other) not in found]
        if missing and id(node) not in found:
            waiting.extend(reversed(missing))
        else:
            found[id(waiting.pop())] = node
    return list(found.values())


def _own(value: Any, kind: int | None) -> Any:
    """A referee's answer in the type of the network."""
    if kind is None or not isinstance(value, np.ndarray | np.generic):
        return value
    if kind == onnx.TensorProto.STRING:
        return np.asarray(value).astype(np.str_)
    with np.errstate(all="ignore"):
        return np.asarray(value).astype(helper.tensor_dtype_to_np_dtype(kind))


def keep(items: Any, wanted: Callable[[Any], bool]) -> None:
    """Leave out of a list of messages, in place, what isn't wanted.

    Args:
        items: Messages of Protobuf.
        wanted: Of each.
    """
    for place in reversed(range(len(items))):
        if not wanted(items[place]):
            del items[place]
