"""A TFLite flatbuffer as objects: tensors, constants as numbers, operators, and writing it again."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from conrepair.editors.editor import NotEditableError
from conrepair.editors.tflite_stored import StoredModel
from conrepair.graph.layer_graph import Array
from conrepair.networks.tflite_file import unique_names
from conrepair.networks.tflite_subgraphs import InnerConstant, called_subgraphs, inner_constants

__all__ = ["DTYPES", "EditedTfliteFile"]

_KINDS = {value: name for name, value in vars(schema.BuiltinOperator).items() if isinstance(value, int)}
_DEPRECATED_LIMIT = 127  # operators above have a placeholder in the old field

DTYPES = {
    schema.TensorType.FLOAT32: "float32",
    schema.TensorType.FLOAT16: "float16",
    schema.TensorType.INT32: "int32",
    schema.TensorType.UINT8: "uint8",
    schema.TensorType.INT64: "int64",
    schema.TensorType.BOOL: "bool",
    schema.TensorType.INT16: "int16",
    schema.TensorType.INT8: "int8",
}
"""numpy's names of the types that can be changed."""
_TYPES = {name: value for value, name in DTYPES.items()}


class EditedTfliteFile:
    """A graph of a model file, open to changes.

    Attributes:
        graph: The main one, the first; see `inside` for others.
        operators: Its operators, in order.
    """

    def __init__(self, path: Path) -> None:
        self._stored = StoredModel(path)
        self._model = self._stored.model
        self._enter(0)
        self._unread = set(range(len(self._names))) - self._read()  # as the file came
        self._resized = False

    def _enter(self, subgraph: int) -> None:
        self.graph: Any = self._model.subgraphs[subgraph]
        self.operators: list[Any] = self.graph.operators or []
        self.graph.inputs, self.graph.outputs = _numbers(self.graph.inputs), _numbers(self.graph.outputs)
        for operator in self.operators:
            operator.inputs, operator.outputs = _numbers(operator.inputs), _numbers(operator.outputs)
        names = [(tensor.name or b"").decode(errors="replace") for tensor in self.graph.tensors]
        self._names = list(unique_names(names))

    @property
    def ends(self) -> tuple[list[int], list[int]]:
        """The graph's inputs and its outputs."""
        return self.graph.inputs, self.graph.outputs

    def inside(self, subgraph: int) -> EditedTfliteFile:
        """The same file, seen from another of its subgraphs: what's changed there is changed here.

        Args:
            subgraph: Its index.
        """
        other = copy.copy(self)
        other._enter(subgraph)
        return other

    def inner_constants(self, operator: Any) -> dict[str, InnerConstant]:
        """The constants of the subgraphs that an operator calls, by role."""
        return inner_constants(self._model, operator)

    def callers(self, subgraph: int) -> int:
        """How many operators call a subgraph."""
        operators = (operator for graph in self._model.subgraphs for operator in graph.operators or [])
        return sum(subgraph in called_subgraphs(operator) for operator in operators)

    def kind(self, operator: Any) -> str:
        """The operator's name."""
        code = self._model.operatorCodes[operator.opcodeIndex]
        return str(_KINDS.get(max(code.builtinCode, code.deprecatedBuiltinCode), "UNKNOWN"))

    def set_kind(self, operator: Any, kind: str) -> None:
        """Make it another operator; its options stay."""
        wanted = getattr(schema.BuiltinOperator, kind)
        for index, code in enumerate(self._model.operatorCodes):
            if max(code.builtinCode, code.deprecatedBuiltinCode) == wanted:
                operator.opcodeIndex = index
                return
        code = schema.OperatorCodeT()
        code.builtinCode, code.version = wanted, 1
        code.deprecatedBuiltinCode = min(wanted, _DEPRECATED_LIMIT)
        self._model.operatorCodes.append(code)
        operator.opcodeIndex = len(self._model.operatorCodes) - 1

    def name(self, index: int) -> str:
        """A tensor's name, with its number where others have the same."""
        return self._names[index]

    def index(self, name: str) -> int:
        """The tensor of that name."""
        return self._names.index(name)

    def has(self, name: str) -> bool:
        """Whether a tensor is called so."""
        return name in self._names

    def tensor(self, index: int) -> Any:
        """A tensor."""
        return self.graph.tensors[index]

    def dtype(self, index: int) -> str:
        """Numpy's name of a tensor's type; "unknown" for those that can't be changed."""
        return DTYPES.get(self.tensor(index).type, "unknown")

    def shape(self, index: int) -> tuple[int, ...]:
        """A tensor's sizes."""
        return tuple(_numbers(self.tensor(index).shape))

    def set_shape(self, index: int, shape: Sequence[int | None]) -> None:
        """Other sizes for an input; None for one that stays. What is computed from it gets its sizes when saved."""
        tensor = self.tensor(index)
        tensor.shape = _replaced(tensor.shape, shape)
        if tensor.shapeSignature is not None and len(tensor.shapeSignature):
            tensor.shapeSignature = _replaced(tensor.shapeSignature, shape)
        self._resized = True

    def scales(self, index: int) -> Array | None:
        """The scales of a quantized tensor."""
        quantization = self.tensor(index).quantization
        if quantization is None or quantization.scale is None or not len(quantization.scale):
            return None
        return np.asarray(quantization.scale, np.float32)

    def is_quantized(self, index: int) -> bool:
        """Whether whole numbers stand for real ones."""
        return self.scales(index) is not None and "int" in self.dtype(index)

    def constant(self, index: int) -> Array | None:
        """A tensor's numbers as stored; None for one that isn't constant."""
        data = None if index < 0 else self._model.buffers[self.tensor(index).buffer].data
        if data is None or not len(data) or self.dtype(index) == "unknown":
            return None
        array: Array = np.frombuffer(np.asarray(data, np.uint8).tobytes(), self.dtype(index))
        return array.reshape(self.shape(index)) if array.size == np.prod(self.shape(index)) else None

    def constant_behind(self, index: int) -> int | None:
        """The constant that a tensor is, or that it's made from by a DEQUANTIZE."""
        if self.constant(index) is not None:
            return index
        producer = self.producer(index) if index >= 0 else None
        if producer is None or self.kind(producer) != "DEQUANTIZE" or self.constant(producer.inputs[0]) is None:
            return None
        return int(producer.inputs[0])

    def real(self, index: int) -> Array | None:
        """A constant's real numbers as float32; None for one that isn't constant, or isn't real."""
        stored = self.constant(index)
        if stored is None or (stored.dtype.kind != "f" and not self.is_quantized(index)):
            return None
        if stored.dtype.kind == "f":
            return stored.astype(np.float32)
        scale, zero = self._grid(index)
        real: Array = ((stored.astype(np.float32) - zero) * scale).astype(np.float32)
        return real

    def stored(self, index: int, real: Array) -> Array:
        """Real numbers as a tensor stores them; those beyond a quantized one's range saturate."""
        dtype = np.dtype(self.dtype(index))
        if dtype.kind == "f":
            return real.astype(dtype)
        scale, zero = self._grid(index)
        limits = np.iinfo(dtype)
        quantized: Array = np.clip(np.rint(real / scale) + zero, limits.min, limits.max).astype(dtype)
        return quantized

    def set_constant(self, index: int, array: Array) -> None:
        """Give a tensor other numbers, of its type; whoever shares the old ones keeps them."""
        data = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
        place = self.tensor(index).buffer
        if place and self._uses(place) == 1:
            self._model.buffers[place].data = data
            return
        buffer = schema.BufferT()
        buffer.data = data
        self._model.buffers.append(buffer)
        self.tensor(index).buffer = len(self._model.buffers) - 1

    def add_constant(self, array: Array, name: str, like: int | None = None) -> int:
        """A new constant tensor, with the quantization of another one."""
        index = self._add(schema.TensorT() if like is None else copy.deepcopy(self.tensor(like)), name)
        tensor = self.tensor(index)
        tensor.shape, tensor.shapeSignature, tensor.isVariable = np.array(array.shape, np.int32), None, False
        if like is None:
            tensor.type = _TYPES[array.dtype.name]
        self.set_constant(index, array)
        return index

    def add_tensor(self, like: int, name: str, dtype: str | None = None) -> int:
        """A new tensor that is computed.

        Args:
            like: Has the same shape, type and quantization.
            name: Its name.
            dtype: Another type, without quantization.
        """
        tensor = copy.deepcopy(self.tensor(like))
        tensor.buffer = 0
        if dtype is not None:
            tensor.type, tensor.quantization = _TYPES[dtype], None
        return self._add(tensor, name)

    def copy_tensor(self, index: int, name: str) -> int:
        """A second tensor with the same content."""
        return self._add(copy.deepcopy(self.tensor(index)), name)

    def readers(self, index: int) -> list[Any]:
        """The operators that read a tensor."""
        return [operator for operator in self.operators if index in operator.inputs]

    def producer(self, index: int) -> Any | None:
        """The operator that a tensor comes from."""
        return next((operator for operator in self.operators if index in operator.outputs), None)

    def replace_output(self, old: int, new: int) -> None:
        """Let the graph give another tensor, under the same name in its signature."""
        self.graph.outputs = [new if index == old else index for index in self.graph.outputs]
        for entry in self.signature_outputs():
            if entry.tensorIndex == old:
                entry.tensorIndex = new

    def signature_outputs(self) -> list[Any]:
        """What the signatures of the graph call its outputs."""
        return [entry for signature in self._signatures() for entry in signature.outputs or []]

    def add_signature_output(self, name: str, index: int) -> None:
        """Let the signatures give a tensor under a name."""
        for signature in self._signatures():
            entry = schema.TensorMapT()
            entry.name, entry.tensorIndex = name.encode(), index
            signature.outputs = [*(signature.outputs or []), entry]

    def drop_signature_output(self, index: int) -> None:
        """Let the signatures give a tensor under one name less."""
        for signature in self._signatures():
            entries = list(signature.outputs or [])
            found = next((entry for entry in entries if entry.tensorIndex == index), None)
            signature.outputs = [entry for entry in entries if entry is not found]

    def _signatures(self) -> list[Any]:
        return [item for item in self._model.signatureDefs or [] if item.subgraphIndex == 0]

    def save(self, path: Path) -> None:
        """Write the file whole, without the content of constants that nothing reads any more."""
        for index in set(range(len(self._names))) - self._read() - self._unread:
            tensor = self.tensor(index)
            if self._uses(tensor.buffer) == 1:
                self._model.buffers[tensor.buffer].data = None
            tensor.buffer = 0  # the one that holds nothing
        if self._resized:
            self._settle_shapes()
        self._stored.save(path)

    def _settle_shapes(self) -> None:
        """Give what is computed the sizes that kernels find for it, which don't ask the file."""
        try:
            interpreter = Interpreter(
                model_content=self._stored.content(),
                experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
            )
            interpreter.allocate_tensors()
        except (RuntimeError, ValueError) as error:
            raise NotEditableError(f"with these sizes of its inputs the model can't be prepared: {error}") from error
        for detail in interpreter.get_tensor_details():
            index = detail["index"]
            if index < len(self._names) and self.constant(index) is None:
                known, found = self.tensor(index), np.array(detail["shape"], np.int32)
                if self.shape(index) == tuple(found):
                    continue
                known.shape = found
                signature = known.shapeSignature
                if signature is not None and len(signature):
                    known.shapeSignature = np.where(np.asarray(signature) < 0, signature, found).astype(np.int32)

    def _read(self) -> set[int]:
        """The tensors that operators read or give, and the graph's inputs and outputs."""
        operands = (index for item in self.operators for index in (*item.inputs, *item.outputs))
        return {*itertools.chain(*self.ends), *operands}

    def _uses(self, buffer: int) -> int:
        """How many tensors, or pieces of metadata, have their content in a buffer."""
        tensors = [tensor.buffer for graph in self._model.subgraphs for tensor in graph.tensors]
        return [*tensors, *(item.buffer for item in self._model.metadata or [])].count(buffer)

    def _add(self, tensor: Any, name: str) -> int:
        tensor.name = name.encode()
        self.graph.tensors.append(tensor)
        self._names.append(name if name not in self._names else f"{name}#{len(self._names)}")
        return len(self._names) - 1

    def _grid(self, index: int) -> tuple[Array, Array]:
        """Scale and zero point, broadcast against the tensor."""
        scales, quantization = self.scales(index), self.tensor(index).quantization
        if scales is None:
            raise NotEditableError(f"{self.name(index)} isn't quantized")
        zeros = np.zeros(len(scales)) if quantization.zeroPoint is None else np.asarray(quantization.zeroPoint)
        shape = [1] * len(self.shape(index))
        if len(scales) > 1:
            shape[quantization.quantizedDimension] = len(scales)
        return scales.reshape(shape), np.resize(zeros, len(scales)).astype(np.float32).reshape(shape)


def _replaced(sizes: Any, wanted: Sequence[int | None]) -> Array:
    pairs = zip(_numbers(sizes), wanted, strict=True)
    return np.array([size if new is None else new for size, new in pairs], np.int32)


def _numbers(values: Any) -> list[int]:
    return [] if values is None else [int(value) for value in values]
