"""What nodes of the neutral graph compute: by operators' records, or ONNX Runtime what hangs on channels, or steps.

Frameworks' graphs are tested with it: what a node says must be what its framework computes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from conrepair.formats.editing.operation import Operation, what_is_read
from conrepair.ground.graph.layer_graph import LayerGraph, Node
from conrepair.ground.graph.operators import OPERATORS, RECURRENT_ACTIVATIONS
from conrepair.ground.operators.rows import softmax
from conrepair.ground.runtime.onnx_session import open_session

Array = npt.NDArray[Any]
_NUMBERED = re.compile(r"^operand_\d+$")


def assert_follows_vocabulary(graph: LayerGraph) -> None:
    """Exactly the vocabulary's attributes, only its roles, values of plain types, parameters as they say."""
    for node in graph.nodes:
        if node.op in OPERATORS:
            assert set(node.attributes) == set(OPERATORS[node.op].attributes), node
            roles = {_NUMBERED.sub("operand", role) for role in node.parameters}
            assert roles <= set(OPERATORS[node.op].parameters), node
        for value in node.attributes.values():
            items = value if isinstance(value, tuple) else (value,)
            assert all(item is None or type(item) in {int, float, str, bool} for item in items), node
        for parameter in node.parameters.values():
            array = parameter.numpy()
            assert (array.shape, array.dtype.name) == (parameter.shape, parameter.dtype), parameter
    names = [node.name for node in graph.nodes]
    assert len(names) == len(set(names))


def vocabulary_errors(node: Node) -> list[str]:
    """Where a node of a vocabulary operator hasn't exactly the attributes, or has other roles, than that says."""
    operator = OPERATORS.get(node.op)
    if operator is None:
        return []
    errors = []
    if set(node.attributes) != set(operator.attributes):
        errors.append(f"{node.name} ({node.op}): attributes {sorted(node.attributes)}")
    lists = [name for name, value in node.attributes.items() if isinstance(value, list)]
    errors += [f"{node.name} ({node.op}): {name} is a list" for name in lists]
    roles = {_NUMBERED.sub("operand", role) for role in node.parameters}
    if not roles <= set(operator.parameters):
        errors.append(f"{node.name} ({node.op}): parameters {sorted(node.parameters)}")
    for role, parameter in node.parameters.items():
        numbers = parameter.numpy()
        if numbers.shape != parameter.shape:
            errors.append(f"{node.name} ({node.op}): {role} is {numbers.shape}, not {parameter.shape}")
    return errors


def compute(node: Node, inputs: list[Array]) -> list[Array] | None:
    """The node's outputs; None for operators that aren't known here, or states that aren't said."""
    if node.op in _FUNCTIONS:
        found = _FUNCTIONS[node.op](node, inputs)
    elif node.op in OPERATORS and callable(OPERATORS[node.op].value):
        roles = {role: parameter.numpy() for role, parameter in node.parameters.items()}
        read = what_is_read(Operation(node.op, node.inputs, node.attributes, roles), inputs, np.asarray)
        read += [roles[role] for role in ("slope", "scale", "bias") if role in roles]
        found = OPERATORS[node.op].compute(*read, **node.attributes)
    else:
        return None
    results = found if isinstance(found, list | tuple) else [found]
    return None if found is None else [np.asarray(item) for item in results[: len(node.outputs)]]


def by_onnx(op: str, inputs: list[Array | None], outputs: int = 1, opset: int = 19, **attributes: Any) -> list[Array]:
    """Run one ONNX operator."""
    import onnx
    from onnx import helper

    names = [f"i{index}" if value is not None else "" for index, value in enumerate(inputs)]
    given = {name: value for name, value in zip(names, inputs, strict=True) if value is not None}
    results = [f"o{index}" for index in range(outputs)]
    kinds = {name: helper.np_dtype_to_tensor_dtype(value.dtype) for name, value in given.items()}
    graph = helper.make_graph(
        [helper.make_node(op, names, results, **attributes)],
        "node",
        [helper.make_tensor_value_info(name, kinds[name], value.shape) for name, value in given.items()],
        [helper.make_tensor_value_info(name, kinds["i0"], None) for name in results],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    session = open_session(model.SerializeToString(), threads=1)
    del onnx
    return [np.asarray(value) for value in session.run(None, given)]


def _role(node: Node, role: str) -> Array | None:
    return node.parameters[role].numpy() if role in node.parameters else None


def _channels_first(node: Node, array: Array) -> Array:
    return np.ascontiguousarray(np.moveaxis(array, -1, 1)) if node.channels_last else array


def _back(node: Node, array: Array) -> Array:
    return np.moveaxis(array, 1, -1) if node.channels_last else array


_WINDOW = ("kernel_shape", "strides", "pads", "dilations")


def _window(node: Node, inputs: list[Array]) -> Array:
    attributes = {name: node.attributes[name] for name in (*_WINDOW, "group") if name in node.attributes}
    if node.op == "ConvTranspose":
        attributes["output_padding"] = node.attributes["output_padding"]
    if node.op.endswith("Pool"):
        attributes["ceil_mode"] = int(bool(node.attributes["ceil_mode"]))
    if node.op == "AveragePool":
        attributes["count_include_pad"] = int(bool(node.attributes["count_include_pad"]))
    operands: list[Array | None] = [_channels_first(node, inputs[0])]
    if node.op.startswith("Conv"):
        operands += [_role(node, "weight"), _role(node, "bias")]
    return _back(node, by_onnx(node.op, operands, **attributes)[0])


def _along_channels(node: Node, array: Array, rank: int) -> Array:
    return array if node.channels_last else array.reshape(-1, *[1] * (rank - 2))


def _scaled(node: Node, normal: Array, arrange: Callable[[Array], Array]) -> Array:
    scale, bias = _role(node, "scale"), _role(node, "bias")
    normal = normal if scale is None else normal * arrange(scale)
    return normal if bias is None else normal + arrange(bias)


def _batch_normalization(node: Node, inputs: list[Array]) -> Array:
    def arrange(values: Array) -> Array:
        return _along_channels(node, values, inputs[0].ndim)

    mean, variance = (arrange(node.parameters[role].numpy()) for role in ("mean", "variance"))
    normal = (inputs[0] - mean) / np.sqrt(variance + node.attributes["epsilon"])
    return _scaled(node, normal, arrange)


def _group_normalization(node: Node, inputs: list[Array]) -> Array:
    first = _channels_first(node, inputs[0])
    groups = first.reshape(len(first), int(node.attributes.get("groups", first.shape[1])), -1)
    centred = groups - groups.mean(-1, keepdims=True)
    normal = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + node.attributes["epsilon"])
    whole = _back(node, normal.reshape(first.shape))
    return _scaled(node, whole, lambda values: _along_channels(node, values, whole.ndim))


