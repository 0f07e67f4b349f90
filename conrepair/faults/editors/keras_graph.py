"""List a Keras model's layers in the neutral vocabulary, those of nested models included."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np

from conrepair.graph.layer_graph import Array, Attribute, LayerGraph, Node, Parameter, Tensor

__all__ = ["ACTIVATION", "FUNCTIONS", "VARIABLES", "functional_of", "graph_of_network", "layout_of", "variables_of"]

ACTIVATION, _LINEAR = "/activation", "/linear"

FUNCTIONS = {
    "relu": "Relu",
    "relu6": "Clip",
    "sigmoid": "Sigmoid",
    "tanh": "Tanh",
    "elu": "Elu",
    "selu": "Selu",
    "gelu": "Gelu",
    "silu": "Swish",
    "hard_sigmoid": "HardSigmoid",
    "hard_silu": "HardSwish",
    "mish": "Mish",
    "softplus": "Softplus",
    "softsign": "Softsign",
    "softmax": "Softmax",
    "log_softmax": "LogSoftmax",
    "leaky_relu": "LeakyRelu",
}
_LAYERS = {
    **dict.fromkeys(("Conv1D", "Conv2D", "Conv3D", "DepthwiseConv1D", "DepthwiseConv2D"), "Conv"),
    **dict.fromkeys(("Conv1DTranspose", "Conv2DTranspose"), "ConvTranspose"),
    "Dense": "MatMul",
    "BatchNormalization": "BatchNormalization",
    "LayerNormalization": "LayerNormalization",
    "GroupNormalization": "GroupNormalization",
    "Embedding": "Gather",
    "LSTM": "LSTM",
    "GRU": "GRU",
    "LeakyReLU": "LeakyRelu",
    "ELU": "Elu",
    "PReLU": "PRelu",
    "Softmax": "Softmax",
    **dict.fromkeys(("MaxPooling1D", "MaxPooling2D"), "MaxPool"),
    **dict.fromkeys(("AveragePooling1D", "AveragePooling2D"), "AveragePool"),
    **dict.fromkeys(("GlobalAveragePooling1D", "GlobalAveragePooling2D"), "ReduceMean"),
    **dict.fromkeys(("GlobalMaxPooling1D", "GlobalMaxPooling2D"), "ReduceMax"),
    "Add": "Add",
    "Subtract": "Sub",
    "Multiply": "Mul",
    "Divide": "Div",
    "Maximum": "Max",
    "Minimum": "Min",
    "Concatenate": "Concat",
    "Flatten": "Reshape",
    "Reshape": "Reshape",
    "Permute": "Transpose",
    "ZeroPadding2D": "Pad",
    "UpSampling2D": "Resize",
}
_FUSING = {"Conv", "ConvTranspose", "MatMul"}

VARIABLES: Mapping[str, Mapping[str, str]] = {
    **{key: {"weight": "kernel", "bias": "bias"} for key in ("Conv", "ConvTranspose", "MatMul")},
    "BatchNormalization": {
        "scale": "gamma",
        "bias": "beta",
        "mean": "moving_mean",
        "variance": "moving_variance",
    },
    **{key: {"scale": "gamma", "bias": "beta"} for key in ("LayerNormalization", "GroupNormalization")},
    "Gather": {"table": "embeddings"},
    "PRelu": {"slope": "alpha"},
    **{key: {"W": "kernel", "R": "recurrent_kernel"} for key in ("LSTM", "GRU")},
}
"""The attribute of a layer that holds a parameter, by operator and role."""

_GATES = {"LSTM": (0, 3, 1, 2), "GRU": (0, 1, 2)}  # ONNX's order from Keras's, by gate
_Layout = Callable[[Array], Array]


def graph_of_network(network: Any) -> tuple[LayerGraph, dict[str, Any]]:
    """The layers of a model.

    Returns:
        The graph, and each node's layer by the node's name.
    """
    listing = _Listing()
    names = {id(tensor): tensor.name for tensor in network.inputs}
    for tensor in network.inputs:
        listing.tensors[tensor.name] = _tensor(tensor.name, tensor)
    known = listing.walk(functional_of(network), names, "")
    outputs = tuple(known[id(tensor)] for tensor in functional_of(network).outputs)
    inputs = tuple(tensor.name for tensor in network.inputs)
    return LayerGraph(inputs, outputs, listing.tensors, tuple(listing.nodes)), listing.layers


def functional_of(network: Any) -> Any:
    """The graph of calls, which a Sequential model keeps inside."""
    return getattr(network, "_functional", None) or network


class _Listing:
    """Collects nodes while models are walked through."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.tensors: dict[str, Tensor] = {}
        self.layers: dict[str, Any] = {}

    def walk(self, network: Any, names: Mapping[int, str], prefix: str) -> dict[int, str]:
        """List one model.

        Args:
            network: With a graph of calls.
            names: Of its input tensors, by their ids.
            prefix: For the nodes' names.

        Returns:
            Names of all its tensors, by their ids.
        """
        known = dict(names)
        for depth in sorted(network._nodes_by_depth, reverse=True):
            for call in network._nodes_by_depth[depth]:
                layer = call.operation
                fed = tuple(known.get(id(tensor), "") for tensor in call.input_tensors)
                if isinstance(layer, keras.layers.InputLayer):
                    continue
                if isinstance(layer, keras.Model):
                    inner = functional_of(layer)
                    aliases = {id(tensor): name for tensor, name in zip(inner.inputs, fed, strict=True)}
                    found = self.walk(inner, aliases, f"{prefix}{layer.name}/")
                    given = [found[id(tensor)] for tensor in inner.outputs]
                else:
                    given = self._add(layer, call, fed, prefix)
                known.update({id(tensor): name for tensor, name in zip(call.output_tensors, given, strict=True)})
        return known

    def _add(self, layer: Any, call: Any, fed: tuple[str, ...], prefix: str) -> list[str]:
        name = prefix + layer.name
        while name in self.layers:
            name += "'"  # another call of a shared layer
        outputs = [name if not place else f"{name}:{place}" for place in range(len(call.output_tensors))]
        for output, tensor in zip(outputs, call.output_tensors, strict=True):
            self.tensors[output] = _tensor(output, tensor)
        op, attributes = _meaning(layer, call)
        fused = _function_of(layer) if op in _FUSING else None
        last = getattr(layer, "data_format", "channels_last") == "channels_last"
        main = Node(
            name=name,
            layer=layer.name,
            op=op,
            native=type(layer).__name__,
            inputs=fed,
            outputs=tuple(outputs) if fused is None else (name + _LINEAR,),
            attributes=attributes,
            parameters=_parameters(layer, op),
            channels_last=last,
        )
        self.nodes.append(main)
        self.layers[name] = layer
        if fused is not None:
            hidden = main.outputs[0]
            like = self.tensors[name]
            self.tensors[hidden] = Tensor(hidden, like.shape, like.dtype, observable=False)
            values = _function_attributes(fused, like)
            self.nodes.append(
                Node(name + ACTIVATION, layer.name, fused, main.native, (hidden,), (name,), values, {}, last)
            )
            self.layers[name + ACTIVATION] = layer
        return outputs


