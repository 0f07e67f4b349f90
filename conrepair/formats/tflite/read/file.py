"""A TFLite flatbuffer's subgraphs: operators, tensors and the numbers it stores."""

from __future__ import annotations

import copy
import mmap
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from conrepair.formats.tflite.load.screening import dtype_of, kind_of, tables_of
from conrepair.formats.tflite.read.packing import is_outside, outside_bytes, with_own_options
from conrepair.formats.tflite.read.subgraphs import inner_constants
from conrepair.ground.data.tensor_spec import Quantization, numpy_dtype
from conrepair.ground.graph.layer_graph import Array, Parameter
from conrepair.ground.runtime.errors import ModelLoadError

BITS: Mapping[str, int] = {
    "int2": 2, "int4": 4, "uint4": 4, "int8": 8, "uint8": 8, "int16": 16, "uint16": 16, "int32": 32, "int64": 64,
}  # fmt: skip
"""Of the types that quantized numbers are stored in."""

WITHOUT_NUMBERS = frozenset({"string", "resource", "variant"})
"""Types of tensors that numpy can't hold as numbers."""

_BYTE = 8


class TfliteFile:
    """The file stays mapped: numbers are read when they are asked for.

    Attributes:
        path: Of the file.
        content: All of it.
        model: The flatbuffer's tables as objects; arrays in them are views of the file.
        graph: The subgraph that this is of: the main one, the first.
        tensors: Its tensors.
        operators: Its operators, in order.
        names: Of the tensors, made unique by their index where they aren't.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        with Path(path).open("rb") as file:
            self.content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.model: Any = tables_of(self.content)
        with_own_options(self.content, self.model)
        self._enter(0)

    def _enter(self, subgraph: int) -> None:
        self.graph: Any = self.model.subgraphs[subgraph]
        self.tensors: list[Any] = self.graph.tensors
        self.operators: list[Any] = self.graph.operators or []
        self.names = _unique_names([(tensor.name or b"").decode(errors="replace") for tensor in self.tensors])

    def inside(self, subgraph: int) -> Self:
        """The same file, seen from another of its subgraphs.

        Args:
            subgraph: Its index.
        """
        other = copy.copy(self)
        for name in ("kinds", "outputs_of_graph"):  # which are known of this subgraph
            vars(other).pop(name, None)
        other._enter(subgraph)
        return other

    def inner_parameters(self, operator: int) -> dict[str, Parameter]:
        """The constants of the subgraphs that an operator calls, as its parameters; see `inner_constants`."""
        found = inner_constants(self.model, self.operators[operator])
        files = {subgraph: self.inside(subgraph) for subgraph in {constant.subgraph for constant in found.values()}}
        return {
            role: files[constant.subgraph].parameter(constant.tensor)
            for role, constant in found.items()
            if files[constant.subgraph].dtype(constant.tensor) not in WITHOUT_NUMBERS
        }

    def parameter(self, tensor: int) -> Parameter:
        """A stored tensor as a parameter, in its own order."""
        dtype, (scales, _) = self.dtype(tensor), self.grid(tensor)
        return Parameter(
            self.names[tensor],
            self.shape(tensor),
            dtype,
            lambda: self.meant(tensor, self.numbers(tensor)),
            BITS[dtype] if len(scales) else None,
            tuple(map(float, scales)),
        )

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """What each operator is, as the schema calls it; a custom one by its own name."""
        return tuple(map(self.kind, self.operators))

    def inputs(self, operator: int) -> tuple[int, ...]:
        """Tensors that an operator reads; -1 for one that's left out."""
        return plain(self.operators[operator].inputs)

    def outputs(self, operator: int) -> tuple[int, ...]:
        """Tensors that an operator writes."""
        return plain(self.operators[operator].outputs)

    @cached_property
    def outputs_of_graph(self) -> tuple[int, ...]:
        """Tensors that are the model's result."""
        return plain(self.graph.outputs)

    def dtype(self, tensor: int) -> str:
        """Name of a tensor's type."""
        return dtype_of(self.tensors[tensor].type)

    def shape(self, tensor: int) -> tuple[int, ...]:
        """A tensor's shape as the file says."""
        return plain(self.tensors[tensor].shape)

    def declares_shape(self, tensor: int) -> bool:
        """Whether the file says a tensor's whole shape."""
        stored = self.tensors[tensor]
        signature = plain(stored.shapeSignature) if stored.shapeSignature is not None else plain(stored.shape)
        return bool(stored.hasRank or signature) and -1 not in signature

    def quantization(self, tensor: int) -> Quantization | None:
        """How a tensor with one scale stands for real numbers; None for other tensors."""
        scales, zero_points = self.grid(tensor)
        return Quantization(float(scales[0]), int(zero_points[0])) if len(scales) == 1 else None

    def grid(self, tensor: int) -> tuple[Array, Array]:
        """Scales and zero points of a quantized tensor; empty ones for others."""
        found = self.tensors[tensor].quantization
        nothing = np.zeros(0, np.float32)
        if found is None or found.scale is None or not len(found.scale) or self.dtype(tensor) not in BITS:
            return nothing, nothing
        scales = np.array(found.scale, np.float32)
        if not scales.any():
            return nothing, nothing
        points = found.zeroPoint if found.zeroPoint is not None and len(found.zeroPoint) else [0]
        return scales, np.broadcast_to(np.array(points, np.int64), scales.shape)

    def is_stored(self, tensor: int) -> bool:
        """Whether a tensor's numbers stand in the file."""
        return not self.tensors[tensor].isVariable and self.bytes_of(tensor) is not None

    def bytes_of(self, tensor: int) -> Array | None:
        """A tensor's numbers as bytes, a view of the file; None when it has none."""
        return self.bytes_in(self.model.buffers[self.tensors[tensor].buffer])

    def bytes_in(self, buffer: Any) -> Array | None:
        """A buffer's bytes, a view of the file; None when it has none."""
        if is_outside(buffer):
            return outside_bytes(self.content, buffer)
        data = buffer.data
        return None if data is None or not len(data) else np.asarray(data, np.uint8)

    def numbers(self, tensor: int) -> Array:
        """A tensor's numbers as they are stored, as a view where its type allows.

        Raises:
            ModelLoadError: if they are stored in a way that only the framework's kernels read.
        """
        data, dtype, shape = self.bytes_of(tensor), self.dtype(tensor), self.shape(tensor)
        if data is None or self.tensors[tensor].sparsity is not None or dtype in WITHOUT_NUMBERS:
            raise ModelLoadError(
                f"{self.path}: the numbers of tensor {self.names[tensor]!r} can't be read ({dtype}, maybe sparse). "
                "Convert the model without sparsity, or leave this layer out."
            )
        if BITS.get(dtype, _BYTE) < _BYTE:
            return _unpacked(data, dtype, int(np.prod(shape))).reshape(shape)
        return data.view(numpy_dtype(dtype)).reshape(shape)

    def meant(self, tensor: int, stored: Array) -> Array:
        """What stored numbers of a tensor stand for.

        Args:
            tensor: Says the scales.
            stored: Numbers of its type and shape.

        Raises:
            ModelLoadError: for scales by blocks.
        """
        if not len(self.grid(tensor)[0]):
            return stored
        scales, zero_points = self.spread_grid(tensor, stored.ndim)
        offset = stored.astype(np.int32) - zero_points.astype(np.int32) if zero_points.any() else stored
        return np.asarray(offset.astype(np.float32) * scales, np.float32)

    def spread_grid(self, tensor: int, rank: int) -> tuple[Array, Array]:
        """Scales and zero points of a quantized tensor of so many axes, as they're broadcast with its numbers.

        Raises:
            ModelLoadError: for scales by blocks.
        """
        scales, zero_points = self.grid(tensor)
        quantization = self.tensors[tensor].quantization
        if quantization.detailsType:
            raise ModelLoadError(
                f"{self.path}: tensor {self.names[tensor]!r} is quantized by blocks, which can't be read. "
                "Convert the model with a scale for each channel."
            )
        shape = [1] * rank
        if len(scales) > 1:
            shape[quantization.quantizedDimension] = len(scales)
        return scales.reshape(shape), zero_points.reshape(shape)

    def kind(self, operator: Any) -> str:
        """What an operator is, as the schema calls it; a custom one by its own name."""
        name = kind_of(self.model, operator)
        if name not in {"", "CUSTOM"}:
            return name
        return str((self.model.operatorCodes[operator.opcodeIndex].customCode or b"CUSTOM").decode())


def plain(values: Any) -> tuple[int, ...]:
    """A flatbuffer's list of whole numbers."""
    return () if values is None else tuple(int(value) for value in values)


def _unique_names(names: list[str]) -> list[str]:
    """Add its index to each empty or repeated name but the first, until there's no other of that name."""
    taken, result = set(names), []
    seen: set[str] = {""}
    for index, name in enumerate(names):
        new = name
        while new in seen or (new != name and new in taken):
            new = f"{new}:{index}" if new else f"tensor:{index}"
        seen.add(new)
        result.append(new)
    return result


def _unpacked(data: Array, dtype: str, count: int) -> Array:
    """Numbers of fewer than eight bits; the first one is in the lowest bits of a byte."""
    bits = BITS[dtype]
    shifts = np.arange(0, _BYTE, bits, dtype=np.uint8)
    values: Array = ((data[:, None] >> shifts) & (2**bits - 1)).reshape(-1)[:count].astype(np.int8)
    if dtype.startswith("int"):
        values -= (values >= 2 ** (bits - 1)) * np.int8(2**bits)
    return values
