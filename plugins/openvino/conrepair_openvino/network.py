"""A model of OpenVINO as a graph, any piece of which OpenVINO computes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import openvino
from openvino import opset13

from conrepair.plugins import (
    Array,
    InferenceError,
    LayerGraph,
    Model,
    Network,
    Node,
    Parameter,
    Segment,
    Tensor,
    TensorSpec,
    loading,
)
from conrepair_openvino.runtime import WHAT, compiled, name_of, read

_CALLED = {  # by ONNX, where that's all that differs
    **{name: name for name in ("Relu", "Sigmoid", "Tanh", "Exp", "Log", "Erf", "Sqrt", "Abs", "Floor", "Gelu")},
    "SoftPlus": "Softplus",
    "HSwish": "HardSwish",
    "Softmax": "Softmax",
    "Concat": "Concat",
    "Elu": "Elu",
    "Add": "Add",
    "Multiply": "Mul",
    "Maximum": "Max",
    "Minimum": "Min",
    "Subtract": "Sub",
    "Divide": "Div",
    "Power": "Pow",
}
_ONE_WAY = {"Sub", "Div", "Pow"}
_PAIRS = {"Add", "Mul", "Max", "Min"} | _ONE_WAY


class Piece(Segment):
    """A compiled piece."""

    def __init__(self, content: Any, needs: Sequence[str], wanted: Sequence[str]) -> None:
        """Compile it, in float32.

        Args:
            content: A model of OpenVINO whose inputs are `needs`, and its outputs `wanted`.
            needs: Names of tensors.
            wanted: Names of tensors.
        """
        self.needs, self.wanted = tuple(needs), tuple(wanted)
        try:
            self._compiled = compiled(content, {})
        except RuntimeError as error:
            raise InferenceError(f"OpenVINO can't compile {', '.join(wanted)}: {error}") from error

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """See the base class."""
        try:
            found = self._compiled([np.ascontiguousarray(feeds[name]) for name in self.needs])
        except RuntimeError as error:
            raise InferenceError(f"OpenVINO can't compute {', '.join(self.wanted)}: {error}") from error
        return {name: found[place].copy() for place, name in enumerate(self.wanted)}


class OpenVinoNetwork(Network):
    """See the base class."""

    def __init__(self, content: Any, graph: LayerGraph) -> None:
        """Take a graph.

        Args:
            content: The model, its inputs' sizes numbers.
            graph: The same in conrepair's words.
        """
        self.graph, self._content = graph, content
        self.input_names = {name: name for name in graph.inputs}
        self.output_names = {name: name for name in graph.outputs}

    def segment(self, fed: Collection[str], wanted: Sequence[str]) -> Segment:
        """In a copy of the graph: readers of a tensor that's fed read an input of the piece."""
        wanted = tuple(dict.fromkeys(wanted))
        self.check_cuts(fed, wanted)
        nodes = self.graph.between(set(fed), wanted)
        read = {name for node in nodes for name in node.inputs}
        if missing := [name for name in self.graph.inputs if name in read and name not in fed]:
            raise ValueError(f"{', '.join(wanted)} can't be computed without the inputs {missing}")
        ports, inputs = _ports(self._content.clone()), []
        needs = [name for name in fed if name in read]
        for name in needs:
            port = ports[name]
            inputs.append(opset13.parameter(port.get_shape(), port.get_element_type()))
            for reader in port.get_target_inputs():
                reader.replace_source_output(inputs[-1].output(0))
        results = [opset13.result(ports[name]) for name in wanted]
        return Piece(openvino.Model(results, inputs, "piece"), needs, wanted)


def opened(model: Model, inputs: Sequence[TensorSpec]) -> Network:
    """Open a file.

    Args:
        model: What to open.
        inputs: Its inputs, all sizes numbers.
    """
    content = read(model)
    with loading(model, WHAT):
        ports = {name_of(port): port for port in content.inputs}
        content.reshape({ports[item.name]: list(map(int, item.shape)) for item in inputs})
        return OpenVinoNetwork(content, _graph(content))


def _ports(content: Any) -> dict[str, Any]:
    """What operators give, by the names of tensors."""
    return {name_of(port): port for op in _operators(content) for port in op.outputs()}


def _operators(content: Any) -> list[Any]:
    return [op for op in content.get_ordered_ops() if op.get_type_name() != "Result"]


def _graph(content: Any) -> LayerGraph:
    variable: set[str] = set()
    nodes, tensors = list[Node](), dict[str, Tensor]()
    for op in _operators(content):
        reads = _read(op)
        if op.get_type_name() != "Parameter" and variable.isdisjoint(map(name_of, reads)):
            continue  # it's a weight, or computed from weights alone
        for port in op.outputs():
            name = name_of(port)
            shape = tuple(port.get_shape()) if port.get_partial_shape().is_static else None
            tensors[name] = Tensor(name, shape, port.get_element_type().to_dtype().name)
            variable.add(name)
        if op.get_type_name() != "Parameter":
            nodes.append(_node(op, reads, variable))
    outputs = tuple(name_of(_read(result)[0]) for result in content.get_results())
    return LayerGraph(tuple(name_of(port) for port in content.inputs), outputs, tensors, tuple(nodes))


