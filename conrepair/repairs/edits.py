"""Edits of a model as data: what is changed where, applied by the editor of the model's format.

One of them changes no file: the recipe that the model is to be fed by.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from conrepair.data.pictures.recipe import Recipe
from conrepair.editors.editor import Editor, NotEditableError
from conrepair.editors.operation import Operation
from conrepair.graph.layer_graph import Array, Attribute, Node
from conrepair.graph.operators import QUANTIZING

__all__ = [
    "ComputeInFloat",
    "Edit",
    "ExchangeInputs",
    "ExchangeOutputs",
    "ExchangeReads",
    "FileEdit",
    "Graft",
    "Remove",
    "Requantize",
    "SetAttributes",
    "SetInputShapes",
    "SetOperator",
    "SetParameter",
    "SetRange",
    "SetRecipe",
    "SwapInputs",
    "apply",
    "in_words",
]


@dataclass(frozen=True)
class SetParameter:
    """Other numbers for one node.

    Attributes:
        node: Its name in the editor's graph.
        role: Of the parameter.
        values: In the convention of `conrepair.graph.operators`.
    """

    node: str
    role: str
    values: Array


@dataclass(frozen=True)
class Requantize:
    """Other numbers in place of quantized ones, with the scales that they take.

    Attributes:
        node: Its name in the editor's graph.
        role: Of the parameter.
        values: In the convention of `conrepair.graph.operators`.
        bias: The numbers of a bias in steps of these, where it was wrong with them; None where it stays.
    """

    node: str
    role: str
    values: Array
    bias: Array | None = None


@dataclass(frozen=True)
class SetRange:
    """Another scale and zero point for an activation, and for what's only moved from it.

    Attributes:
        tensor: Its name in the editor's graph.
        low: Smallest number that it must hold.
        high: Largest.
    """

    tensor: str
    low: float
    high: float


@dataclass(frozen=True)
class SetAttributes:
    """Other attributes for one node.

    Attributes:
        node: Its name in the editor's graph.
        attributes: In the convention of `conrepair.graph.operators`.
    """

    node: str
    attributes: Mapping[str, Attribute]


@dataclass(frozen=True)
class SetOperator:
    """Another operator of the same operands.

    Attributes:
        node: Its name in the editor's graph.
        operator: In the vocabulary.
        attributes: Of that operator.
    """

    node: str
    operator: str
    attributes: Mapping[str, Attribute]


@dataclass(frozen=True)
class Remove:
    """One node less: who read it reads one of its inputs.

    Attributes:
        node: Its name in the editor's graph.
        input: Position of that input.
    """

    node: str
    input: int = 0


@dataclass(frozen=True)
class Graft:
    """A tensor computed by other operators: who read it reads their result.

    Attributes:
        tensor: Its name in the editor's graph.
        operations: The operators; they read tensors of the editor's graph, that one too, or earlier results.
        readers: Names of the only nodes that shall read the result; all, and an output, if there are none.
    """

    tensor: str
    operations: tuple[Operation, ...]
    readers: tuple[str, ...] = ()


@dataclass(frozen=True)
class ComputeInFloat:
    """A tensor that integers computed, computed with real numbers.

    Attributes:
        tensor: Its name in the editor's graph.
        operations: As of a `Graft`; integers that they read are dequantized first, and quantized at the end where
            the tensor is one of integers.
    """

    tensor: str
    operations: tuple[Operation, ...]


@dataclass(frozen=True)
class SwapInputs:
    """Two inputs of a node, exchanged.

    Attributes:
        node: Its name in the editor's graph.
        one: Position.
        two: The other one's.
    """

    node: str
    one: int
    two: int


@dataclass(frozen=True)
class ExchangeReads:
    """Two tensors, of which nodes read each in the other's place.

    Attributes:
        one: Its name in the editor's graph.
        two: The other one's.
        readers: Names of the nodes.
    """

    one: str
    two: str
    readers: tuple[str, ...]


@dataclass(frozen=True)
class ExchangeOutputs:
    """Two outputs of the model, exchanged; their names stay where they are.

    Attributes:
        one: Position.
        two: The other one's.
    """

    one: int
    two: int


@dataclass(frozen=True)
class MoveOutputs:
    """Two outputs of the model, each given in the other's place, with their names.

    Attributes:
        one: Position.
        two: The other one's.
    """

    one: int
    two: int


@dataclass(frozen=True)
class AddOutput:
    """A tensor, as one more output of the model.

    Attributes:
        tensor: One that the model computes, or the name of a new one.
        operations: What computes a new one.
        place: Among the outputs; the last by default.
    """

    tensor: str
    operations: tuple[Operation, ...] = ()
    place: int | None = None


@dataclass(frozen=True)
class DropOutput:
    """An output of the model, given no more; what only it needed goes too.

    Attributes:
        output: Position.
    """

    output: int


@dataclass(frozen=True)
class ExchangeInputs:
    """Two inputs of the model, exchanged; their names stay where they are.

    Attributes:
        one: Position.
        two: The other one's.
    """

    one: int
    two: int


@dataclass(frozen=True)
class SetInputShapes:
    """Other sizes for the model's inputs; other edits are of what comes of that.

    Attributes:
        shapes: Of each input, in order; None for a size that stays as it is.
    """

    shapes: tuple[tuple[int | None, ...], ...]


@dataclass(frozen=True)
class SetRecipe:
    """Photos prepared in another way for the model; its file stays as it is.

    Attributes:
        recipe: By which it's to be fed, with its size.
        changes: What that does otherwise, in words.
    """

    recipe: Recipe
    changes: tuple[str, ...]


FileEdit = (
    SetParameter
    | Requantize
    | SetRange
    | ComputeInFloat
    | SetAttributes
    | SetOperator
    | Remove
    | Graft
    | SwapInputs
    | ExchangeReads
    | AddOutput
    | DropOutput
    | ExchangeOutputs
    | MoveOutputs
    | ExchangeInputs
    | SetInputShapes
)
Edit = FileEdit | SetRecipe

_LABEL, _IN_FLOAT = "repaired", "float"
_LONG = 8  # entries of a table that are too many to list


def apply(edit: FileEdit, editor: Editor) -> None:
    """Make an edit.

    Args:
        edit: What to change.
        editor: Of the model; changed.

    Raises:
        NotEditableError: if the model has no such node, or its format can't express the edit.
    """
    match edit:
        case SetParameter():
            editor.set_parameter(_node(edit.node, editor), edit.role, edit.values)
        case Requantize():
            editor.requantize(_node(edit.node, editor), edit.role, edit.values)
            if edit.bias is not None:
                editor.set_parameter(_node(edit.node, editor), "bias", edit.bias)
        case SetRange():
            editor.set_range(edit.tensor, edit.low, edit.high)
        case ComputeInFloat():
            editor.graft(edit.tensor, edit.operations, _IN_FLOAT)
        case SetAttributes():
            editor.set_attributes(_node(edit.node, editor), edit.attributes)
        case SetOperator():
            editor.set_operator(_node(edit.node, editor), edit.operator, edit.attributes)
        case Remove():
            editor.remove(_node(edit.node, editor), edit.input)
        case Graft():
            readers = [_node(name, editor) for name in edit.readers]
            editor.graft(edit.tensor, edit.operations, _LABEL, readers)
        case SwapInputs():
            editor.swap_inputs(_node(edit.node, editor), edit.one, edit.two)
        case ExchangeReads():
            editor.exchange_reads(edit.one, edit.two, [_node(name, editor) for name in edit.readers])
        case AddOutput():
            editor.add_output(edit.tensor, edit.operations, edit.place)
        case DropOutput():
            editor.drop_output(edit.output)
        case ExchangeOutputs():
            editor.exchange_outputs(edit.one, edit.two)
        case MoveOutputs():
            editor.move_outputs(edit.one, edit.two)
        case ExchangeInputs():
            editor.exchange_inputs(edit.one, edit.two)
        case SetInputShapes():
            editor.set_input_shapes(edit.shapes)


def _shown(value: Attribute) -> str:
    """An attribute; of a table that's too long to list that it's the source's."""
    return "as the source has it" if isinstance(value, tuple) and len(value) > _LONG else str(value)


