"""Pieces of a TFLite model as flatbuffers of their own."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from conrepair.formats.tflite.load.screening import called_subgraphs
from conrepair.formats.tflite.read.file import TfliteFile
from conrepair.formats.tflite.read.packing import packed
from conrepair.ground.graph.layer_graph import Array

_NO_KERNEL = "Didn't find op for builtin opcode"


@dataclass(frozen=True)
class TflitePiece:
    """What a piece consists of, in indices of the file's operators and tensors.

    Attributes:
        operators: In the file's order.
        inputs: Tensors that are fed. One that's also computed here is so for its own sake: readers get what's fed.
        outputs: Tensors to compute.
        values: Constants that replace what the file has for a tensor.
    """

    operators: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    values: Mapping[int, Array] = field(default_factory=dict)


@dataclass(frozen=True)
class WrittenPiece:
    """A piece as a file.

    Attributes:
        content: The file.
        inputs: Index in this file of each tensor that's fed.
        outputs: Index in this file of each tensor that's computed.
    """

    content: bytes
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def interpreter_of(content: bytes, *, reference: bool = False) -> Any:
    """An interpreter of a model in memory, with the default delegate or with the reference kernels.

    Not every operator has a reference kernel (Elu has none); such a model gets the optimized ones, no delegate.
    """
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    def made(resolver: Any) -> Any:
        return Interpreter(model_content=content, num_threads=os.cpu_count(), experimental_op_resolver_type=resolver)

    if not reference:
        return made(OpResolverType.AUTO)
    try:
        return made(OpResolverType.BUILTIN_REF)
    except ValueError as error:
        if _NO_KERNEL not in str(error):
            raise
        return made(OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)


def write_piece(file: TfliteFile, piece: TflitePiece, shapes: Mapping[int, tuple[int, ...] | None]) -> WrittenPiece:
    """Write a piece with the constants that it uses and no others.

    Args:
        file: The whole model.
        piece: What to write.
        shapes: Of tensors by index, for those that aren't what the file says.
    """
    writer = _Writer(file, piece, shapes)
    operators = [writer.operator(index) for index in piece.operators]
    inputs = [writer.fed[tensor] for tensor in piece.inputs]
    outputs = [writer.written(tensor) for tensor in piece.outputs]
    graph = copy.copy(file.graph)
    graph.tensors, graph.operators, graph.inputs, graph.outputs = writer.tensors, operators, inputs, outputs
    model = copy.copy(file.model)
    model.subgraphs = [graph, *writer.other_subgraphs()]
    model.buffers = writer.buffers
    model.signatureDefs = model.metadata = model.metadataBuffer = None
    return WrittenPiece(b"".join(packed(model, writer.data)), tuple(inputs), tuple(outputs))


class _Writer:
    """Numbers tensors and buffers anew."""

    def __init__(self, file: TfliteFile, piece: TflitePiece, shapes: Mapping[int, tuple[int, ...] | None]) -> None:
        from ai_edge_litert import schema_py_generated as schema

        self._file, self._piece, self._shapes = file, piece, shapes
        self._new_buffer = schema.BufferT
        # The first buffer is that of tensors without numbers.
        self.buffers: list[Any] = [schema.BufferT()]
        self.data: dict[int, Array] = {}
        self.tensors: list[Any] = []
        self._written: dict[int, int] = {}
        self._buffer_places: dict[int, int] = {}
        computed = {tensor for index in piece.operators for tensor in file.outputs(index)}
        self.fed = {tensor: self._add(tensor, "/fed" if tensor in computed else "") for tensor in piece.inputs}
        self._written.update((tensor, place) for tensor, place in self.fed.items() if tensor not in computed)

    def operator(self, index: int) -> Any:
        operator = copy.copy(self._file.operators[index])
        operator.inputs = [self._reading(tensor) for tensor in self._file.inputs(index)]
        operator.outputs = [self.written(tensor) for tensor in self._file.outputs(index)]
        if operator.intermediates is not None:
            operator.intermediates = [self.written(int(tensor)) for tensor in operator.intermediates]
        operator.debugMetadataIndex = -1
        return operator

    def written(self, tensor: int) -> int:
        if tensor not in self._written:
            self._written[tensor] = self._add(tensor)
        return self._written[tensor]

    def other_subgraphs(self) -> list[Any]:
        """Subgraphs that control flow calls; a segment without it needs none."""
        if not any(called_subgraphs(self._file.operators[index]) for index in self._piece.operators):
            return []
        others = [copy.copy(graph) for graph in self._file.model.subgraphs[1:]]
        for graph in others:
            graph.tensors = [self._copied(tensor) for tensor in graph.tensors]
        return others

    def _reading(self, tensor: int) -> int:
        if tensor < 0:
            return -1
        return self.fed[tensor] if tensor in self.fed else self.written(tensor)

    def _add(self, tensor: int, suffix: str = "") -> int:
        result = copy.copy(self._file.tensors[tensor])
        result.name = self._file.names[tensor] + suffix
        value = self._piece.values.get(tensor)
        shape = value.shape if value is not None else self._shapes.get(tensor)
        if shape is not None:
            result.shape, result.shapeSignature, result.hasRank = list(shape), None, True
        if value is not None:
            result.buffer = self._add_data(np.frombuffer(np.ascontiguousarray(value).tobytes(), np.uint8))
        elif tensor in self._piece.inputs:
            result.buffer, result.isVariable = 0, False
        else:
            result.buffer = self._shared(result.buffer, self._file.bytes_of(tensor))
        self.tensors.append(result)
        return len(self.tensors) - 1

    def _copied(self, tensor: Any) -> Any:
        result = copy.copy(tensor)
        buffer = self._file.model.buffers[tensor.buffer]
        result.buffer = self._shared(tensor.buffer, self._file.bytes_in(buffer))
        return result

    def _shared(self, buffer: int, data: Array | None) -> int:
        if data is None:
            return 0
        if buffer not in self._buffer_places:
            self._buffer_places[buffer] = self._add_data(data)
        return self._buffer_places[buffer]

    def _add_data(self, data: Array) -> int:
        self.buffers.append(self._new_buffer())
        if data.nbytes > 1:
            self.data[len(self.buffers) - 1] = data
        else:
            # A buffer outside of the tables must be longer.
            self.buffers[-1].data = data
        return len(self.buffers) - 1
