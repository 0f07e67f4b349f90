"""A PyTorch model as one flat graph of operators that change nothing they read, for inputs of known sizes."""

from __future__ import annotations

import dataclasses
import operator
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensorMode
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Graph, Node
from torch.utils import _pytree as pytree

from conrepair.formats.models.model import Model
from conrepair.formats.torch.load.double import arithmetic, widened
from conrepair.formats.torch.load.framework import exported_program, flatten, load_module
from conrepair.formats.torch.read.simplify import computed, simplify, spell_out
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import ModelLoadError


@dataclass(frozen=True)
class Program:
    """A graph whose nodes are placeholders, calls, attributes (subgraphs of control flow) and the output.

    Attributes:
        module: Holds the graph.
        states: Parameters, buffers and constant tensors, by the name of their placeholder.
        state_names: How the state dict calls them, by the name of their placeholder.
        inputs: The placeholders of the model's tensors, in order.
        outputs: Name of each result as running the model gives it, and where it comes from, in order.
        values: What each node gives, without content: fake tensors, numbers, tuples.
        double: Whether its operators are to be called in float64.
    """

    module: torch.fx.GraphModule
    states: Mapping[str, torch.Tensor]
    state_names: Mapping[str, str]
    inputs: tuple[Node, ...]
    outputs: tuple[tuple[str, Node], ...]
    values: dict[Node, Any]
    double: bool = False


def open_program(
    model: Model, inputs: Sequence[TensorSpec], is_known: Callable[[Any], bool], *, double: bool = False
) -> Program:
    """Export a module, or take an exported program as it is.

    Args:
        model: A PyTorch model.
        inputs: Its inputs with sizes that are numbers.
        is_known: Whether an operator needn't be written in simpler ones.
        double: Whether everything that is a real number becomes one of 64 bits.

    Raises:
        ModelLoadError: if the model can't be loaded, has no graph, or doesn't take such inputs.
    """
    exported = _exported(model, inputs)
    try:
        program = _prepared(exported, inputs)
        if program is None:  # writes into views: PyTorch's own rewriting knows them, at the price of other names
            program = _prepared(exported.run_decompositions({}), inputs)
        if program is None:
            raise ModelLoadError(f"{model.path} changes tensors in a way that PyTorch can't write without that.")
        simplify(program.module.graph, program.values, [node for _, node in program.outputs])
        spell_out(program.module.graph, program.values, program.inputs, is_known)
        return _doubled(program, inputs) if double else program
    except ModelLoadError:
        raise
    # Operators of any library run here on tensors without content.
    except Exception as error:
        raise _size_error(model, inputs, error) from error


def is_tuple_item(node: Node) -> bool:
    """Whether a node takes one of the results of an operator that has several."""
    return node.target is operator.getitem and isinstance(node.args[0], Node)


def _exported(model: Model, inputs: Sequence[TensorSpec]) -> torch.export.ExportedProgram:
    module = load_module(model)
    exported = exported_program(module)
    if exported is not None:
        return exported
    if isinstance(module, torch.jit.ScriptModule):
        raise ModelLoadError(
            f"{model.path} is TorchScript, which has no graph of operators. It is read by way of ONNX."
        )
    examples = tuple(torch.zeros(spec.shape, dtype=getattr(torch, spec.dtype)) for spec in inputs)
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")  # recurrent layers assign their weights anew
            return torch.export.export(module, examples, strict=False)
    # The network's own code runs here, which may raise anything.
    except Exception as error:
        reason = ["", *str(error).strip().splitlines()][-1][:400]
        raise ModelLoadError(
            f"{model.path} can't be exported as a graph: {type(error).__name__}: {reason}. It is read by way of ONNX."
        ) from error


