"""An ONNX file that is changed: its graph's values and nodes, new constants, and what is written in the end."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir

from conrepair.formats.models.model import Model
from conrepair.formats.onnx.load.border import Border
from conrepair.formats.onnx.passes.raise_opset import name_default_domain
from conrepair.formats.onnx.read.file import is_outside, load_plain
from conrepair.formats.onnx.read.source import written_nodes
from conrepair.ground.data.tensor_spec import TensorSpec, merge_declared
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.onnx_graphs.defaults import schema_of
from conrepair.ground.onnx_graphs.infer_shapes import static_shape
from conrepair.ground.runtime.words import free_name

_FREE_CONSTANTS = 4  # IR version in which constants stopped to be inputs too


class OnnxFile:
    """The model as it's written: functions, constants and unknown sizes stay what they are.

    Attributes:
        model: What is changed.
        values: Inputs, initializers and the main graph's results, by the names that they had in the file.
        external: Whether the file keeps weights outside.
        written: What the file has in place of nodes that give a tensor instead of a map, by the tensor's name.
    """

    def __init__(self, path: Path, known: Mapping[str, onnx_ir.Value]) -> None:
        """Load a file.

        Args:
            path: Of the file.
            known: Values whose types and shapes are known, by name.
        """
        self.model, self._border = load_plain(path)
        self.written = written_nodes(self._border)
        name_default_domain(self.model)
        self.values = {str(value.name): value for value in self._named()}
        self.external = any(
            is_outside(value.const_value, path)
            for graph in self.model.graphs()
            for value in graph.initializers.values()
        )
        self._known = known
        self._loose: list[onnx_ir.Value] = []

    @property
    def border(self) -> Border:
        """What the file has for maps, as it's by now."""
        return replace(self._border, nodes={name: onnx_ir.to_proto(node) for name, node in self.written.items()})

    @property
    def graph(self) -> onnx_ir.Graph:
        """The main graph."""
        return self.model.graph

    # --- what there is ----------------------------------------------------------------------------------------

    def original(self, node: onnx_ir.Node) -> onnx_ir.Node | None:
        """The node that one of the network's was read from; None for one that comes from a function."""
        name = next((value.name for value in node.outputs if value.name), None)
        if name in self.written:
            return self.written[name]
        mine = self.values[name].producer() if name in self.values else None
        return mine if mine is not None and mine.op_identifier() == node.op_identifier() else None

    def opset(self, node: onnx_ir.Node) -> int:
        """Version of the node's domain."""
        return self.model.opset_imports.get(node.domain, 1)

    def schema(self, node: onnx_ir.Node) -> Any:
        """What ONNX says about the node's operator; None for one that isn't ONNX's."""
        return schema_of(node, self.opset(node))

    def dtype(self, value: onnx_ir.Value | None) -> onnx_ir.DataType | None:
        """The element type of a value, if it's known."""
        if value is None:
            return None
        if value.const_value is not None:
            return value.const_value.dtype
        known = self._known.get(str(value.name))
        return value.dtype or (None if known is None else known.dtype)

    def shape(self, value: onnx_ir.Value) -> list[int] | None:
        """The shape of a value for the sizes that the network was opened with, if it's known."""
        stated = static_shape(value)
        return static_shape(self._known.get(str(value.name))) if stated is None else stated

    # --- changes ----------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def changing(self, node: onnx_ir.Node | None = None) -> Iterator[None]:
        """Change a node as a whole or not at all; in the end, what nothing reads any more is taken out."""
        put_back = None if node is None else _putting_back(node)
        try:
            yield
        except BaseException:
            if put_back is not None:
                put_back()
            raise
        finally:
            for value in self._loose:
                self._drop(value)
            self._loose.clear()

    def free(self, label: str) -> str:
        """A name that nothing has yet."""
        name = free_name(label, self._taken, ":")
        self._taken.add(name)
        return name

    def constant(self, label: str, array: Array, dtype: onnx_ir.DataType) -> onnx_ir.Value:
        """A new initializer."""
        tensor = tensor_of(array, dtype, self.free(label))
        value = onnx_ir.Value(
            name=tensor.name, type=onnx_ir.TensorType(dtype), shape=tensor.shape, const_value=tensor
        )
        self.graph.register_initializer(value)
        if self.model.ir_version < _FREE_CONSTANTS:
            self.graph.inputs.append(value)
        self.forget(value)
        return value

    def forget(self, value: onnx_ir.Value | None) -> None:
        """Take out a value at the end of the change, if nothing reads it then."""
        if value is not None:
            self._loose.append(value)

    def _drop(self, value: onnx_ir.Value | None) -> None:
        """Take out a value that nothing reads, and what only that was computed from; inputs stay."""
        if value is None or value.uses() or value.is_graph_output():
            return
        node = value.producer()
        if node is None:
            self._drop_initializer(value)
        elif node.graph is self.graph and not any(item.uses() or item.is_graph_output() for item in node.outputs):
            read = list(dict.fromkeys(node.inputs))
            self.graph.remove(node, safe=True)
            for item in read:
                self._drop(item)

    def _drop_initializer(self, value: onnx_ir.Value) -> None:
        if value.is_graph_input() and self.model.ir_version < _FREE_CONSTANTS and value.is_initializer():
            self.graph.inputs.remove(value)
        if not value.is_graph_input() and value.is_initializer():
            del self.graph.initializers[str(value.name)]

    # --- names ------------------------------------------------------------------------------------------------

    def _named(self) -> Iterator[onnx_ir.Value]:
        yield from self.graph.inputs
        yield from self.graph.initializers.values()
        for node in self.graph:
            yield from (value for value in node.outputs if value.name)

    @cached_property
    def _taken(self) -> set[str]:
        """Names of values and nodes, those of inner graphs too."""
        found = set(self.values)
        for graph in self.model.graphs():
            found |= {str(value.name) for value in [*graph.inputs, *graph.initializers.values()]}
            for node in graph:
                found |= {str(value.name) for value in node.outputs} | {str(node.name)}
        return found