def _meaning(layer: Any, call: Any) -> tuple[str, dict[str, Attribute]]:
    """Operator and attributes."""
    kind = type(layer).__name__
    rank = len(call.input_tensors[0].shape) if call.input_tensors else 0
    if kind == "Activation":
        op = _function_of(layer) or "Identity"
        return op, _function_attributes(op, _tensor("", call.output_tensors[0]))
    if kind == "ReLU":
        if layer.max_value is not None and not layer.negative_slope and not layer.threshold:
            return "Clip", {"min": 0.0, "max": float(layer.max_value)}
        slope = float(layer.negative_slope)
        return ("LeakyRelu", {"alpha": slope}) if slope else ("Relu", {})
    op = _LAYERS.get(kind, kind)
    found: dict[str, Attribute] = {}
    if op in {"Conv", "MaxPool", "AveragePool"}:
        found.update({"auto_pad": "SAME_UPPER"} if layer.padding == "same" else {"pads": (0, 0, 0, 0)})
    if op == "Conv":
        found["dilations"] = tuple(map(int, layer.dilation_rate))
    elif op.endswith("Normalization"):
        found["epsilon"] = float(layer.epsilon)
    elif op == "LeakyRelu":
        found["alpha"] = float(layer.negative_slope)
    elif op == "Elu":
        found["alpha"] = float(layer.alpha)
    elif op in {"Softmax", "Concat"} and isinstance(layer.axis, int):
        found["axis"] = layer.axis % rank
    elif op == "Transpose":
        found["perm"] = (0, *map(int, layer.dims))
    elif op == "Pad" and layer.data_format == "channels_last":
        begins, ends = zip(*layer.padding, strict=True)
        found["pads"] = (0, *map(int, begins), 0, 0, *map(int, ends), 0)
    return op, found


