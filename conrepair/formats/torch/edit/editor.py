"""PyTorch: an exported program's graph and state, or the state dict of a factory's module."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.utils._pytree as pytree
from torch._subclasses.fake_tensor import FakeTensor
from torch.export.graph_signature import OutputKind, OutputSpec, TensorArgument
from torch.fx.passes.fake_tensor_prop import FakeTensorProp

from conrepair.formats.editing.editor import Editor, NotEditableError
from conrepair.formats.editing.lowering_windows import GLOBAL_POOLS, POOLS
from conrepair.formats.editing.operation import Operation
from conrepair.formats.models.model import Model
from conrepair.formats.torch.edit.graft import TorchWriter, add_buffer, drop_unread, put_in_order
from conrepair.formats.torch.edit.graph import (
    as_stored,
    constants_of,
    graph_of_program,
    meaning_in_file,
    module_path,
    name_of_operator,
    state_of,
    stored_places,
)
from conrepair.formats.torch.edit.operators import ATTRIBUTES, PAD_MODES, even_pads, pads_listed, target_of
from conrepair.formats.torch.load.framework import example_inputs, load_module
from conrepair.formats.torch.read.call import bound
from conrepair.ground.graph.layer_graph import Array, Attribute, Node
from conrepair.ground.graph.operators import ELEMENTWISE_BINARY
from conrepair.ground.runtime.errors import ModelLoadError
from conrepair.ground.runtime.files.whole import sha256_of, whole_output

_SHAPES = {"view": "size", "reshape": "shape", "_unsafe_view": "size", "expand": "size"}
_GLOBAL = dict(zip(GLOBAL_POOLS, (torch.ops.aten.amax.default, torch.ops.aten.mean.dim), strict=True))


class TorchEditor(Editor):
    """Changes of the graph are written as .pt2; a factory's module keeps its form when only numbers change."""

    def __init__(self, model: Model, program: torch.export.ExportedProgram | None = None) -> None:
        super().__init__(model)
        self._program = _program(model) if program is None else program
        self._state: dict[str, torch.Tensor] = {}
        self._reshaped = False
        self._instead: dict[str, torch.fx.Node] = {}  # what stands for results by now
        self._nodes = {node.name: node for node in self._program.graph.nodes}
        self.graph = graph_of_program(self._program)

    def again(self) -> TorchEditor:
        """To export a module takes a hundred times as long as to copy what came of it."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # copying its own trees, PyTorch warns of how it looks at them
            program = copy.deepcopy(self._program)
        for before, node in zip(self._program.graph.nodes, program.graph.nodes, strict=True):
            node.name = before.name  # a copy of `input` would be `input_1`, which the signature doesn't know
        return TorchEditor(self._model, program)

    def names(self, node: Node) -> frozenset[str]:
        """The fx node's name and the module's path."""
        return frozenset({node.name, module_path(self._nodes[node.name])})

    def _set_parameter(self, node: Node, role: str, array: Array) -> None:
        """Change the state dict, also behind moves; numbers that several operators share aren't touched."""
        target = self._nodes[node.name]
        held = meaning_in_file(target, constants_of(self._program))[1].get(role)
        if held is None:
            self.refuse(f"{target.target} has no argument for {role}")
        state, pieces = state_of(self._program), as_stored(held, array)
        if pieces is None:
            self.refuse(f"{target.target} has no place for a {role} of {array.shape}")
        for holder, stored in zip(held.nodes, pieces, strict=True):
            tensor = stored.to(holder.meta["val"].dtype)
            if holder.name in state:
                self._set_state(state[holder.name], tensor)
            elif (places := stored_places(self._program, holder, target)) is not None:
                self._set_places(*places, tensor)
            else:
                target.replace_input_with(holder, add_buffer(self._program, tensor, "conrepair"))
                drop_unread(self._program.graph, holder)
                self._reshaped = True

    def _give_bias(self, node: Node, array: Array) -> None:
        """A buffer, for an argument that may be left out."""
        target = self._nodes[node.name]
        if bound(target)[1].get("bias", "") is not None:
            self._refuse_bias(node)
        numbers = torch.from_numpy(np.array(array)).to(target.meta["val"].dtype)
        self._set_argument(target, "bias", add_buffer(self._program, numbers, "conrepair"))
        self._reshaped = True

    def _set_places(self, key: str, places: Array, tensor: torch.Tensor) -> None:
        changed = self._program.state_dict[key].detach().clone()
        changed.reshape(-1)[torch.from_numpy(places)] = tensor
        self._set_state(key, changed)

    def _set_state(self, key: str, tensor: torch.Tensor) -> None:
        holders = [self._nodes[name] for name, held in state_of(self._program).items() if held == key]
        if sum(len(holder.users) for holder in holders) != 1:
            self.refuse(f"{key} has several readers")
        before = self._program.state_dict[key]
        self._state[key] = tensor
        is_parameter = isinstance(before, torch.nn.Parameter)
        value = torch.nn.Parameter(tensor, before.requires_grad) if is_parameter else tensor
        self._program.state_dict[key] = value

    def set_attributes(self, node: Node, changes: Mapping[str, Attribute]) -> None:
        """Change arguments."""
        target = self._nodes[node.name]
        names = ATTRIBUTES.get(name_of_operator(target), {})
        for attribute, value in changes.items():
            if attribute not in names:
                self.refuse(f"{target.target} has no argument for {attribute}")
            self._set_argument(target, names[attribute], self._stored(node, attribute, value))
        self._reshaped = True

    def set_operator(self, node: Node, operator: str, attributes: Mapping[str, Attribute]) -> None:
        """Call another ATen operator."""
        target = self._nodes[node.name]
        target.target, arguments = self._call(target, node, operator, attributes)
        target.args, target.kwargs = tuple(arguments), {}
        self._reshaped = True

    def remove(self, node: Node, index: int = 0) -> None:
        """Readers take the input instead."""
        old = self._nodes[node.name]
        fed = [self._value(name) for name in node.inputs]
        for user in list(old.users):
            user.replace_input_with(old, fed[index])
        self._rename_output(old, fed[index])
        self._instead[node.name] = fed[index]
        self._program.graph.erase_node(old)
        self._reshaped = True

    def graft(self, tensor: str, operations: Sequence[Operation], label: str, readers: Sequence[Node] = ()) -> None:
        """New nodes in the module of the tensor's own."""
        source = self._value(tensor)
        graph = self._program.graph
        first = source.next
        while first.op == "placeholder":
            first = first.next
        wanted = [self._nodes[item.name] for item in readers] or list(source.users)
        writer = TorchWriter(self._program, source, label)
        with graph.inserting_before(first):
            result = writer.compute(operations, self._value)
        for user in wanted:
            user.replace_input_with(source, result)
        if not readers:
            self._rename_output(source, result)
            self._instead[tensor] = result
        put_in_order(graph)
        if not readers:
            drop_unread(graph, source)
        self._reshaped = True

    def _value(self, tensor: str) -> torch.fx.Node:
        """What stands for a tensor by now."""
        node = self._instead.get(tensor, self._nodes.get(tensor))
        while getattr(node, "_erased", False) and node is not None and node.name in self._instead:
            node = self._instead[node.name]
        if node is None or getattr(node, "_erased", False):
            self.refuse(f"the program has no tensor {tensor}")
        return node

    def exchange_reads(self, one: str, two: str, readers: Sequence[Node]) -> None:
        """Nodes stay where they are, unless one would read what comes later."""
        self._exchange(self._value(one), self._value(two), [self._nodes[reader.name] for reader in readers])
        put_in_order(self._program.graph)

    def _exchange(self, one: torch.fx.Node, two: torch.fx.Node, readers: Sequence[torch.fx.Node]) -> None:
        exchanged = {one: two, two: one}
        for reader in readers:
            reader.args = torch.fx.map_arg(reader.args, lambda item: exchanged.get(item, item))
            reader.kwargs = torch.fx.map_arg(reader.kwargs, lambda item: exchanged.get(item, item))
            self._reshaped = True

    def add_output(self, tensor: str, operations: Sequence[Operation] = (), place: int | None = None) -> None:
        """A program of one output gives a tuple then."""
        output = self._program.graph.output_node()
        writer = TorchWriter(self._program, output, tensor)
        with self._program.graph.inserting_before(output):
            added = writer.compute(operations, self._value) if operations else self._value(tensor)
        values = [*output.args[0]]
        place = len(values) if place is None else place
        values.insert(place, added)
        output.args = (tuple(values),)
        specs = self._program.graph_signature.output_specs
        specs.insert(place, OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(name=added.name), None))
        self._return(len(values) - 1, len(values))
        self._reshaped = True

    def _return(self, before: int, now: int) -> None:
        """Let the program return another number of outputs, in the sort of list that it has."""
        call = self._program.module_call_graph[0].signature
        given = None if call is None else pytree.tree_unflatten(range(before), call.out_spec)
        plain = isinstance(given, tuple | list) and list(given) == list(range(before))
        if call is None or not (plain or given == 0):
            self.refuse("the outputs aren't a plain list")
        kind = type(given) if isinstance(given, tuple | list) else tuple
        call.out_spec = pytree.tree_structure(kind(range(now)))

    def drop_output(self, place: int) -> None:
        """In the output node, the signature, and the structure that the program returns."""
        output = self._program.graph.output_node()
        values, here = list(output.args[0]), self._output_now(place)
        self._return(len(values), len(values) - 1)
        dropped = values.pop(here)
        self._left_out.add(place)
        output.args = (tuple(values),)
        del self._program.graph_signature.output_specs[here]
        drop_unread(self._program.graph, dropped)
        self._reshaped = True

    def exchange_outputs(self, one: int, two: int) -> None:
        """In the output node and the signature."""
        output = self._program.graph.output_node()
        values = list(output.args[0])
        specs = self._program.graph_signature.output_specs
        one, two = self._output_now(one), self._output_now(two)
        values[one], values[two] = values[two], values[one]
        output.args = (tuple(values),)
        specs[one].arg, specs[two].arg = specs[two].arg, specs[one].arg
        self._reshaped = True

    def exchange_inputs(self, one: int, two: int) -> None:
        """Exchange the readers of two placeholders."""
        first, second = self._nodes[self.graph.inputs[one]], self._nodes[self.graph.inputs[two]]
        self._exchange(first, second, list(dict.fromkeys([*first.users, *second.users])))

    def _set_shape(self, node: Node, shape: tuple[int, ...]) -> None:
        """Numbers among the arguments; sizes that are computed follow."""
        target = self._nodes[node.name]
        name = _SHAPES.get(name_of_operator(target))
        if name is not None:
            said = bound(target)[1][name]
            self._set_argument(target, name, [new if isinstance(old, int) and old >= 0 else old
                                              for old, new in zip(said, shape, strict=True)])  # fmt: skip
            self._reshaped = True

    def _declare_inputs(self, shapes: Mapping[str, Sequence[int | None]]) -> None:
        """Shapes and types of each result are computed anew."""
        graph = self._program.graph
        held = [node for node in graph.nodes if node.op == "placeholder"]
        known = {node: node.meta["val"] for node in held}
        for node in held:
            if node.name in shapes:
                before = known[node]
                pairs = zip(before.shape, shapes[node.name], strict=True)
                sizes = [old if new is None else new for old, new in pairs]
                with before.fake_mode:
                    known[node] = torch.empty(sizes, dtype=before.dtype)
        modes = [value.fake_mode for value in known.values() if isinstance(value, FakeTensor)]
        try:
            FakeTensorProp(self._program.graph_module, modes[0]).propagate_dont_convert_inputs(*known.values())
        # Operators check their arguments with errors of any type.
        except Exception as error:
            reason = f"with these sizes of its inputs the program can't be computed: {error}"
            raise NotEditableError(reason) from error
        self._program.example_inputs = None
        self._reshaped = True

    def save(self, folder: Path, stem: str) -> Model:
        """Write a state dict, or a .pt2 file."""
        if self._model.factory is not None and not self._reshaped:
            return self._save_state(folder / f"{stem}.pt")
        path = folder / f"{stem}.pt2"
        self._program.graph.lint()
        self._program.graph_module.recompile()
        with whole_output(path) as temporary:
            torch.export.save(self._program, temporary)
        return Model("torch", str(path), sha256_of(path), trust=self._model.trust)

    def _save_state(self, path: Path) -> Model:
        state = torch.load(self._model.path, map_location="cpu", weights_only=True)
        missing = set(self._state) - set(state)
        if missing:
            self.refuse(f"the state dict has no {', '.join(sorted(missing))}")
        with whole_output(path) as temporary:
            torch.save({**state, **self._state}, temporary)
        return Model("torch", str(path), sha256_of(path), self._model.factory, self._model.inputs, self._model.trust)

    def _stored(self, node: Node, attribute: str, value: Attribute) -> Any:
        if attribute == "pads" and isinstance(value, tuple):
            return pads_listed(value) if node.op == "Pad" else even_pads(value)
        if attribute == "coordinate_transformation_mode":
            if value not in {"align_corners", "half_pixel"}:
                self.refuse(f"{value} can't be said")
            return value == "align_corners"
        if attribute == "mode" and isinstance(value, str):
            return PAD_MODES.get(value, value)
        return list(value) if isinstance(value, tuple) else value

    def _set_argument(self, node: torch.fx.Node, name: str, value: Any) -> None:
        schema = node.target._schema.arguments
        arguments = {**bound(node)[1], name: value}
        positions = [item.name for item in schema if not item.kwarg_only]
        if name not in positions:
            node.kwargs = {**node.kwargs, name: value}
            return
        count = max(len(node.args), positions.index(name) + 1)
        node.args = tuple(arguments[item] for item in positions[:count])

    def _call(
        self, old: torch.fx.Node, node: Node, operator: str, attributes: Mapping[str, Attribute]
    ) -> tuple[Any, list[Any]]:
        arguments = bound(old)[1]
        if operator in POOLS:
            if node.op not in POOLS:
                self.refuse(f"{old.target} has no windows")
            names = ("kernel_shape", "strides", "pads")
            window = [self._stored(node, name, node.attributes[name]) for name in names]
            aten = torch.ops.aten
            target = aten.max_pool2d.default if operator == "MaxPool" else aten.avg_pool2d.default
            dilation = [[1, 1]] if operator == "MaxPool" else []
            return target, [old.args[0], *window, *dilation, bool(node.attributes["ceil_mode"])]
        if operator in _GLOBAL:
            if node.op not in _GLOBAL:
                self.refuse(f"{node.name} is no global pooling")
            return _GLOBAL[operator], [old.args[0], [2, 3], True]
        if operator == "InstanceNormalization":
            parts = [arguments[name] for name in ("input", "weight", "bias")]
            rest = [None, None, True, 0.0, arguments["eps"], False]
            return torch.ops.aten.instance_norm.default, [*parts, *rest]
        target, rest = target_of(operator, attributes)
        if operator in ELEMENTWISE_BINARY:
            if not all(isinstance(item, torch.fx.Node) for item in old.args[:2]) and operator in {"Max", "Min"}:
                self.refuse(f"{node.name} has a number as operand")
            return target, [*old.args[:2], *rest]
        return target, [old.args[0], *rest]

    def _rename_output(self, old: torch.fx.Node, new: torch.fx.Node) -> None:
        """Let the signature's outputs follow a result."""
        for spec in self._program.graph_signature.output_specs:
            if getattr(spec.arg, "name", None) == old.name:
                spec.arg.name = new.name


def _program(model: Model) -> torch.export.ExportedProgram:
    module = load_module(model)
    exported = getattr(module, "exported", None)
    if isinstance(exported, torch.export.ExportedProgram):
        return exported
    if model.factory is None:
        raise ModelLoadError(
            f"{model.path} can't be edited: it's neither an exported program (.pt2) nor a factory's state dict. "
            "Export the network with torch.export.save."
        )
    examples = example_inputs(model.inputs)
    shapes = tuple(
        {axis: torch.export.Dim.AUTO for axis, size in enumerate(spec.shape) if isinstance(size, str)}
        for spec in model.inputs
    )
    with torch.no_grad():
        return torch.export.export(module, examples, dynamic_shapes=shapes)


EDITOR = TorchEditor