def _putting_back(node: onnx_ir.Node) -> Callable[[], None]:
    """What makes a node again what it is now."""
    operator, attributes, inputs = (node.domain, node.op_type, node.overload), dict(node.attributes), (*node.inputs,)

    def put_back() -> None:
        node.domain, node.op_type, node.overload = operator
        node.attributes.clear()
        node.attributes.update(attributes)
        set_inputs(node, inputs)

    return put_back


def set_inputs(node: onnx_ir.Node, values: Sequence[onnx_ir.Value | None]) -> None:
    """Let a node read these values and no others, in place."""
    node.resize_inputs(len(values))
    for index, value in enumerate(values):
        node.replace_input_with(index, value)


def tensor_of(array: Array, dtype: onnx_ir.DataType, name: str | None) -> onnx_ir.Tensor[Any] | onnx_ir.StringTensor:
    """Numbers, or texts, as a file holds them."""
    if dtype is onnx_ir.DataType.STRING:
        texts = np.array([text.encode() if isinstance(text, str) else text for text in array.flat], object)
        return onnx_ir.StringTensor(texts.reshape(array.shape), shape=onnx_ir.Shape(array.shape), name=name)
    return onnx_ir.Tensor(np.array(array, dtype.numpy(), order="C"), dtype=dtype, name=name)


def sizes_of(model: Model, samples: int = 1) -> list[TensorSpec]:
    """A model's inputs with sizes to describe it for: those that are declared, else so many samples.

    What else the file leaves open stays open: the description doesn't say what depends on it.
    """
    graph = load_plain(Path(model.path))[0].graph
    inputs = [value for value in graph.inputs if value.name not in graph.initializers]
    specs = [
        TensorSpec(
            str(value.name),
            tuple(_dimension(size, f"{value.name}/{axis}") for axis, size in enumerate(value.shape or ())),
            "" if value.dtype is None else value.dtype.numpy().name,
        )
        for value in inputs
        if value.shape is not None
    ]
    named = [spec for spec in model.inputs if any(spec.name == item.name for item in specs)]
    merged = merge_declared(specs, named)
    batch = {spec.shape[0] for spec in merged if spec.shape and isinstance(spec.shape[0], str)}
    return [replace(spec, shape=tuple(samples if size in batch else size for size in spec.shape)) for spec in merged]


def _dimension(size: int | onnx_ir.SymbolicDim, label: str) -> int | str:
    if isinstance(size, int):
        return size if size > 0 else label
    return str(size.value or label)
