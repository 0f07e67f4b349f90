"""Edits of a model as data: what is changed where, applied by the editor of the model's format.

One of them changes no file: the recipe that the model is to be fed by.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from conrepair.formats.editing.editor import Editor, NotEditableError
from conrepair.formats.editing.operation import Operation
from conrepair.ground.data.pictures.recipe import Recipe
from conrepair.ground.graph.kinds import EditKind
from conrepair.ground.graph.layer_graph import Array, Attribute, LayerGraph, Node
from conrepair.ground.graph.operators import QUANTIZING


class FileEdit:
    """A change of a model's file."""


@dataclass(frozen=True)
class _OfNode(FileEdit):
    """A change of one node.

    Attributes:
        node: Its name in the editor's graph.
    """

    node: str


@dataclass(frozen=True)
class _OfTensor(FileEdit):
    """A change of one tensor.

    Attributes:
        tensor: Its name in the editor's graph.
    """

    tensor: str


@dataclass(frozen=True)
class SetParameter(_OfNode):
    """Other numbers for one node.

    Attributes:
        role: Of the parameter.
        values: In the convention of `conrepair.ground.graph.operators`.
    """

    role: str
    values: Array


@dataclass(frozen=True)
class Requantize(_OfNode):
    """Other numbers in place of quantized ones, with the scales that they take.

    Attributes:
        role: Of the parameter.
        values: In the convention of `conrepair.ground.graph.operators`.
        bias: The numbers of a bias in steps of these, where it was wrong with them; None where it stays.
    """

    role: str
    values: Array
    bias: Array | None = None


@dataclass(frozen=True)
class SetRange(_OfTensor):
    """Another scale and zero point for an activation, and for what's only moved from it.

    Attributes:
        low: Smallest number that it must hold.
        high: Largest.
    """

    low: float
    high: float


@dataclass(frozen=True)
class SetAttributes(_OfNode):
    """Other attributes for one node.

    Attributes:
        attributes: In the convention of `conrepair.ground.graph.operators`.
    """

    attributes: Mapping[str, Attribute]


@dataclass(frozen=True)
class SetOperator(_OfNode):
    """Another operator of the same operands.

    Attributes:
        operator: In the vocabulary.
        attributes: Of that operator.
    """

    operator: str
    attributes: Mapping[str, Attribute]


@dataclass(frozen=True)
class Remove(_OfNode):
    """One node less: who read it reads one of its inputs.

    Attributes:
        input: Position of that input.
    """

    input: int = 0


@dataclass(frozen=True)
class Graft(_OfTensor):
    """A tensor computed by other operators: who read it reads their result.

    Attributes:
        operations: The operators; they read tensors of the editor's graph, that one too, or earlier results.
        readers: Names of the only nodes that shall read the result; all, and an output, if there are none.
    """

    operations: tuple[Operation, ...]
    readers: tuple[str, ...] = ()


@dataclass(frozen=True)
class ComputeInFloat(_OfTensor):
    """A tensor that integers computed, computed with real numbers.

    Attributes:
        operations: As of a `Graft`; integers that they read are dequantized first, and quantized at the end where
            the tensor is one of integers.
    """

    operations: tuple[Operation, ...]


@dataclass(frozen=True)
class SwapInputs(_OfNode):
    """Two inputs of a node, exchanged.

    Attributes:
        one: Position.
        two: The other one's.
    """

    one: int
    two: int


@dataclass(frozen=True)
class ExchangeReads(FileEdit):
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
class _Exchange(FileEdit):
    """Two inputs or outputs of the model.

    Attributes:
        one: Position.
        two: The other one's.
    """

    one: int
    two: int


class ExchangeOutputs(_Exchange):
    """Two outputs of the model, exchanged; their names stay where they are."""


class MoveOutputs(_Exchange):
    """Two outputs of the model, each given in the other's place, with their names."""


class ExchangeInputs(_Exchange):
    """Two inputs of the model, exchanged; their names stay where they are."""


@dataclass(frozen=True)
class AddOutput(FileEdit):
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
class DropOutput(FileEdit):
    """An output of the model, given no more; what only it needed goes too.

    Attributes:
        output: Position.
    """

    output: int


@dataclass(frozen=True)
class SetInputShapes(FileEdit):
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


Edit = FileEdit | SetRecipe


class _Sort(NamedTuple):
    method: str
    kind: EditKind
    words: str = ""


EDITS: Mapping[type[Edit], _Sort] = {
    SetParameter: _Sort("set_parameter", "parameters", "the {role} of `{node}` is taken from the original"),
    Requantize: _Sort("requantize", "precision", "the {role} of `{node}` is quantized anew, from the original's"),
    SetRange: _Sort("set_range", "precision", "`{tensor}` is quantized for values from {low:.4g} to {high:.4g}"),
    ComputeInFloat: _Sort("graft", "precision"),
    SetAttributes: _Sort("set_attributes", "attributes"),
    SetOperator: _Sort("set_operator", "operators", "`{node}` is {operator}"),
    Remove: _Sort("remove", "operators", "`{node}` is removed"),
    Graft: _Sort("graft", "operators"),
    SwapInputs: _Sort("swap_inputs", "operators", "the inputs {one} and {two} of `{node}` are exchanged"),
    ExchangeReads: _Sort("exchange_reads", "operators"),
    AddOutput: _Sort("add_output", "outputs"),
    DropOutput: _Sort("drop_output", "outputs", "the output {output} is removed"),
    ExchangeOutputs: _Sort("exchange_outputs", "outputs", "the outputs {one} and {two} are exchanged"),
    MoveOutputs: _Sort("move_outputs", "outputs", "the outputs {one} and {two} are put in each other's place"),
    ExchangeInputs: _Sort("exchange_inputs", "inputs", "the inputs {one} and {two} are exchanged"),
    SetInputShapes: _Sort("set_input_shapes", "sizes"),
    SetRecipe: _Sort("", "recipe"),
}
"""By class: the editor's method that makes the edit, which takes what the edit says in the same order; what the edit
changes; and what it does, for a person, where that is said in the same words each time."""