def in_words(edit: Edit) -> str:
    """What an edit does, for a person."""
    match edit:
        case SetParameter() if edit.values.size == 1 and edit.values.dtype.kind == "f":
            return f"the {edit.role} of `{edit.node}` is {edit.values.item():.4g}"
        case SetParameter():
            return f"the {edit.role} of `{edit.node}` is the source's"
        case Requantize():
            bias = "" if edit.bias is None else ", and so is the bias in steps of them"
            return f"the {edit.role} of `{edit.node}` is the source's, with scales of its own{bias}"
        case SetRange():
            return f"`{edit.tensor}` is quantized for values from {edit.low:.4g} to {edit.high:.4g}"
        case ComputeInFloat() if edit.operations[-1].attributes.get("to") == "float16":
            operators = ", ".join(item.operator for item in edit.operations if item.operator != "Cast")
            return f"`{edit.tensor}` is computed in float32 ({operators}), between Casts: float16 overflows"
        case ComputeInFloat():
            operators = ", ".join(item.operator for item in edit.operations if item.operator not in QUANTIZING)
            return f"`{edit.tensor}` is computed with real numbers ({operators}): no change of its integers fixes it"
        case SetAttributes():
            listing = ", ".join(
                f"no {name} of its own" if value is None else f"{name} {_shown(value)}"
                for name, value in edit.attributes.items()
            )
            return f"`{edit.node}` has {listing}"
        case SetOperator():
            return f"`{edit.node}` is {edit.operator}"
        case Remove():
            return f"`{edit.node}` is taken out"
        case Graft():
            return _graft_in_words(edit)
        case SwapInputs():
            return f"the inputs {edit.one} and {edit.two} of `{edit.node}` are exchanged"
        case ExchangeReads():
            readers = " and ".join(f"`{name}`" for name in edit.readers)
            return f"{readers} read{'s' if len(edit.readers) == 1 else ''} `{edit.one}` and `{edit.two}` exchanged"
        case AddOutput():
            computed = ", computed by " + _chain_in_words(edit.operations) if edit.operations else ""
            return f"`{edit.tensor}` is an output{computed}"
        case DropOutput():
            return f"the output {edit.output} is given no more"
        case ExchangeOutputs():
            return f"the outputs {edit.one} and {edit.two} are exchanged"
        case MoveOutputs():
            return f"the outputs {edit.one} and {edit.two} are given in each other's place"
        case ExchangeInputs():
            return f"the inputs {edit.one} and {edit.two} are exchanged"
        case SetInputShapes():
            shapes = ([".." if size is None else str(size) for size in shape] for shape in edit.shapes)
            listing = ", ".join(f"[{', '.join(shape)}]" for shape in shapes)
            return f"its inputs are declared with the source's sizes: {listing}"
        case SetRecipe():
            return f"photos are prepared otherwise: {'; '.join(edit.changes)}"


