"""Calls in Keras 2's configurations: those with tensors as named arguments, and TensorFlow's functions as layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_FUNCTION = "TFOpLambda"
_NUMPY, _NN = "keras.src.ops.numpy", "keras.src.ops.nn"  # as Keras 3 writes them
_OPERATIONS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("__operators__.add", "math.add"), (_NUMPY, "Add")),
    **dict.fromkeys(("__operators__.sub", "math.subtract"), (_NUMPY, "Subtract")),
    "math.multiply": (_NUMPY, "Multiply"),
    **dict.fromkeys(("math.truediv", "math.divide"), (_NUMPY, "TrueDivide")),
    "math.maximum": (_NUMPY, "Maximum"),
    "math.minimum": (_NUMPY, "Minimum"),
    **{f"math.{name.lower()}": (_NUMPY, name) for name in ("Exp", "Sqrt", "Square", "Tanh")},
    **dict.fromkeys(("math.sigmoid", "nn.sigmoid"), (_NN, "Sigmoid")),
    "nn.relu": (_NN, "Relu"),
    "nn.relu6": (_NN, "Relu6"),
    "nn.silu": (_NN, "Silu"),
}
"""Functions of one or two tensors; what else they take but a name isn't translated."""


def with_calls(layer: dict[str, Any]) -> dict[str, Any]:
    """A layer of a functional network whose calls Keras 3 reads as what they are.

    Args:
        layer: With its `inbound_nodes`.
    """
    config = layer.get("config", {})
    if layer.get("class_name") == _FUNCTION:
        return _operation(layer, config)
    return layer | {"inbound_nodes": [_call(node) for node in layer["inbound_nodes"]]}


def with_own_calls(config: Any) -> Any:
    """A functional network whose references count the calls of a Sequential in it as Keras 3 does.

    Keras 2 counts the one by which a Sequential was made, too.

    Args:
        config: Of a network; what's none of several layers is given back.
    """
    layers = config.get("layers", []) if isinstance(config, dict) else []
    sequential = {item["config"]["name"] for item in layers if item.get("class_name") == "Sequential"}
    if not sequential or "output_layers" not in config:
        return config
    ends = {name: _counted(config[name], sequential) for name in ("input_layers", "output_layers") if name in config}
    calls = [item | {"inbound_nodes": _counted(item.get("inbound_nodes", []), sequential)} for item in layers]
    return config | ends | {"layers": calls}


def _counted(value: Any, names: set[str]) -> Any:
    """References to calls of some layers, from 0 where they were counted from 1."""
    if isinstance(value, dict):
        return {key: _counted(item, names) for key, item in value.items()}
    if not isinstance(value, list):
        return value
    if _is_reference(value[:3]) and value[0] in names:
        return [value[0], max(0, value[1] - 1), *value[2:]]
    return [_counted(item, names) for item in value]


def _operation(layer: dict[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """A function as Keras 3's own; as it was where there's none, or it takes more than tensors and numbers."""
    known = _OPERATIONS.get(str(config.get("function")))
    nodes = layer["inbound_nodes"]
    named = [{key: value for key, value in node[3].items() if key != "name" or value is not None} for node in nodes]
    if known is None or any(item.keys() - {"y"} for item in named):
        return layer
    module, kind = known
    calls = [
        {"args": [_tensor(node), *map(_argument, item.values())], "kwargs": {}}
        for node, item in zip(nodes, named, strict=True)
    ]
    made = {"module": module, "class_name": kind, "registered_name": kind, "config": {"name": config["name"]}}
    return {key: value for key, value in layer.items() if key != "build_config"} | made | {"inbound_nodes": calls}


def _call(node: Any) -> Any:
    """A call with tensors among its named arguments in Keras 3's form; others as they are."""
    if not isinstance(node, list) or not node or not all(map(_is_entry, node)):
        return node
    named = node[0][3] if len(node[0]) > 3 else {}
    if not any(map(_is_reference, named.values())):
        return node
    read = [_tensor(entry) for entry in node]
    values = {key: _argument(value) for key, value in named.items()}
    return {"args": read if len(read) == 1 else [read], "kwargs": values}


def _is_entry(value: Any) -> bool:
    return isinstance(value, list) and _is_reference(value[:3])


def _is_reference(value: Any) -> bool:
    """Whether it names a tensor: by layer, call and place among what the call gives."""
    if not isinstance(value, list) or len(value) != 3:
        return False
    return isinstance(value[0], str) and all(type(item) is int for item in value[1:])


def _argument(value: Any) -> Any:
    return _tensor(value) if _is_reference(value) else value


def _tensor(entry: list[Any]) -> dict[str, Any]:
    """A tensor that another layer gives; its shape is found when that is called."""
    return {"class_name": "__keras_tensor__", "config": {"shape": [], "dtype": "float32", "keras_history": entry[:3]}}
