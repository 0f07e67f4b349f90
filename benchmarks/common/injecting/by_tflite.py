"""Faults put into TFLite files by the format's schema: buffers, options, operators' codes and operands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.injecting.fault import Means, OwnFault
from benchmarks.common.injecting.numbers import BIASES, WEIGHTS
from conrepair.formats.models.model import Model
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.runtime.files.whole import sha256_of

__all__ = ["BY_TFLITE"]

_WEIGHTED = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
_OTHERS = {
    "ADD": "SUB",
    "SUB": "ADD",
    "MUL": "ADD",
    "LOGISTIC": "TANH",
    "TANH": "LOGISTIC",
    "ELU": "RELU",
    "LEAKY_RELU": "RELU",
    "HARD_SWISH": "RELU",
    "AVERAGE_POOL_2D": "MAX_POOL_2D",
    "MAX_POOL_2D": "AVERAGE_POOL_2D",
    "RSQRT": "SQRT",
    "PAD": "MIRROR_PAD",
}
_OPTIONS = {"ADD": "AddOptions", "SUB": "SubOptions", "MIRROR_PAD": "MirrorPadOptions"}
_NONE, _RELU, _RELU6 = 0, 1, 3  # activations, as the schema numbers them


class _Opened:
    """A file's content as the schema's own objects.

    Attributes:
        model: Of the schema.
        operators: By the name of their first result.
    """

    def __init__(self, model: Model) -> None:
        from ai_edge_litert import schema_py_generated as schema

        self.schema = schema
        self.model = schema.ModelT.InitFromPackedBuf(Path(model.path).read_bytes())
        self.graph = self.model.subgraphs[0]
        self.operators = {self.tensor(item.outputs[0]).name.decode(): item for item in self.graph.operators}
        self._names = {code: name for name, code in vars(schema.BuiltinOperator).items() if isinstance(code, int)}

    def tensor(self, index: int) -> Any:
        return self.graph.tensors[index]

    def sort(self, operator: Any) -> str:
        code = self.model.operatorCodes[operator.opcodeIndex]
        return self._names[max(code.builtinCode, code.deprecatedBuiltinCode)]

    def named(self, *sorts: str) -> list[str]:
        return [name for name, item in self.operators.items() if self.sort(item) in sorts]

    def numbers(self, name: str, place: int, dtype: Any = np.float32) -> Any:
        """A constant operand of a type; None for others."""
        inputs = self.operators[name].inputs
        if place >= len(inputs) or inputs[place] < 0:
            return None
        tensor = self.tensor(inputs[place])
        data = self.model.buffers[tensor.buffer].data
        wanted = getattr(self.schema.TensorType, np.dtype(dtype).name.upper())
        if data is None or not len(data) or tensor.type != wanted:
            return None
        return np.frombuffer(bytes(data), dtype).reshape(tensor.shape)

    def own(self, name: str, place: int, array: Any) -> None:
        """Give an operator numbers of its own."""
        import copy

        buffer = self.schema.BufferT()
        buffer.data = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
        self.model.buffers.append(buffer)
        tensor = copy.copy(self.tensor(self.operators[name].inputs[place]))
        tensor.buffer = len(self.model.buffers) - 1
        self.graph.tensors.append(tensor)
        inputs = list(self.operators[name].inputs)
        inputs[place] = len(self.graph.tensors) - 1
        self.operators[name].inputs = inputs


def _write(opened: _Opened, folder: Path) -> Model:
    import flatbuffers

    builder = flatbuffers.Builder(0)
    builder.Finish(opened.model.Pack(builder), b"TFL3")
    path = folder / "model.tflite"
    path.write_bytes(bytes(builder.Output()))
    return Model("tflite", str(path), sha256_of(path))


def _numbers(role: int, compute: Callable[..., Any], words: str, *more: Any) -> OwnFault:
    def places(opened: _Opened) -> list[str]:
        found = [(name, opened.numbers(name, role)) for name in opened.named(*_WEIGHTED)]
        return [name for name, array in found if array is not None and array.size > 1]

    def change(opened: _Opened, name: str, generator: np.random.Generator) -> str:
        # Depthwise filters have their channels last, all others first.
        depthwise = opened.sort(opened.operators[name]) == "DEPTHWISE_CONV_2D"
        axis = (-1 if depthwise else 0,) * len(more)
        opened.own(name, role, compute(opened.numbers(name, role), generator, *axis))
        return words.format(name=name)

    return OwnFault(Kind.PRECISION if "bits" in words or "float16" in words else Kind.PARAMETERS, places, change)


def _replaced(opened: _Opened, name: str, _: np.random.Generator) -> str:
    operator, schema = opened.operators[name], opened.schema
    before = opened.sort(operator)
    after = _OTHERS[before]
    code = schema.OperatorCodeT()
    code.builtinCode = getattr(schema.BuiltinOperator, after)
    code.deprecatedBuiltinCode, code.version = min(code.builtinCode, 127), 1
    opened.model.operatorCodes.append(code)
    operator.opcodeIndex = len(opened.model.operatorCodes) - 1
    if after in _OPTIONS:
        options = getattr(schema, f"{_OPTIONS[after]}T")()
        options.fusedActivationFunction = getattr(operator.builtinOptions, "fusedActivationFunction", 0)
        operator.builtinOptionsType = getattr(schema.BuiltinOptions, _OPTIONS[after])
        operator.builtinOptions = options
    elif "POOL" not in after:
        operator.builtinOptionsType, operator.builtinOptions = 0, None
    return f"{name} is {after} instead of {before}"


def _option(name: str, value: Callable[[Any], Any], kind: Kind, **conditions: Any) -> OwnFault:
    """A change of one option; `conditions` are what options must be now."""

    def fits(options: Any) -> bool:
        return hasattr(options, name) and all(getattr(options, key, None) == now for key, now in conditions.items())

    def places(opened: _Opened) -> list[str]:
        return [key for key, item in opened.operators.items() if fits(item.builtinOptions)]

    def change(opened: _Opened, place: str, _: np.random.Generator) -> str:
        options = opened.operators[place].builtinOptions
        before = getattr(options, name)
        setattr(options, name, value(before))
        return f"{name} of {place} is {getattr(options, name)} instead of {before}"

    return OwnFault(kind, places, change)


def _exchanged(opened: _Opened, name: str, _: np.random.Generator) -> str:
    operator = opened.operators[name]
    operator.inputs = [operator.inputs[1], operator.inputs[0], *operator.inputs[2:]]
    return f"the operands of {name} are exchanged"


def _keeping_size(opened: _Opened) -> list[str]:
    options = ((name, opened.operators[name].builtinOptions) for name in opened.named(*_WEIGHTED[:2]))
    return [name for name, item in options if item.padding == 0 and item.strideH == item.dilationHFactor == 1]


def _dilated(opened: _Opened, name: str, _: np.random.Generator) -> str:
    options = opened.operators[name].builtinOptions
    options.dilationHFactor = options.dilationWFactor = 2
    return f"{name} is dilated by 2"


def _transposed(opened: _Opened, name: str, _: np.random.Generator) -> str:
    order = opened.numbers(name, 1, np.int32)
    swapped = [{2: 3, 3: 2}.get(int(axis), int(axis)) for axis in order]
    opened.own(name, 1, np.array(swapped, np.int32))
    return f"{name} has the axes {swapped} instead of {order.tolist()}"


def _transpositions(opened: _Opened) -> list[str]:
    found = ((name, opened.numbers(name, 1, np.int32)) for name in opened.named("TRANSPOSE"))
    return [name for name, order in found if order is not None and len(order) == 4]


BY_TFLITE = Means(
    "by-tflite",
    _Opened,
    _write,
    {
        **{name: _numbers(1, compute, words, 0) for name, (compute, words) in WEIGHTS.items()},
        **{name: _numbers(2, compute, words) for name, (compute, words) in BIASES.items()},
        "operator-replaced": OwnFault(Kind.GRAPH, lambda opened: opened.named(*_OTHERS), _replaced),
        "axes-exchanged": OwnFault(Kind.STRUCTURE, _transpositions, _transposed),
        "dilation": OwnFault(Kind.HYPERPARAMETERS, _keeping_size, _dilated),
        "operands-exchanged": OwnFault(
            Kind.GRAPH, lambda opened: opened.named("SUB", "DIV", "CONCATENATION"), _exchanged
        ),
        "activation-fused": _option(
            "fusedActivationFunction", lambda _: _RELU, Kind.GRAPH, fusedActivationFunction=_NONE
        ),
        "activation-lost": _option(
            "fusedActivationFunction", lambda _: _NONE, Kind.GRAPH, fusedActivationFunction=_RELU
        ),
        "bound-lost": _option(
            "fusedActivationFunction", lambda _: _RELU, Kind.HYPERPARAMETERS, fusedActivationFunction=_RELU6
        ),
        "slope": _option("alpha", lambda now: 3 * now, Kind.HYPERPARAMETERS),
        "temperature": _option("beta", lambda now: 2 * now, Kind.HYPERPARAMETERS),
        "gelu-approximated": _option("approximate", lambda now: not now, Kind.GRAPH),
    },
)