def _read(op: Any) -> list[Any]:
    return [port.get_source_output() for port in op.inputs()]


def _node(op: Any, reads: Sequence[Any], variable: Collection[str]) -> Node:
    kind, name = op.get_type_name(), op.get_friendly_name()
    known = _Call(kind, dict(op.get_attributes()), [None if name_of(port) in variable else port for port in reads])
    called, attributes, parameters = known.told()
    outputs = tuple(name_of(port) for port in op.outputs())
    inputs = tuple(name_of(port) for port in reads if name_of(port) in variable)
    return Node(name, name, called, kind, inputs, outputs, attributes, parameters)


class _Call:
    """An operator of OpenVINO, to be told in ONNX's words."""

    def __init__(self, kind: str, attributes: Mapping[str, Any], constants: Sequence[Any]) -> None:
        self.kind, self.attributes, self._constants = kind, attributes, constants

    def told(self) -> tuple[str, dict[str, Any], dict[str, Parameter]]:
        """Its name, attributes and parameters; its own name with all constants where ONNX has nothing like it."""
        kind, constants = self.kind, self._constants
        if kind in {"Convolution", "GroupConvolution"} and constants[1] is not None:
            grouped = kind == "GroupConvolution"
            shape = tuple(constants[1].get_shape())
            whole = (shape[0] * shape[1], *shape[2:]) if grouped else shape
            weight = self.parameter(1, whole, lambda array: array.reshape(whole))
            window = self.window(whole[2:]) | {"group": shape[0] if grouped else 1}
            return "Conv", window, {"weight": weight}
        if kind == "MatMul":
            turned = {f"transpose_{side}": bool(self.attributes[f"transpose_{side}"]) for side in "ab"}
            if constants[1] is None:
                return kind, turned, {"left": self.parameter(0)} if constants[0] is not None else {}
            shape, swap = tuple(constants[1].get_shape()), turned["transpose_b"]
            whole = (*shape[:-2], shape[-1], shape[-2]) if swap else shape
            weight = self.parameter(1, whole, lambda array: np.swapaxes(array, -1, -2) if swap else array)
            return kind, turned | {"transpose_b": False}, {"weight": weight}
        if kind in {"MaxPool", "AvgPool"}:
            more: dict[str, Any] = {"ceil_mode": self.attributes["rounding_type"] != "floor"}
            if kind == "AvgPool":
                more["count_include_pad"] = not self.attributes["exclude-pad"]
                return "AveragePool", self.window(self.attributes["kernel"]) | more, {}
            return kind, self.window(self.attributes["kernel"]) | more, {}
        called = _CALLED.get(kind, kind)
        place = next((place for place, item in enumerate(constants) if item is not None), None)
        if called in _PAIRS and place is not None and (place == 1 or called not in _ONE_WAY):
            return called, {}, {"operand": self.parameter(place)}
        if called in _CALLED.values() and place is None:
            own = {key: self.attributes[key] for key in ("axis", "alpha") if key in self.attributes}
            return called, own, {}
        return kind, {}, dict(self.all())

    def all(self) -> Iterator[tuple[str, Parameter]]:
        """What it reads that no input changes, by its place."""
        for place, item in enumerate(self._constants):
            if item is not None:
                yield f"input_{place}", self.parameter(place)

    def parameter(
        self,
        place: int,
        shape: tuple[int, ...] | None = None,
        change: Callable[[Array], Array] = lambda array: array,
    ) -> Parameter:
        """One of these."""
        port = self._constants[place]
        own = tuple(port.get_shape()) if shape is None else shape
        dtype = port.get_element_type().to_dtype().name
        return Parameter(name_of(port), own, dtype, lambda: change(_value(port)))

    def window(self, kernel: Sequence[int]) -> dict[str, Any]:
        """Attributes of what slides."""
        item = self.attributes
        pads = (*item["pads_begin"], *item["pads_end"])
        dilations = item.get("dilations") or [1] * len(kernel)
        automatic = item.get("auto_pad", "explicit") not in {"explicit", "valid"}
        return {
            "kernel_shape": tuple(map(int, kernel)),
            "strides": tuple(map(int, item["strides"])),
            "pads": None if automatic else tuple(map(int, pads)),
            "dilations": tuple(map(int, dilations)),
            "auto_pad": item["auto_pad"].upper() if automatic else "NOTSET",
        }


def _value(port: Any) -> Array:
    """The numbers of what no input changes: those of a constant, or what's computed from constants."""
    node = port.get_node()
    if node.get_type_name() == "Constant":
        return np.array(node.data)
    if node.get_type_name() == "Convert":  # of weights in half precision
        return _value(_read(node)[0]).astype(port.get_element_type().to_dtype())
    model = openvino.Model([opset13.result(port)], [], "weights")
    return np.array(compiled(model, {})([])[0])
