"""A TFLite flatbuffer as objects: tensors, constants as numbers, operators, and writing it again."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from conrepair.formats.editing.editor import NotEditableError
from conrepair.formats.tflite.edit.appended import appended_files
from conrepair.formats.tflite.load.screening import called_subgraphs
from conrepair.formats.tflite.read.file import TfliteFile
from conrepair.formats.tflite.read.packing import is_outside, outside_bytes, packed
from conrepair.ground.graph.layer_graph import Array
from conrepair.ground.runtime.files.whole import whole_output

_MOST = 1 << 30  # bytes of numbers among a flatbuffer's tables, which end at 2 GB
_DEPRECATED_LIMIT = 127  # operators above have a placeholder in the old field
_CHANGED = {"float32", "float16", "int32", "uint8", "int64", "bool", "int16", "int8"}  # types of constants


class EditedTfliteFile(TfliteFile):
    """A graph of a model file, open to changes: the main one, or with `inside` another of the same file.

    Numbers stay where the file has them, as long as its tables can hold them.
    """

    def __init__(self, path: Path) -> None:
        """Open it, and move numbers that stand behind its tables into these.

        Raises:
            NotEditableError: if it carries an archive of more than 4 GB.
        """
        super().__init__(str(path))
        self._appended = appended_files(self.content)
        self._outside = {index for index, item in enumerate(self.model.buffers) if is_outside(item)}
        for index in self._outside:
            buffer = self.model.buffers[index]
            buffer.data = outside_bytes(self.content, buffer)
            buffer.offset = buffer.size = 0
        self._unread = set(range(len(self.names))) - self._read()  # as the file came
        self._resized = False

    def _enter(self, subgraph: int) -> None:
        super()._enter(subgraph)
        self.graph.inputs, self.graph.outputs = _numbers(self.graph.inputs), _numbers(self.graph.outputs)
        for operator in self.operators:
            operator.inputs, operator.outputs = _numbers(operator.inputs), _numbers(operator.outputs)

    def callers(self, subgraph: int) -> int:
        """How many operators call a subgraph."""
        operators = (operator for graph in self.model.subgraphs for operator in graph.operators or [])
        return sum(subgraph in called_subgraphs(operator) for operator in operators)

    def set_kind(self, operator: Any, kind: str) -> None:
        """Make it another operator; its options stay."""
        wanted = getattr(schema.BuiltinOperator, kind)
        for index, code in enumerate(self.model.operatorCodes):
            if max(code.builtinCode, code.deprecatedBuiltinCode) == wanted:
                operator.opcodeIndex = index
                return
        code = schema.OperatorCodeT()
        code.builtinCode, code.version = wanted, 1
        code.deprecatedBuiltinCode = min(wanted, _DEPRECATED_LIMIT)
        self.model.operatorCodes.append(code)
        operator.opcodeIndex = len(self.model.operatorCodes) - 1

    def set_shape(self, index: int, shape: Sequence[int | None]) -> None:
        """Other sizes for an input; None for one that stays. What is computed from it gets its sizes when saved."""
        tensor = self.tensors[index]
        tensor.shape = _replaced(tensor.shape, shape)
        if tensor.shapeSignature is not None and len(tensor.shapeSignature):
            tensor.shapeSignature = _replaced(tensor.shapeSignature, shape)
        self._resized = True

    def scales(self, index: int) -> Array | None:
        """The scales of a quantized tensor."""
        scales, _ = self.grid(index)
        return scales if len(scales) else None

    def is_quantized(self, index: int) -> bool:
        """Whether whole numbers, of a type that can be changed, stand for real ones."""
        return self.scales(index) is not None and self.dtype(index) in _CHANGED

    def constant(self, index: int) -> Array | None:
        """A tensor's numbers as stored; None for one that isn't constant, or can't be changed."""
        if index < 0 or self.dtype(index) not in _CHANGED or not self.is_stored(index):
            return None
        return None if self.tensors[index].sparsity is not None else self.numbers(index)

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
        return self.meant(index, stored).astype(np.float32)

    def stored(self, index: int, real: Array) -> Array:
        """Real numbers as a tensor stores them; those beyond a quantized one's range saturate."""
        dtype = np.dtype(self.dtype(index))
        if dtype.kind == "f":
            return real.astype(dtype)
        scale, zero = self.spread_grid(index, real.ndim)
        limits = np.iinfo(dtype)
        quantized: Array = np.clip(np.rint(real / scale) + zero, limits.min, limits.max).astype(dtype)
        return quantized

    def set_constant(self, index: int, array: Array) -> None:
        """Give a tensor other numbers, of its type; whoever shares the old ones keeps them."""
        data = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
        place = self.tensors[index].buffer
        if place and self._uses(place) == 1:
            self.model.buffers[place].data = data
            return
        buffer = schema.BufferT()
        buffer.data = data
        self.model.buffers.append(buffer)
        self.tensors[index].buffer = len(self.model.buffers) - 1

    def add_constant(self, array: Array, name: str, like: int | None = None) -> int:
        """A new constant tensor, with the quantization of another one."""
        index = self._add(schema.TensorT() if like is None else copy.deepcopy(self.tensors[like]), name)
        tensor = self.tensors[index]
        tensor.shape, tensor.shapeSignature, tensor.isVariable = np.array(array.shape, np.int32), None, False
        if like is None:
            tensor.type = _type_code(array.dtype.name)
        self.set_constant(index, array)
        return index

    def add_tensor(self, like: int, name: str, dtype: str | None = None) -> int:
        """A new tensor that is computed.

        Args:
            like: Has the same shape, type and quantization.
            name: Its name.
            dtype: Another type, without quantization.
        """
        tensor = copy.deepcopy(self.tensors[like])
        tensor.buffer = 0
        if dtype is not None:
            tensor.type, tensor.quantization = _type_code(dtype), None
        return self._add(tensor, name)

    def copy_tensor(self, index: int, name: str) -> int:
        """A second tensor with the same content."""
        return self._add(copy.deepcopy(self.tensors[index]), name)

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
        return [item for item in self.model.signatureDefs or [] if item.subgraphIndex == 0]

    def save(self, path: Path) -> None:
        """Write the file whole, with what it carries, without the content of constants that nothing reads any more.

        Raises:
            StorageError: if it can't be written.
        """
        for index in set(range(len(self.names))) - self._read() - self._unread:
            tensor = self.tensors[index]
            if self._uses(tensor.buffer) == 1:
                self.model.buffers[tensor.buffer].data = None
            tensor.buffer = 0  # the one that holds nothing
        if self._resized:
            self._settle_shapes()
        parts = self._parts()
        if self._appended is not None:
            parts.append(self._appended.behind(sum(map(len, parts))))
        with whole_output(path) as temporary, temporary.open("wb") as stream:
            stream.writelines(parts)

    def _parts(self) -> list[Any]:
        """The model as it is now, without what it carries."""
        held = {
            place: np.asarray(item.data, np.uint8)
            for place, item in enumerate(self.model.buffers)
            if item.data is not None and len(item.data) > 1
        }
        inside = sum(data.nbytes for place, data in held.items() if place not in self._outside)
        outside = held if inside > _MOST else {place: held[place] for place in sorted(self._outside & held.keys())}
        model = copy.copy(self.model)
        model.buffers = [copy.copy(item) for item in model.buffers]
        return packed(model, outside)

    def _settle_shapes(self) -> None:
        """Give what is computed the sizes that kernels find for it, which don't ask the file."""
        try:
            interpreter = Interpreter(
                model_content=b"".join(self._parts()),
                experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
            )
            interpreter.allocate_tensors()
        except (RuntimeError, ValueError) as error:
            raise NotEditableError(f"with these sizes of its inputs the model can't be prepared: {error}") from error
        for detail in interpreter.get_tensor_details():
            index = detail["index"]
            if index < len(self.names) and self.constant(index) is None:
                known, found = self.tensors[index], np.array(detail["shape"], np.int32)
                if self.shape(index) == tuple(found):
                    continue
                known.shape = found
                signature = known.shapeSignature
                if signature is not None and len(signature):
                    known.shapeSignature = np.where(np.asarray(signature) < 0, signature, found).astype(np.int32)

    def _read(self) -> set[int]:
        """The tensors that operators read or give, and the graph's inputs and outputs."""
        operands = (index for item in self.operators for index in (*item.inputs, *item.outputs))
        return {*self.graph.inputs, *self.graph.outputs, *operands}

    def _uses(self, buffer: int) -> int:
        """How many tensors, or pieces of metadata, have their content in a buffer."""
        tensors = [tensor.buffer for graph in self.model.subgraphs for tensor in graph.tensors]
        return [*tensors, *(item.buffer for item in self.model.metadata or [])].count(buffer)

    def _add(self, tensor: Any, name: str) -> int:
        tensor.name = name.encode()
        self.tensors.append(tensor)
        self.names.append(name if name not in self.names else f"{name}#{len(self.names)}")
        return len(self.names) - 1


def _type_code(dtype: str) -> int:
    return int(getattr(schema.TensorType, dtype.upper()))


def _replaced(sizes: Any, wanted: Sequence[int | None]) -> Array:
    pairs = zip(_numbers(sizes), wanted, strict=True)
    return np.array([size if new is None else new for size, new in pairs], np.int32)


def _numbers(values: Any) -> list[int]:
    return [] if values is None else [int(value) for value in values]
