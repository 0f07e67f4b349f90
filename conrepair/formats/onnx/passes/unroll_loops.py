"""Write out loops whose number of rounds follows from constants: recurrent layers that a converter took apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnx_ir

from conrepair.ground.onnx_graphs.computing import Leading, computing, leading_to
from conrepair.ground.onnx_graphs.infer_shapes import infer_shapes
from conrepair.ground.onnx_graphs.initializers import constant_of, new_initializer
from conrepair.ground.runtime.onnx_session import open_session

_LONGEST = 512  # rounds; more are left to whoever can read loops
_CONTEXT = 2  # of a body's inputs, the round's number and the condition; carried values follow
_AXES_AS_INPUT = 13  # first opset in which Unsqueeze takes its axes so


def unroll_loops(model: onnx_ir.Model) -> None:
    """Replace each Loop of the main graph whose rounds are known, in place; constants must have been folded."""
    for node in list(model.graph):
        if node.op_type == "Loop" and not node.domain:
            rounds = _rounds(node, model)
            if rounds:
                _write_out(node, rounds, model)
    infer_shapes(model)


def _rounds(node: onnx_ir.Node, model: onnx_ir.Model) -> int | None:
    """How many rounds it takes; None when that depends on values, or is too many."""
    body = node.attributes["body"].as_graph()
    bound, going = (constant_of(value) for value in node.inputs[:_CONTEXT])
    if (node.inputs[0] is not None and bound is None) or (node.inputs[1] is not None and going is None):
        return None
    if going is not None and not going.item():
        return 0
    most = _LONGEST + 1 if bound is None else int(bound.item())
    if body.outputs[0] is body.inputs[1] or _is_true(body.outputs[0]):
        return most if most <= _LONGEST else None
    deciding = _deciding(node, body)
    return None if deciding is None else _simulate(*deciding, node, body, model, min(most, _LONGEST + 1))


def _is_true(value: onnx_ir.Value) -> bool:
    constant = constant_of(value)
    return constant is not None and bool(constant.item())


def _deciding(node: onnx_ir.Node, body: onnx_ir.Graph) -> tuple[list[int], Leading] | None:
    """Positions of the carried values that the condition depends on, from round to round, and what computes these.

    None when it depends on anything that isn't constant.
    """
    carried = {value: place for place, value in enumerate(body.inputs[_CONTEXT:])}
    places: list[int] = []
    while True:
        found = leading_to(_outputs(body, places), set(body.inputs))
        if found is None or any(item.graph is not body for item in found.nodes):
            return None
        more = [carried[value] for value in found.read if value in carried and carried[value] not in places]
        if any(constant_of(node.inputs[place + _CONTEXT]) is None for place in more):
            return None
        if not more:
            return places, found
        places += more


def _outputs(body: onnx_ir.Graph, places: Sequence[int]) -> list[onnx_ir.Value]:
    """The condition, and what some of the carried values become."""
    return [body.outputs[0], *(body.outputs[place + 1] for place in places)]


def _simulate(
    places: list[int], leading: Leading, node: onnx_ir.Node, body: onnx_ir.Graph, model: onnx_ir.Model, most: int
) -> int | None:
    """Run what decides about going on, round by round."""
    outputs = _outputs(body, places)
    inputs = [body.inputs[0], body.inputs[1], *(body.inputs[place + _CONTEXT] for place in places)]
    state = [np.asarray(constant_of(node.inputs[place + _CONTEXT])) for place in places]
    fed = [np.array(0, np.int64), np.array(True), *state]
    names = [f"result/{index}" for index in range(len(outputs))]
    ends = [
        onnx.helper.make_node("Identity", [str(value.name)], [name])
        for value, name in zip(outputs, names, strict=True)
    ]
    like = {str(value.name): array for value, array in zip(inputs, fed, strict=True)}
    proto = computing([*leading.nodes, *ends], like, names, model.opset_imports, leading.constants)
    session = open_session(proto.SerializeToString())
    for done in range(most):
        going, *state = session.run(
            None, dict(zip(like, [np.array(done, np.int64), np.array(True), *state], strict=True))
        )
        if not going.item():
            return done + 1
    return most if most <= _LONGEST else None


def _write_out(node: onnx_ir.Node, rounds: int, model: onnx_ir.Model) -> None:
    graph, body = model.graph, node.attributes["body"].as_graph()
    carried: list[onnx_ir.Value | None] = list(node.inputs[_CONTEXT:])
    rows: list[list[onnx_ir.Value]] = []
    going = new_initializer(graph, f"{node.outputs[0].name}/going", np.array(True))
    for done in range(rounds):
        place = f"{node.outputs[0].name}/round {done}"
        number = new_initializer(graph, f"{place}/number", np.array(done, np.int64))
        given = dict(zip(body.inputs, [number, going, *carried], strict=True))
        results = _round(body, given, graph, node, place)[1:]
        carried = list(results[: len(carried)])
        rows.append(results[len(carried) :])
    columns = [_stacked([row[index] for row in rows], node, model) for index in range(len(rows[0]))]
    for old, new in zip(node.outputs, [*carried, *columns], strict=True):
        if new is None:
            raise ValueError(f"{old.name} of a loop has no value")
        if old.is_graph_output():
            passing = onnx_ir.node("Identity", [new])
            node.prepend(passing)
            new = passing.outputs[0]
            new.name, old.name = old.name, f"{old.name}/looped"
            new.type, new.shape = old.type, old.shape
        onnx_ir.convenience.replace_all_uses_with([old], [new], replace_graph_outputs=True)
    graph.remove(node, safe=True)


def _round(
    body: onnx_ir.Graph,
    given: Mapping[onnx_ir.Value, onnx_ir.Value | None],
    graph: onnx_ir.Graph,
    before: onnx_ir.Node,
    place: str,
) -> list[onnx_ir.Value]:
    """Copy a body in front of a node, with values for its inputs; its outputs."""
    for name, value in body.initializers.items():
        if value.const_value is not None and value not in given:
            given = {**given, value: new_initializer(graph, f"{place}/{name}", value.const_value.numpy())}
    copy = body.clone(allow_outer_scope_values=True)
    known = dict(zip(copy.inputs, (given[value] for value in body.inputs), strict=True))
    for name, value in body.initializers.items():
        known[copy.initializers[name]] = given[value]
    nodes, outputs = list(copy), list(copy.outputs)
    copy.outputs.clear()
    copy.remove(nodes)
    for item in nodes:
        item.name = f"{place}/{item.name}" if item.name else None
        for value in item.outputs:
            value.name = f"{place}/{value.name}" if value.name else value.name
    for old, new in known.items():
        if new is None:
            raise ValueError(f"{old.name} of a loop's body has no value")  # ONNX has no optional carried values
        onnx_ir.convenience.replace_all_uses_with([old], [new])
    graph.insert_before(before, nodes)
    return [known.get(value) or value for value in outputs]


def _stacked(column: list[onnx_ir.Value], before: onnx_ir.Node, model: onnx_ir.Model) -> onnx_ir.Value:
    """The rows along a new first axis."""
    graph, place = model.graph, before.outputs[0].name
    axes: list[onnx_ir.Value] = []
    if model.opset_imports.get("", 1) >= _AXES_AS_INPUT:
        axes = [new_initializer(graph, f"{place}/{column[0].name}/axes", np.array([0], np.int64))]
    attributes = {} if axes else {"axes": [0]}
    parts = [
        onnx_ir.node("Unsqueeze", [row, *axes], attributes, name=f"{place}/{row.name}/row {index}")
        for index, row in enumerate(column)
    ]
    rows = [part.outputs[0] for part in parts]
    joined = onnx_ir.node("Concat", rows, {"axis": 0}, name=f"{place}/{column[0].name}/rows")
    for made in (*parts, joined):
        made.outputs[0].name = made.name
    graph.insert_before(before, [*parts, joined])
    return joined.outputs[0]