def _function_of(layer: Any) -> str | None:
    """The operator of a layer's activation; None for none."""
    name = getattr(getattr(layer, "activation", None), "__name__", "linear")
    return None if name == "linear" else FUNCTIONS.get(name, name)


def _function_attributes(op: str, tensor: Tensor) -> dict[str, Attribute]:
    """Of an activation that is written as a function's name."""
    if op in {"Softmax", "LogSoftmax"}:
        return {"axis": len(tensor.shape or ()) - 1}
    values: Mapping[str, dict[str, Attribute]] = {
        "Clip": {"min": 0.0, "max": 6.0},
        "Elu": {"alpha": 1.0},
        "Gelu": {"approximate": "none"},
        "LeakyRelu": {"alpha": 0.2},
        "HardSigmoid": {"alpha": 1 / 6, "beta": 0.5},
    }
    return dict(values.get(op, {}))


def variables_of(layer: Any, op: str) -> dict[str, Any]:
    """The variables that hold a layer's parameters, by role."""
    owner = getattr(layer, "cell", layer)
    found = {role: getattr(owner, name, None) for role, name in VARIABLES.get(op, {}).items()}
    return {role: variable for role, variable in found.items() if isinstance(variable, keras.Variable)}


def _parameters(layer: Any, op: str) -> dict[str, Parameter]:
    found = {}
    for role, variable in variables_of(layer, op).items():
        if keras.backend.is_float_dtype(variable.dtype):
            convert = layout_of(layer, op, role)[0]
            shape = tuple(convert(np.empty(variable.shape, np.float32)).shape)
            found[role] = Parameter(variable.path, shape, str(variable.dtype), _loader(variable, convert))
    return found


def _loader(variable: Any, convert: _Layout) -> Callable[[], Array]:
    return lambda: np.ascontiguousarray(convert(np.asarray(variable.numpy(), np.float32)))


def layout_of(layer: Any, op: str, role: str) -> tuple[_Layout, _Layout]:
    """From a layer's numbers to the vocabulary's convention, and back."""
    kind = type(layer).__name__
    if role == "weight" and kind.startswith("DepthwiseConv"):
        return _depthwise(layer)
    if role == "weight" and op in {"Conv", "ConvTranspose"}:
        return (lambda array: np.moveaxis(array, (-1, -2), (0, 1))), (
            lambda array: np.moveaxis(array, (0, 1), (-1, -2))
        )
    if role in {"W", "R"}:
        order = _GATES[op]
        back = tuple(int(place) for place in np.argsort(order))
        return (lambda array: _gates(array.T, order)[None]), (lambda array: _gates(array[0], back).T)
    return (lambda array: array), (lambda array: array)


def _depthwise(layer: Any) -> tuple[_Layout, _Layout]:
    """[*kernel, channels, multiplier] and [channels * multiplier, 1, *kernel]."""
    multiplier = int(layer.depth_multiplier)

    def there(array: Array) -> Array:
        moved = np.moveaxis(array, (-2, -1), (0, 1))
        return moved.reshape((-1, 1, *moved.shape[2:]))

    def back(array: Array) -> Array:
        return np.moveaxis(array.reshape((-1, multiplier, *array.shape[2:])), (0, 1), (-2, -1))

    return there, back


def _gates(array: Array, order: tuple[int, ...]) -> Array:
    parts = np.split(array, len(order))
    return np.concatenate([parts[index] for index in order])


def _tensor(name: str, tensor: Any) -> Tensor:
    shape = tuple(1 if size is None else int(size) for size in tensor.shape)
    return Tensor(name, shape, str(keras.backend.standardize_dtype(tensor.dtype)))
