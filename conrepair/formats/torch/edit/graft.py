"""Operators of the vocabulary as ATen's, at a graph's point of insertion."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch.export.graph_signature import InputKind, InputSpec, TensorArgument

from conrepair.formats.editing.editor import NotEditableError
from conrepair.formats.editing.lowering import Writer
from conrepair.formats.editing.lowering_windows import window_of
from conrepair.formats.editing.operation import Operation, Sizes, two_read, what_is_read
from conrepair.formats.editing.operation_shapes import slices_of
from conrepair.formats.torch.edit.operators import PAD_MODES, even_pads, pads_listed, target_of
from conrepair.formats.torch.read.elementwise import BINARY, HARD_SIGMOID, REDUCTIONS
from conrepair.ground.graph.attributes import as_real
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.graph.operators import ELEMENTWISE_BINARY


def add_buffer(program: torch.export.ExportedProgram, tensor: torch.Tensor, label: str) -> torch.fx.Node:
    """Register numbers, in place.

    Args:
        program: Gets them in its state.
        tensor: The numbers.
        label: For the names.

    Returns:
        The placeholder that stands for them, in front of the network's own inputs.
    """
    keys = (f"{label}_constant_{number}" for number in itertools.count())
    key = next(name for name in keys if name not in program.state_dict)
    specs = program.graph_signature.input_specs
    own = next((place for place, spec in enumerate(specs) if spec.kind == InputKind.USER_INPUT), len(specs))
    placeholders = [node for node in program.graph.nodes if node.op == "placeholder"]
    first = placeholders[own] if own < len(placeholders) else next(iter(program.graph.nodes))
    with program.graph.inserting_before(first):
        node = program.graph.create_node("placeholder", f"b_{key}", name=f"b_{key}")
    mode = torch._guards.detect_fake_mode([item.meta.get("val") for item in placeholders])
    node.meta["val"] = tensor if mode is None else mode.from_tensor(tensor, static_shapes=True)
    specs.insert(own, InputSpec(InputKind.BUFFER, TensorArgument(name=node.name), key, persistent=True))
    program.state_dict[key] = tensor
    return node


def put_in_order(graph: torch.fx.Graph) -> None:
    """Move nodes behind those that they read, in place; what's in order stays as it is.

    Raises:
        NotEditableError: if nodes read one another in a circle.
    """
    waiting, done = list(graph.nodes), set[torch.fx.Node]()
    while waiting:
        node = next((item for item in waiting if done.issuperset(item.all_input_nodes)), None)
        if node is None:
            raise NotEditableError("what is put in would read what is computed from it")
        if node is not waiting[0]:
            waiting[0].prepend(node)
        waiting.remove(node)
        done.add(node)


def drop_unread(graph: torch.fx.Graph, node: torch.fx.Node) -> None:
    """Take out a node that nothing reads, and what only that read."""
    if node.users or node.op != "call_function":
        return
    read = node.all_input_nodes
    graph.erase_node(node)
    for item in read:
        drop_unread(graph, item)


aten = torch.ops.aten
_REDUCTIONS = {op: name for name, op in REDUCTIONS.items() if name != "prod"}  # which takes one axis
_NUMBERS = {"Add", "Sub", "Mul", "Div"}  # which take a number as they take a tensor
_FLAT = 2
_HALVES = {"float16": torch.float16, "float32": torch.float32, "float64": torch.float64}
_USUAL = {"Swish": {"alpha": 1.0}, "HardSigmoid": HARD_SIGMOID}
_CLOSE = 1e-6


class TorchWriter(Writer[torch.fx.Node]):
    """Makes nodes, in front of the graph's point of insertion."""

    sorts: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys((*ELEMENTWISE_BINARY, *BINARY.values()), "binary"),
        **dict.fromkeys(_REDUCTIONS, "reduction"),
    }

    def __init__(self, program: torch.export.ExportedProgram, source: torch.fx.Node, label: str) -> None:
        """Make a node.

        Args:
            program: It gets the constants.
            source: The node whose module the new ones are in.
            label: For the new names.
        """
        self._program, self._source, self._label = program, source, label

    def shape(self, value: torch.fx.Node) -> Sizes | None:
        """Sizes; None for symbolic ones."""
        known = value.meta.get("val")
        if not isinstance(known, torch.Tensor):
            return None
        return tuple(size if isinstance(size, int) else None for size in known.shape)

    def write(self, operation: Operation, operands: Sequence[torch.fx.Node]) -> torch.fx.Node:
        """One of ATen's operators."""
        operator = operation.operator
        if operator == "Identity":
            return operands[0]
        make = self._method(operator) or self._plain
        target, arguments = make(operation, list(operands))
        return self.call(target, arguments)

    def call(self, target: Any, arguments: Sequence[Any]) -> torch.fx.Node:
        """A node with the meta data that programs need."""
        graph = self._program.graph
        name = f"{self._label}_{target._schema.name[6:]}"
        try:
            values = torch.fx.map_arg(tuple(arguments), lambda item: item.meta["val"])
            result = target(*values)
        # ATen checks its arguments with errors of several types.
        except (RuntimeError, TypeError, ValueError, NotImplementedError) as error:
            self.refuse(f"{target} can't be called so: {error}")
        node = graph.create_node("call_function", target, tuple(arguments), name=name)
        node.meta["val"] = result
        for key in ("nn_module_stack", "torch_fn"):
            if key in self._source.meta:
                node.meta[key] = self._source.meta[key]
        return node

    def constant(self, array: Array | None) -> torch.fx.Node | None:
        """Numbers in the program's state; None for none."""
        if array is None:
            return None
        real = array.astype(np.float32) if array.dtype.kind == "f" else array
        return add_buffer(self._program, torch.from_numpy(np.array(real, order="C")), self._label)

    def _plain(self, operation: Operation, operands: list[Any]) -> _Written:
        """An operator without constants."""
        operator, given = operation.operator, dict(operation.attributes)
        for name, value in _USUAL.get(operator, {}).items():
            if abs(as_real(given.pop(name, value)) - value) > _CLOSE:
                self.refuse(f"PyTorch's {operator} has no {name}")
        if operation.parameters or len(operands) != 1:
            self.refuse(f"PyTorch has no {operator} of such operands")
        target, rest = target_of(operator, given)
        names = {item.name for item in target._schema.arguments}
        if operator == "Gelu":
            node = [operands[0]]
            if given.get("approximate") == "tanh":
                self.refuse("an argument by name")
            return target, node
        unknown = set(given) - {"alpha", "axis", "min", "max", "perm", "gamma"}
        if unknown or (operator == "Selu" and given):
            self.refuse(f"{operator} has no {', '.join(unknown or given)} of {sorted(names)}")
        return target, [*operands, *rest]

    def _write_clip(self, operation: Operation, operands: list[Any]) -> _Written:
        if operation.parameters:
            self.refuse("bounds are numbers")
        return aten.clamp.default, [*operands, operation.attributes.get("min"), operation.attributes.get("max")]

    def _write_binary(self, operation: Operation, operands: list[Any]) -> _Written:
        target = aten.pow.Tensor_Tensor if operation.operator == "Pow" else target_of(operation.operator, {})[0]
        may_be_number = operation.operator in _NUMBERS and not operation.attributes.get("constant_first")

        def constant(array: Array) -> Any:
            number = array.size == 1 and array.ndim <= len(self.shape(operands[0]) or ()) and may_be_number
            return float(array.reshape(-1)[0]) if number else self.constant(array)

        return target, list(two_read(operation, operands, constant))

    def _write_matmul(self, operation: Operation, operands: list[Any]) -> _Written:
        weight, bias = (operation.parameters.get(role) for role in ("weight", "bias"))
        if any(operation.attributes.get(name) for name in ("transpose_a", "transpose_b")):
            self.refuse("PyTorch's product transposes nothing")
        if weight is not None and weight.ndim == _FLAT:
            return aten.linear.default, [operands[0], self.constant(weight.T), self.constant(bias)]
        if bias is not None:
            self.refuse("PyTorch's product of tensors has no bias")
        return aten.matmul.default, list(two_read(operation, operands, self.constant))

    def _write_conv(self, operation: Operation, operands: list[Any]) -> _Written:
        weight, bias = operation.parameters["weight"], operation.parameters.get("bias")
        axes = weight.ndim - 2
        arguments = [operands[0], self.constant(weight), self.constant(bias)]
        window = [list(window_of(operation, "strides", 1)), self._even_pads(operation)]
        group = operation.integer("group", 1)
        target = {1: aten.conv1d.default, 2: aten.conv2d.default, 3: aten.conv3d.default}.get(axes)
        if target is None:
            self.refuse(f"PyTorch has no convolution along {axes} axes")
        return target, [*arguments, *window, list(window_of(operation, "dilations", 1)), group]

    def _write_pool(self, operation: Operation, operands: list[Any]) -> _Written:
        kernel, strides = window_of(operation, "kernel_shape", 1), window_of(operation, "strides", 1)
        if len(kernel) != 2:
            self.refuse("only poolings of pictures can be put in")
        window = [operands[0], list(kernel), list(strides), self._even_pads(operation)]
        ceil, dilations = bool(operation.attributes.get("ceil_mode")), window_of(operation, "dilations", 1)
        if operation.operator == "MaxPool":
            return aten.max_pool2d.default, [*window, list(dilations), ceil]
        return aten.avg_pool2d.default, [*window, ceil, bool(operation.attributes.get("count_include_pad"))]

    def _even_pads(self, operation: Operation) -> list[int]:
        if operation.attributes.get("auto_pad") not in {None, "NOTSET"}:
            self.refuse("pads must be numbers")
        return even_pads(window_of(operation, "pads", 0))

    def _write_reduction(self, operation: Operation, operands: list[Any]) -> _Written:
        dims = operation.integers("axes", range(len(self.shape(operands[0]) or ())))
        packet = getattr(aten, _REDUCTIONS[operation.operator])
        target = next(
            getattr(packet, name) for name in ("dim", "dim_IntList", "default") if name in packet.overloads()
        )
        return target, [operands[0], dims, bool(operation.attributes.get("keepdims", True))]

    def _write_batchnormalization(self, operation: Operation, operands: list[Any]) -> _Written:
        numbers = [self.constant(operation.parameters.get(role)) for role in ("scale", "bias", "mean", "variance")]
        return aten.batch_norm.default, [*operands, *numbers, False, 0.0, _epsilon(operation), False]

    def _write_instancenormalization(self, operation: Operation, operands: list[Any]) -> _Written:
        numbers = [self.constant(operation.parameters.get(role)) for role in ("scale", "bias")]
        return aten.instance_norm.default, [*operands, *numbers, None, None, True, 0.0, _epsilon(operation), False]

    def _write_groupnormalization(self, operation: Operation, operands: list[Any]) -> _Written:
        numbers = [self.constant(operation.parameters.get(role)) for role in ("scale", "bias")]
        groups = operation.integer("groups")
        return aten.group_norm.default, [operands[0], groups, *numbers, _epsilon(operation)]

    def _write_layernormalization(self, operation: Operation, operands: list[Any]) -> _Written:
        shape = self.shape(operands[0]) or ()
        last = [axis % len(shape) for axis in operation.integers("axes") if shape]
        sizes = [shape[axis] for axis in last]
        if not shape or last != list(range(len(shape) - len(last), len(shape))) or None in sizes:
            self.refuse("PyTorch normalizes the last axes, of known sizes")
        numbers = [self.constant(operation.parameters.get(role)) for role in ("scale", "bias")]
        return aten.layer_norm.default, [operands[0], sizes, *numbers, _epsilon(operation)]

    def _write_concat(self, operation: Operation, operands: list[Any]) -> _Written:
        return aten.cat.default, [what_is_read(operation, operands, self.constant), operation.integer("axis")]

    def _write_softmax(self, operation: Operation, operands: list[Any]) -> _Written:
        target = aten.softmax.int if operation.operator == "Softmax" else aten.log_softmax.int
        return target, [*operands, operation.integer("axis", -1)]

    def _write_pad(self, operation: Operation, operands: list[Any]) -> _Written:
        pads, mode = operation.attributes.get("pads"), operation.text("mode", "constant")
        if not isinstance(pads, tuple) or mode not in {"constant", "reflect", "edge"}:
            self.refuse(f"PyTorch has no Pad of {mode}")
        value = operation.real("value", 0.0) if mode == "constant" else None
        return aten.pad.default, [*operands, pads_listed(pads), PAD_MODES[mode], value]

    def _write_slice(self, operation: Operation, operands: list[Any]) -> _Written:
        parts = slices_of(operation, len(self.shape(operands[0]) or ()))
        if any(part.step is not None and part.step < 1 for part in parts):
            self.refuse("PyTorch's slices don't go backwards")
        cut = [(axis, part) for axis, part in enumerate(parts) if part != slice(None)]
        if not cut:
            self.refuse("a slice of everything")
        value = operands[0]
        for axis, part in cut[:-1]:
            value = self.call(aten.slice.Tensor, [value, axis, part.start, part.stop, part.step or 1])
        axis, part = cut[-1]
        return aten.slice.Tensor, [value, axis, part.start, part.stop, part.step or 1]

    def _write_reshape(self, operation: Operation, operands: list[Any]) -> _Written:
        return aten.reshape.default, [*operands, operation.integers("shape")]

    def _write_transpose(self, operation: Operation, operands: list[Any]) -> _Written:
        return aten.permute.default, [*operands, operation.integers("perm")]

    def _write_gather(self, operation: Operation, operands: list[Any]) -> _Written:
        axis = operation.integer("axis", 0)
        table, indices = operation.parameters.get("table"), operation.parameters.get("indices")
        if table is not None and axis == 0 and table.ndim == _FLAT:
            return aten.embedding.default, [self.constant(table), *operands]
        if indices is None or indices.ndim != 1:
            self.refuse("only constant indices along one axis can be put in")
        pieces = [self.call(aten.slice.Tensor, [operands[0], axis, begin, end]) for begin, end in _runs(indices)]
        return aten.cat.default, [pieces, axis]

    def _write_cast(self, operation: Operation, operands: list[Any]) -> _Written:
        dtype = _HALVES.get(operation.text("to"))
        if dtype is None:
            self.refuse(f"no cast to {operation.attributes['to']}")
        return aten.to.dtype, [*operands, dtype]


_Written = tuple[Any, list[Any]]


def _runs(indices: Array) -> Iterator[tuple[int, int]]:
    """Begins and ends of neighbouring rising indices."""
    begin = 0
    for place in range(1, len(indices) + 1):
        if place == len(indices) or indices[place] != indices[place - 1] + 1:
            yield int(indices[begin]), int(indices[place - 1]) + 1
            begin = place


def _epsilon(operation: Operation) -> float:
    return operation.real("epsilon", 0.0)