def _graft_in_words(edit: Graft) -> str:
    operators = _chain_in_words(edit.operations)
    read = dict.fromkeys(item for operation in edit.operations for item in operation.inputs if isinstance(item, str))
    others = ", ".join(f"`{name}`" for name in read if name and name != edit.tensor)
    where = f" for {', '.join(f'`{name}`' for name in edit.readers)}" if edit.readers else ""
    if edit.tensor in read:
        joined = f", with {others}" if others else ""
        return f"{operators} is put behind `{edit.tensor}`{joined}{where}"
    return f"`{edit.tensor}` is computed anew{where}, by {operators}, from {others or 'constants'}"


def _chain_in_words(operations: tuple[Operation, ...]) -> str:
    return ", ".join(map(_operation_in_words, operations))


def _operation_in_words(operation: Operation) -> str:
    """An operator; of a Transpose, which axes it exchanges is what matters."""
    axes = operation.attributes.get("perm") if operation.operator == "Transpose" else None
    return f"Transpose [{', '.join(map(str, axes))}]" if isinstance(axes, (list, tuple)) else operation.operator


def _node(name: str, editor: Editor) -> Node:
    found = next((node for node in editor.graph.nodes if node.name == name), None)
    if found is None:
        raise NotEditableError(f"the model has no node {name}")
    return found