def _prepared(exported: torch.export.ExportedProgram, inputs: Sequence[TensorSpec]) -> Program | None:
    """Without in-place operators; None where those need PyTorch's own rewriting."""
    module = exported.graph_module
    placeholders = {node.name: node for node in module.graph.nodes if node.op == "placeholder"}
    states, names, given = {}, {}, []
    for spec in exported.graph_signature.input_specs:
        if spec.kind is InputKind.USER_INPUT:
            node = placeholders[spec.arg.name]
            if isinstance(node.meta.get("val"), torch.Tensor):
                given.append(node)
        elif spec.target is not None:
            stored = exported.state_dict.get(spec.target)
            states[spec.arg.name] = exported.constants[spec.target] if stored is None else stored.detach()
            names[spec.arg.name] = spec.target
    if len(given) != len(inputs):
        raise ValueError(f"it takes {len(given)} tensors, not {len(inputs)}")
    values, exact = _infer_values(module, states, dict(zip(given, inputs, strict=True)))
    if not _replace_in_place(module.graph, values, exact=exact):
        return None
    return Program(module, states, names, tuple(given), _outputs(exported), values)


def _outputs(exported: torch.export.ExportedProgram) -> tuple[tuple[str, Node], ...]:
    """The results under the names that `frameworks.torch` gives them."""
    (output,) = (node for node in exported.graph_module.graph.nodes if node.op == "output")
    specs = exported.graph_signature.output_specs
    results = [node for node, spec in zip(output.args[0], specs, strict=True) if spec.kind is OutputKind.USER_OUTPUT]
    stand_ins = [
        torch.empty(0) if isinstance(node, Node) and isinstance(node.meta.get("val"), torch.Tensor) else None
        for node in results
    ]
    structure = exported.call_spec.out_spec
    if structure is None:
        raise ValueError("the program doesn't say how its results are arranged")
    found = {id(tensor): node for tensor, node in zip(stand_ins, results, strict=True) if tensor is not None}
    return tuple((name, found[id(tensor)]) for name, tensor in flatten(pytree.tree_unflatten(stand_ins, structure)))


def _doubled(program: Program, inputs: Sequence[TensorSpec]) -> Program:
    states = {name: tensor.to(widened(tensor.dtype)) for name, tensor in program.states.items()}
    given = {
        node: TensorSpec(spec.name, spec.shape, "float64" if spec.is_float else spec.dtype)
        for node, spec in zip(program.inputs, inputs, strict=True)
    }
    values, exact = _infer_values(program.module, states, given, double=True)
    if not exact:
        values = pytree.tree_map_only(torch.Tensor, lambda value: value.to(widened(value.dtype)), values)
    return dataclasses.replace(program, states=states, values=values, double=True)


def _size_error(model: Model, inputs: Sequence[TensorSpec], error: Exception) -> ModelLoadError:
    reason = ["", *str(error).strip().splitlines()][-1][:400]
    return ModelLoadError(
        f"{model.path} doesn't run on inputs {'; '.join(map(str, inputs))}: {type(error).__name__}: {reason}"
    )


# Operators that write into what they read are replaced, where that is simple: a segment captures tensors that later
# ones would overwrite (ReLU(inplace=True) behind a residual), so every value has to stay what it was.


def _replace_in_place(graph: Graph, values: Mapping[Node, Any], *, exact: bool) -> bool:
    """Let readers behind an in-place operator read its result, and let the operator make a new tensor.

    Args:
        graph: Changed in place; names stay.
        values: What its nodes give.
        exact: Whether these share storages as the real ones do.

    Returns:
        Whether that was possible for all. It isn't where one tensor is written and another part or view of the same
        storage is read afterwards.
    """
    nodes = list(graph.nodes)
    position = {node: index for index, node in enumerate(nodes)}
    owners: dict[int, list[Node]] = {}
    for node in nodes:
        for storage in _storages(values.get(node)):
            owners.setdefault(storage, []).append(node)
    for node in nodes:
        if node.op != "call_function" or not _writes(node):
            continue
        if not exact:
            return False
        function = _pure_variant(node)
        written = node.args[0] if node.args else None
        if function is None or not isinstance(written, Node) or not _keeps_type(node, values):
            return False
        (storage,) = _storages(values[written])
        for owner in owners[storage]:
            later = [user for user in owner.users if position[user] > position[node]]
            if owner is node or position[owner] > position[node] or not later:
                continue
            if not _same_view(values[owner], values[written]):
                return False
            for user in later:
                user.replace_input_with(owner, node)
        node.target = function
    return True


