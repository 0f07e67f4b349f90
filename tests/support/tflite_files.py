"""TFLite files that today's converters don't write, made table by table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import small_models as small
from ai_edge_litert import schema_py_generated as schema

from conrepair.formats.models.model import Model

Array = Any


class Writer:
    """Tensors and operators of one subgraph."""

    def __init__(self) -> None:
        self.tensors: list[Any] = []
        self._buffers = [schema.BufferT()]
        self._operators: list[Any] = []
        self._codes: list[Any] = []

    def tensor(
        self,
        name: str,
        shape: Sequence[int],
        kind: int = schema.TensorType.FLOAT32,
        *,
        data: Array | None = None,
        scale: float | None = None,
        variable: bool = False,
    ) -> int:
        """Add a tensor; with data it's constant."""
        added = schema.TensorT(name=name, shape=list(shape), type=kind, isVariable=variable, hasRank=True)
        if data is not None:
            added.buffer = len(self._buffers)
            self._buffers.append(schema.BufferT(data=np.ascontiguousarray(data).view(np.uint8).ravel()))
        if scale is not None:
            added.quantization = schema.QuantizationParametersT(scale=[scale], zeroPoint=[0])
        self.tensors.append(added)
        return len(self.tensors) - 1

    def operator(
        self, kind: str, inputs: Sequence[int], outputs: Sequence[int], options: Any = None, version: int = 1
    ) -> None:
        """Add an operator, with its options as an object of the schema's."""
        code = getattr(schema.BuiltinOperator, kind)
        self._codes.append(
            schema.OperatorCodeT(deprecatedBuiltinCode=min(code, 127), version=version, builtinCode=code)
        )
        added = schema.OperatorT(opcodeIndex=len(self._codes) - 1, inputs=list(inputs), outputs=list(outputs))
        if options is not None:
            added.builtinOptions = options
            added.builtinOptionsType = getattr(schema.BuiltinOptions, type(options).__name__.removesuffix("T"))
        self._operators.append(added)

    def write(self, path: Path, inputs: Sequence[int], outputs: Sequence[int]) -> Model:
        """Write the file."""
        graph = schema.SubGraphT(
            tensors=self.tensors, inputs=list(inputs), outputs=list(outputs), operators=self._operators
        )
        model = schema.ModelT(version=3, operatorCodes=self._codes, subgraphs=[graph], buffers=self._buffers)
        builder = flatbuffers.Builder()
        builder.Finish(model.Pack(builder), b"TFL3")
        path.write_bytes(builder.Output())
        return small.model_of("tflite", path)


def fused_lstm(
    path: Path,
    *,
    time_major: bool = False,
    peepholes: bool = False,
    hidden: int = 4,
    scaled: dict[str, float] | None = None,
) -> Model:
    """The LSTM that older converters write as one operator, with its state in variable tensors.

    Args:
        path: Of the file.
        time_major: Whether steps come before the batch.
        peepholes: Whether gates see the cell.
        hidden: How many states.
        scaled: Matrices whose scale is so many times the right one; given, all matrices are in eight bits.
    """
    generator, batch, steps, features, writer = np.random.default_rng(3), 2, 5, 3, Writer()

    def stored(name: str, *shape: int) -> int:
        real = generator.normal(size=shape).astype(np.float32)
        if scaled is None or len(shape) == 1:
            return writer.tensor(name, shape, data=real)
        scale = np.float32(np.abs(real).max() / 127)
        steps = np.rint(real / scale).astype(np.int8)
        held = float(scale * np.float32(scaled.get(name, 1.0)))
        return writer.tensor(name, shape, schema.TensorType.INT8, data=steps, scale=held)

    sequence = (steps, batch) if time_major else (batch, steps)
    rows = writer.tensor("rows", (*sequence, features))
    inputs = [rows]
    inputs += [stored(f"input_to_{gate}", hidden, features) for gate in "ifco"]
    inputs += [stored(f"hidden_to_{gate}", hidden, hidden) for gate in "ifco"]
    inputs += [stored(f"cell_to_{gate}", hidden) if peepholes else -1 for gate in "ifo"]
    inputs += [stored(f"bias_{gate}", hidden) for gate in "ifco"]
    state = [writer.tensor(name, (batch, hidden), variable=True) for name in ("hidden", "cell")]
    inputs += [-1, -1, *state, -1, -1, -1, -1]
    result = writer.tensor("result", (*sequence, hidden))
    options = schema.UnidirectionalSequenceLSTMOptionsT(
        fusedActivationFunction=schema.ActivationFunctionType.TANH, timeMajor=time_major, cellClip=10.0
    )
    writer.operator("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, [result], options)
    return writer.write(path, [rows], [result])


def weights_of_four_bits(path: Path) -> tuple[Model, Array]:
    """A fully connected layer with an odd number of weights; those as real numbers, [out, in]."""
    stored = np.random.default_rng(4).integers(-7, 8, (3, 5))
    packed = np.append(stored.ravel() & 15, 0).astype(np.uint8)
    writer = Writer()
    rows = writer.tensor("rows", (2, 5))
    weight = writer.tensor(
        "weight", stored.shape, schema.TensorType.INT4, data=packed[::2] | packed[1::2] << 4, scale=0.25
    )
    result = writer.tensor("result", (2, 3))
    writer.operator("FULLY_CONNECTED", [rows, weight, -1], [result], schema.FullyConnectedOptionsT(), version=9)
    return writer.write(path, [rows], [result]), stored * np.float32(0.25)


def names_that_repeat(path: Path) -> Model:
    """y = relu(x + x) * 2, the tensors called "t", "t", "" and "t"; and twice that as a second result."""
    writer = Writer()
    first, second, third = writer.tensor("t", (2, 3)), writer.tensor("t", (2, 3)), writer.tensor("", (2, 3))
    two, result = writer.tensor("two", (), data=np.float32(2)), writer.tensor("t", (2, 3))
    fused = schema.AddOptionsT(fusedActivationFunction=schema.ActivationFunctionType.RELU)
    writer.operator("ADD", [first, first], [second], fused)
    writer.operator("MUL", [second, two], [third], schema.MulOptionsT())
    writer.operator("ADD", [third, third], [result], schema.AddOptionsT())
    return writer.write(path, [first], [third, result])


def without_reference_kernel(path: Path) -> Model:
    """y = elu(x + w): TFLite has no reference kernel for Elu. The numbers w are in float16."""
    writer = Writer()
    rows, stored = writer.tensor("rows", (2, 3)), np.array([[0.5, -1, -2]], np.float16)
    half = writer.tensor("half", stored.shape, schema.TensorType.FLOAT16, data=stored)
    full, total, result = (
        writer.tensor(name, shape) for name, shape in (("full", (1, 3)), ("total", (2, 3)), ("result", (2, 3)))
    )
    writer.operator("DEQUANTIZE", [half], [full])
    writer.operator("ADD", [rows, full], [total], schema.AddOptionsT())
    writer.operator("ELU", [total], [result])
    return writer.write(path, [rows], [result])