def _recurrent(node: Node, inputs: list[Array]) -> list[Array] | None:
    """Directions side by side in the last axis; behind them the states that are left."""
    attributes, states = node.attributes, inputs[1:] or [_role(node, role) for role in ("initial_h", "initial_c")]
    if any(array is not None and array.ndim != 3 for array in states):  # a mask
        return None
    options = {name: attributes[name] for name in ("hidden_size", "direction")}
    if attributes["activations"]:
        alone = len(attributes["activations"]) == len(RECURRENT_ACTIVATIONS[node.op])
        options["activations"] = [*attributes["activations"]] * (len(node.parameters["W"].numpy()) if alone else 1)
    if node.op == "GRU":
        options["linear_before_reset"] = int(bool(attributes["linear_before_reset"]))
    sequence = np.swapaxes(inputs[0], 0, 1) if attributes["batch_first"] else inputs[0]
    count = 3 if node.op == "LSTM" else 2
    operands = [np.ascontiguousarray(sequence), *(_role(node, role) for role in "WRB"), None, *states[: count - 1]]
    operands += [None] * (4 + count - len(operands)) + [_role(node, "P")] if node.op == "LSTM" else []
    steps, *final = by_onnx(node.op, operands, count, 14, **options)
    whole = np.concatenate([steps[:, place] for place in range(steps.shape[1])], -1)  # [steps, batch, ...]
    if not attributes["return_sequences"]:
        whole = np.concatenate([*final[0]], -1)
    elif attributes["batch_first"]:
        whole = np.swapaxes(whole, 0, 1)
    return [whole, *final]


def _attention(node: Node, inputs: list[Array]) -> Array | None:
    if len(inputs) > 3 or node.attributes["is_causal"]:
        return None
    heads = int(node.attributes["num_heads"])

    def projected(role: str, array: Array) -> Array:
        bias = _role(node, f"{role}_bias")
        whole = array @ node.parameters[role].numpy() + (0 if bias is None else bias)
        return np.swapaxes(whole.reshape(*whole.shape[:2], heads, -1), 1, 2)

    query, key, value = map(projected, ("query", "key", "value"), inputs)
    scores = query @ np.swapaxes(key, -1, -2) * node.attributes["scale"]
    mixed = np.swapaxes(softmax(scores, -1) @ value, 1, 2)
    bias = _role(node, "output_bias")
    result: Array = mixed.reshape(*mixed.shape[:2], -1) @ node.parameters["output"].numpy()
    return result if bias is None else result + bias


def _resize(node: Node, inputs: list[Array]) -> Array:
    attributes = node.attributes
    scales = np.asarray(attributes["scales"], np.float32)
    options = {name: attributes[name] for name in ("mode", "coordinate_transformation_mode", "nearest_mode")}
    if node.channels_last:
        scales = np.moveaxis(scales[None], -1, 0).ravel()[[0, -1, *range(1, len(scales) - 1)]]
    if options["mode"] == "cubic":
        options |= {"cubic_coeff_a": attributes["cubic_coeff_a"]}
    return _back(node, by_onnx("Resize", [_channels_first(node, inputs[0]), None, scales], **options)[0])


def _moved_blocks(node: Node, inputs: list[Array]) -> Array:
    return _back(node, by_onnx(node.op, [_channels_first(node, inputs[0])], **node.attributes)[0])


_FUNCTIONS: dict[str, Callable[[Node, list[Array]], Any]] = {
    "Identity": lambda node, inputs: inputs[0] if inputs else None,  # of truth values, too
    **dict.fromkeys(("Conv", "ConvTranspose", "MaxPool", "AveragePool"), _window),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), _recurrent),
    **dict.fromkeys(("GroupNormalization", "InstanceNormalization"), _group_normalization),
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), lambda node, inputs: inputs[0]),
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth", "LRN"), _moved_blocks),
    "BatchNormalization": _batch_normalization,
    "Attention": _attention,
    "Resize": _resize,
}