def _writes(node: Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and bool(node.target._schema.is_mutable)


def _pure_variant(node: Node) -> Any:
    """The operator that gives the same as a new tensor, if only the first argument is written."""
    schema = node.target._schema
    written = [argument.name for argument in schema.arguments if argument.is_write]
    if written != [schema.arguments[0].name] or not schema.name.endswith("_"):
        return None
    library, name = schema.name.removesuffix("_").split("::")
    packet = getattr(getattr(torch.ops, library), name, None)
    return getattr(packet, schema.overload_name or "default", None)


def _keeps_type(node: Node, values: Mapping[Node, Any]) -> bool:
    """Whether the new tensor is of the type of the one that's written to: other operands don't widen it."""
    types = {value.dtype for value in map(values.get, node.all_input_nodes) if isinstance(value, torch.Tensor)}
    return len(types) == 1


def _storages(value: Any) -> Iterator[int]:
    for leaf in pytree.tree_leaves(value):
        if isinstance(leaf, torch.Tensor):
            yield leaf.untyped_storage()._cdata


def _same_view(one: Any, other: torch.Tensor) -> bool:
    return (
        isinstance(one, torch.Tensor)
        and one.shape == other.shape
        and one.stride() == other.stride()
        and one.storage_offset() == other.storage_offset()
        and one.dtype == other.dtype
    )


# What each node gives, without computing it.


def _infer_values(
    module: torch.fx.GraphModule,
    states: Mapping[str, torch.Tensor],
    given: Mapping[Node, TensorSpec],
    *,
    double: bool = False,
) -> tuple[dict[Node, Any], bool]:
    """Run a graph on fake tensors, which have sizes, strides and shared storages, but no content.

    Args:
        module: Holds the graph.
        states: Tensors, by the name of their placeholder.
        given: The inputs, with sizes that are numbers.
        double: Whether operators are called in float64.

    Returns:
        By node, fake tensors, numbers, tuples and lists of them; and whether these are what running the graph gives.
        Where sizes depend on the data, it's what the program itself says, in which sizes may be symbols.

    Raises:
        ValueError: if an input has another number of dimensions, a fixed size, or another type.
    """
    for node, spec in given.items():
        _check(node, spec)
    graph = module.graph
    values: dict[Node, Any] = {}
    # Grad mode off: in training IR a reshape of a parameter would otherwise be traced for gradients.
    with FakeTensorMode(allow_non_fake_inputs=True) as mode, torch.no_grad(), arithmetic(double=double):
        try:
            for node in graph.nodes:
                if node in given:
                    values[node] = torch.empty(given[node].shape, dtype=getattr(torch, given[node].dtype))
                elif node.op == "placeholder":
                    values[node] = mode.from_tensor(states[node.name]) if node.name in states else None
                elif node.op == "get_attr":
                    values[node] = attribute_of(module, node)
                elif node.op == "call_function":
                    if isinstance(node.target, torch._ops.HigherOrderOperator):  # they may ask for a compiler
                        return _recorded(graph, given), False
                    values[node] = computed(node, values.__getitem__)
        except (DataDependentOutputException, DynamicOutputShapeException):
            return _recorded(graph, given), False
    return values, True


def attribute_of(module: torch.fx.GraphModule, node: Node) -> Any:
    """What a get_attr node names: a subgraph of control flow, or a tensor."""
    found: Any = module
    for part in str(node.target).split("."):
        found = getattr(found, part)
    return found


def _recorded(graph: torch.fx.Graph, given: Mapping[Node, TensorSpec]) -> dict[Node, Any]:
    values = {node: node.meta.get("val") for node in graph.nodes}
    for node, spec in given.items():
        values[node] = torch.empty(spec.shape, dtype=getattr(torch, spec.dtype), device="meta")
    for node in graph.nodes:
        if node.target is torch.ops.aten.sym_size.int and node.args[0] in given:
            values[node] = given[node.args[0]].shape[node.args[1]]
    return values


def _check(node: Node, spec: TensorSpec) -> None:
    recorded = node.meta.get("val")
    if not isinstance(recorded, torch.Tensor):
        return
    fits = len(recorded.shape) == len(spec.shape) and all(
        not isinstance(fixed, int) or fixed == size for fixed, size in zip(recorded.shape, spec.shape, strict=True)
    )
    if not fits:
        raise ValueError(f"input {node.name} has the fixed shape {list(recorded.shape)}")
