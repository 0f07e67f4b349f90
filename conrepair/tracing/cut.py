"""An ONNX graph that is cut at tensors: whoever reads one is given it, and what computes it answers beside."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import onnx

from conrepair.graph.layer_graph import Array
from conrepair.tracing.exact_side import ACCURACY
from conrepair.tracing.propagation import Pieces
from conrepair.truth.bound import Accuracy, Analysis
from conrepair.truth.widening import types_of

__all__ = ["cut_at", "pieces_of"]

_OWN = "computed from what is given: "


def pieces_of(model: onnx.ModelProto, tensors: Collection[str], accuracy: Accuracy = ACCURACY) -> Pieces:
    """What each piece of a network between tensors should give, and how far rounding may lead from it.

    Args:
        model: A network.
        tensors: Results of its nodes.
        accuracy: As of `Analysis.at`.

    Returns:
        Given values of the inputs and of all these tensors, what each of them is when it's computed from those in
        front of it, and the bounds.
    """
    analysis = Analysis(cut_at(model, tensors))

    def run(given: Mapping[str, Array]) -> tuple[dict[str, Array], dict[str, Array]]:
        found = analysis.at(given, accuracy)
        own = {name: f"{_OWN}{name}" for name in tensors}
        return {name: found.truth[it] for name, it in own.items()}, {
            name: found.bound[it] for name, it in own.items()
        }

    return run


def cut_at(model: onnx.ModelProto, tensors: Collection[str]) -> onnx.ModelProto:
    """The network with tensors as inputs, and what computed them as outputs under names of their own.

    Args:
        model: A network; graphs inside its nodes see what's given, too.
        tensors: Results of its nodes.
    """
    made = onnx.ModelProto()
    made.CopyFrom(model)
    types = types_of(model)
    del made.graph.output[:]
    for node in made.graph.node:
        for place, name in enumerate(node.output):
            if name in tensors:
                node.output[place] = _OWN + name
    for name in tensors:
        made.graph.input.append(onnx.helper.make_tensor_value_info(name, types[name], None))
        made.graph.output.append(onnx.helper.make_tensor_value_info(_OWN + name, types[name], None))
    return made
