"""Sorts of edits: what a repair may be confined to."""

from __future__ import annotations

from conrepair.graph.kinds import EditKind
from conrepair.graph.layer_graph import LayerGraph
from conrepair.repairs.edits import (
    AddOutput,
    ComputeInFloat,
    DropOutput,
    Edit,
    ExchangeInputs,
    ExchangeOutputs,
    ExchangeReads,
    Graft,
    MoveOutputs,
    Remove,
    Requantize,
    SetAttributes,
    SetInputShapes,
    SetOperator,
    SetParameter,
    SetRange,
    SetRecipe,
    SwapInputs,
)

__all__ = ["kind_of"]

_TRANSPOSE = "Transpose"


def kind_of(edit: Edit, graph: LayerGraph) -> EditKind:
    """The sort of an edit.

    Args:
        edit: Any.
        graph: The editor's, of the model that it's for.
    """
    match edit:
        case SetRecipe():
            return "recipe"
        case ExchangeInputs():
            return "inputs"
        case SetInputShapes():
            return "sizes"
        case AddOutput() | DropOutput() | ExchangeOutputs() | MoveOutputs():
            return "outputs"
        case SetParameter():
            return "parameters"
        case Requantize() | SetRange() | ComputeInFloat():
            return "precision"
        case SetAttributes(node=name):
            return "transposes" if _operator(name, graph) == _TRANSPOSE else "attributes"
        case SetOperator(node=name) | Remove(node=name) | SwapInputs(node=name):
            return "transposes" if _operator(name, graph) == _TRANSPOSE else "operators"
        case ExchangeReads():
            return "operators"
        case Graft():
            put_in = {operation.operator for operation in edit.operations}
            return "transposes" if put_in == {_TRANSPOSE} else "operators"


def _operator(name: str, graph: LayerGraph) -> str | None:
    return next((node.op for node in graph.nodes if node.name == name), None)
