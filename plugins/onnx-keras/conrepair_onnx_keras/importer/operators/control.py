"""If, and loops of known length: what they contain is written out."""

from __future__ import annotations

from typing import Any

import numpy as np
from keras import ops

from conrepair_onnx_keras.importer.node import ImportedNode, operator
from conrepair_onnx_keras.importer.values import ImportedTensor

_LONGEST = 1024


@operator("If", ignores=("else_branch", "then_branch"), refuses="results whose shapes depend on values")
def branch(node: ImportedNode) -> Any:
    """Where the condition depends on values both branches are computed, and the results of one are taken."""
    if not isinstance(node.value(0), ImportedTensor):
        chosen = "then_branch" if np.asarray(node.constant(0)).item() else "else_branch"
        return node.subgraph(chosen, [])
    condition = ops.reshape(node.tensor(0), ())
    pairs = zip(node.subgraph("then_branch", []), node.subgraph("else_branch", []), strict=True)
    return [_either(node, condition, *pair) for pair in pairs]


def _either(node: ImportedNode, condition: Any, one: Any, two: Any) -> Any:
    if isinstance(one, tuple) or isinstance(two, tuple) or one.shape != two.shape or one.dtype != two.dtype:
        node.refuse("input cond must be constant where the branches' results are of different shapes")
    first, second = node.computed(one), node.computed(two)
    y = ops.where(condition, first.stored, node.stored(second, first.order))
    return node.output(y, first.order, first.shape)


@operator(
    constant=("M", "cond"), ignores=("body",), refuses="conditions that depend on values, more than 1024 rounds"
)
def loop(node: ImportedNode) -> Any:
    count, going = node.constant(0), bool(np.all(node.constant(1, True)))
    carried = [node.value(index) for index in range(2, len(node.inputs))]
    rows: list[list[Any]] = []
    round_ = 0
    while going and (count is None or round_ < count):
        if round_ == _LONGEST:
            node.refuse(f"it takes more than {_LONGEST} rounds")
        condition, *results = node.subgraph("body", [np.array(round_, np.int64), np.array(True), *carried])
        if isinstance(condition, ImportedTensor) or condition.dtype == object:
            node.refuse("whether it goes on depends on values")
        carried = results[: len(carried)]
        rows.append(results[len(carried) :])
        going = bool(condition)
        round_ += 1
    if not rows and node.outputs > len(carried):
        node.refuse("without a round nothing tells the shapes of its rows")
    return [*carried, *(_stack(node, list(column), 0) for column in zip(*rows, strict=True))]


@operator(refuses="more than 1024 rounds, sequences of unknown length, opset 8")
def scan(node: ImportedNode) -> Any:
    if node.opset < 9:
        node.refuse("Scan of opset 8 is another operator")
    sequences = int(node.attribute("num_scan_inputs"))
    states = [node.value(index) for index in range(len(node.inputs) - sequences)]
    inputs = range(len(states), len(node.inputs))
    axes = node.attribute("scan_input_axes", [0] * sequences)
    backward = node.attribute("scan_input_directions", [0] * sequences)
    length = node.known_shape(inputs[0], [axes[0]])[0]
    if length > _LONGEST:
        node.refuse(f"it takes more than {_LONGEST} rounds")
    rows = []
    for round_ in range(length):
        slices = [
            ops.take(node.tensor(index), length - 1 - round_ if back else round_, axis=axis)
            for index, axis, back in zip(inputs, axes, backward, strict=True)
        ]
        results = node.subgraph("body", [*states, *(node.output(item) for item in slices)])
        states = results[: len(states)]
        rows.append(results[len(states) :])
    outputs = len(rows[0])
    reverse = node.attribute("scan_output_directions", [0] * outputs)
    places = node.attribute("scan_output_axes", [0] * outputs)
    columns = [[row[index] for row in (rows[::-1] if reverse[index] else rows)] for index in range(outputs)]
    return [*states, *(_stack(node, column, axis) for column, axis in zip(columns, places, strict=True))]


def _stack(node: ImportedNode, column: list[Any], axis: int) -> Any:
    parts = [node.stored(item) for item in column]
    return (np if all(isinstance(part, np.ndarray) for part in parts) else ops).stack(parts, axis=axis)