_LABELS = {Graft: "repaired", ComputeInFloat: "float"}
_OF_GRAPH = {"attributes", "operators"}  # kinds of edits that give no node other parameters
_TRANSPOSE = "Transpose"
_LONG = 8  # entries of a table that are too many to list


def apply(edit: FileEdit, editor: Editor) -> None:
    """Make an edit.

    Args:
        edit: What to change.
        editor: Of the model; changed.

    Raises:
        NotEditableError: if the model has no such node, or its format can't express the edit.
    """
    given = dict(vars(edit))
    if "node" in given:
        given["node"] = _node(given["node"], editor)
    if "readers" in given:
        given["readers"] = [_node(name, editor) for name in given["readers"]]
    if isinstance(edit, Graft | ComputeInFloat):
        editor.graft(edit.tensor, edit.operations, _LABELS[type(edit)], given.get("readers", ()))
        return
    bias = given.pop("bias", None)
    getattr(editor, EDITS[type(edit)].method)(*given.values())
    if bias is not None:
        editor.set_parameter(given["node"], "bias", bias)


def gives_numbers(edit: Edit) -> bool:
    """Whether an edit may give a node other parameters."""
    return EDITS[type(edit)].kind not in _OF_GRAPH


def kind_of(edit: Edit, graph: LayerGraph) -> EditKind:
    """The sort of an edit: what a repair may be confined to.

    Args:
        edit: Any.
        graph: The editor's, of the model that it's for.
    """
    kind, node = EDITS[type(edit)].kind, getattr(edit, "node", None)
    operators = {item.op for item in graph.nodes if item.name == node}
    if isinstance(edit, Graft):
        operators = {operation.operator for operation in edit.operations}
    return "transposes" if kind in _OF_GRAPH and operators == {_TRANSPOSE} else kind


def _shown(value: Attribute) -> str:
    """An attribute; of a table that's too long to list that it's the source's."""
    return "as in the original" if isinstance(value, tuple) and len(value) > _LONG else str(value)


def in_words(edit: Edit) -> str:
    """What an edit does, for a person."""
    words = EDITS[type(edit)].words.format(**vars(edit))
    match edit:
        case SetParameter() if edit.values.size == 1 and edit.values.dtype.kind == "f":
            return f"the {edit.role} of `{edit.node}` is {edit.values.item():.4g}"
        case Requantize() if edit.bias is not None:
            return f"{words}, and the scale of the bias follows"
        case ComputeInFloat() if edit.operations[-1].attributes.get("to") == "float16":
            operators = _but_for({"Cast"}, edit.operations)
            return f"`{edit.tensor}` is computed in float32 ({operators}), between Casts: float16 overflows"
        case ComputeInFloat():
            operators = _but_for(QUANTIZING, edit.operations)
            return f"`{edit.tensor}` is computed in float32 ({operators}): no change of its quantization repairs it"
        case SetAttributes():
            listing = ", ".join(
                f"no {name} of its own" if value is None else f"{name} {_shown(value)}"
                for name, value in edit.attributes.items()
            )
            return f"`{edit.node}` has {listing}"
        case Graft():
            return _graft_in_words(edit)
        case ExchangeReads():
            readers = " and ".join(f"`{name}`" for name in edit.readers)
            return f"{readers} read{'s' if len(edit.readers) == 1 else ''} `{edit.one}` and `{edit.two}` exchanged"
        case AddOutput():
            computed = ", computed by " + _chain_in_words(edit.operations) if edit.operations else ""
            return f"`{edit.tensor}` is an output{computed}"
        case SetInputShapes():
            shapes = ([".." if size is None else str(size) for size in shape] for shape in edit.shapes)
            listing = ", ".join(f"[{', '.join(shape)}]" for shape in shapes)
            return f"its inputs are declared with the original's shapes: {listing}"
        case SetRecipe():
            return f"the preprocessing of photos is changed: {'; '.join(edit.changes)}"
        case _:
            return words


def _but_for(some: Collection[str], operations: Sequence[Operation]) -> str:
    return ", ".join(item.operator for item in operations if item.operator not in some)


def _graft_in_words(edit: Graft) -> str:
    operators = _chain_in_words(edit.operations)
    read = dict.fromkeys(item for operation in edit.operations for item in operation.inputs if isinstance(item, str))
    others = ", ".join(f"`{name}`" for name in read if name and name != edit.tensor)
    where = f" for {', '.join(f'`{name}`' for name in edit.readers)}" if edit.readers else ""
    if edit.tensor in read:
        joined = f", with {others}" if others else ""
        return f"{operators} is put behind `{edit.tensor}`{joined}{where}"
    return f"`{edit.tensor}` is computed anew{where}, by {operators}, from {others or 'constants'}"


def _chain_in_words(operations: Sequence[Operation]) -> str:
    return ", ".join(map(_operation_in_words, operations))


def _operation_in_words(operation: Operation) -> str:
    """An operator; of a Transpose, which axes it exchanges is what matters."""
    axes = operation.attributes.get("perm") if operation.operator == _TRANSPOSE else None
    return f"Transpose [{', '.join(map(str, axes))}]" if isinstance(axes, (list, tuple)) else operation.operator


def _node(name: str, editor: Editor) -> Node:
    found = next((node for node in editor.graph.nodes if node.name == name), None)
    if found is None:
        raise NotEditableError(f"the model has no node {name}")
    return found
