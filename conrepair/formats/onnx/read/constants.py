"""Numbers that depend on no input: read from the file, or computed when they're asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import numpy as np
import onnx_ir

from conrepair.formats.onnx.read.cut import cut, is_plain
from conrepair.formats.onnx.read.file import unheld
from conrepair.formats.onnx.read.session import Sessions
from conrepair.formats.onnx.read.source import OnnxSource
from conrepair.ground.graph.layer_graph import Array, Parameter
from conrepair.ground.graph.operators import family
from conrepair.ground.onnx_graphs.defaults import attribute
from conrepair.ground.onnx_graphs.infer_shapes import static_shape

_SMALL = 256  # elements; what may be axes, shapes, scales is computed once and kept
_STORED = {"Constant", "DequantizeLinear"}
_MOVING = {*family("move"), "Flatten", "Squeeze", "Unsqueeze"}


class OnnxConstants:
    """The constant values of a graph.

    ONNX Runtime computes them, as it does when the network runs, so every operator works.

    Attributes:
        sizes: Numbers of values that depend on the inputs' sizes only, by name. They aren't constants.
    """

    def __init__(self, source: OnnxSource, sessions: Sessions, sizes: Mapping[str, Array]) -> None:
        self.sizes = sizes
        self._source = source
        self._sessions = sessions
        self._kept: dict[str, Array] = {}
        self._keep(_small_operands(source))

    def __contains__(self, value: onnx_ir.Value) -> bool:
        return value not in self._source.variable

    def array(self, value: onnx_ir.Value) -> Array:
        """The numbers of a value.

        Raises:
            InferenceError: if ONNX Runtime can't compute them.
        """
        name = str(value.name)
        if name in self._kept:
            return self._kept[name]
        if value.const_value is not None:
            return np.require(unheld(value.const_value).numpy(), requirements="A")  # a file has it anywhere
        return self._computed([name])[0]

    def shape(self, value: onnx_ir.Value) -> tuple[int, ...]:
        """The shape of a value, which is computed where it doesn't follow from others."""
        known = static_shape(value)
        return tuple(self.array(value).shape if known is None else known)

    def parameter(
        self, value: onnx_ir.Value, change: Callable[[Array], Array] | None = None, shape: Iterable[int] | None = None
    ) -> Parameter:
        """A value as a node's parameter.

        Args:
            value: Which.
            change: From the file's convention to the vocabulary's.
            shape: Behind the change; None if that keeps it.
        """
        stored, scales, blocks = self._stored(value)
        kind = stored.dtype or value.dtype
        narrow = kind is not None and scales != ()

        def load() -> Array:
            array = self.array(value)
            return array if change is None else change(array)

        return Parameter(
            name=str(value.name),
            shape=tuple(self.shape(value) if shape is None else shape),
            dtype=str(self.array(value).dtype) if kind is None else kind.numpy().name,
            load=load,
            bits=kind.bitwidth if narrow and kind is not None else None,
            scales=scales,
            made_by=_made_by(value),
            blocks=blocks if change is None and shape is None else (),
        )

    def dequantized(
        self,
        value: onnx_ir.Value,
        factors: Sequence[onnx_ir.Value],
        zero: onnx_ir.Value | None,
        spread: Callable[[Array], Array],
        order: Sequence[int] | None = None,
    ) -> Parameter:
        """Integers whose scales and zero points are other constants, as a node's parameter.

        Args:
            value: The integers.
            factors: Whose product is the scale: one, or one for each channel.
            zero: The zero point; None for 0.
            spread: Lays scales and zero points out along the axes of the integers.
            order: Of these axes in the vocabulary; None where it's the same.
        """
        shape, kind = self.shape(value), value.dtype
        scales = math.prod((self.array(item).astype(np.float64).reshape(-1) for item in factors), start=np.ones(1))
        axes = range(len(shape)) if order is None else order

        def load() -> Array:
            offset = np.zeros(1) if zero is None else self.array(zero).astype(np.float64)
            real = (self.array(value).astype(np.float64) - spread(offset)) * spread(scales)
            return real.transpose(axes).astype(np.float32)

        dtype = str(self.array(value).dtype) if kind is None else kind.numpy().name
        return Parameter(
            name=str(value.name),
            shape=tuple(shape[axis] for axis in axes),
            dtype=dtype,
            load=load,
            bits=8 * np.dtype(dtype).itemsize if kind is None else kind.bitwidth,
            scales=tuple(map(float, scales)),
        )

    def _stored(self, value: onnx_ir.Value) -> tuple[onnx_ir.Value, tuple[float, ...], tuple[int, ...]]:
        """What the file stores for a value that is dequantized when the network runs, its scales, and blocks.

        Returns:
            The integers; scales in the order of the blocks of the value; () where neighbours share none, or where
            what moves elements behind them leaves no blocks.
        """
        origin, moves = value, list[onnx_ir.Node]()
        while (node := origin.producer()) is not None and node.op_type in _MOVING and not node.domain:
            if node.inputs[0] is None:
                break
            moves.append(node)
            origin = node.inputs[0]
        if node is None or node.op_type != "DequantizeLinear" or node.inputs[0] is None or node.inputs[1] is None:
            return value, (), ()
        scales, size = self.array(node.inputs[1]), int(attribute(node, "block_size", 0))
        if not size or scales.ndim < 2:
            return node.inputs[0], tuple(map(float, scales.reshape(-1))), ()
        along = int(attribute(node, "axis", 1)) % scales.ndim
        blocks: tuple[int, ...] = tuple(size if axis == along else 1 for axis in range(scales.ndim))
        for move in reversed(moves):
            if move.op_type == "Transpose" and blocks:
                perm = tuple(attribute(move, "perm", tuple(reversed(range(scales.ndim)))))
                scales, blocks = scales.transpose(perm), tuple(blocks[axis] for axis in perm)
            elif move.op_type not in {"Cast", "Identity"}:
                blocks = ()
        return node.inputs[0], tuple(map(float, scales.reshape(-1))), blocks

    def _keep(self, values: Collection[onnx_ir.Value]) -> None:
        """Compute in one session what rules will ask for one by one."""
        names = [str(value.name) for value in values]
        self._kept = dict(zip(names, self._computed(names), strict=True)) if names else {}

    def _computed(self, names: list[str]) -> list[Array]:
        return self._sessions.open(cut(self._source, (), names)).run(names, {})


def _made_by(value: onnx_ir.Value) -> str:
    """The node that computes a constant from others; "" where it's stored, or only moved."""
    node = value.producer()
    while node is not None and node.op_type in _MOVING and not node.domain and node.inputs[0] is not None:
        node = node.inputs[0].producer()
    return "" if node is None or node.op_type in _STORED else node.name or str(node.outputs[0].name)


def _small_operands(source: OnnxSource) -> list[onnx_ir.Value]:
    """Constants of a few numbers that are computed, and read by what isn't constant."""
    found: dict[onnx_ir.Value, None] = {}
    for node in source.graph:
        if source.variable.isdisjoint(node.outputs):
            continue
        for value in node.inputs:
            if value is None or value in source.variable or value.producer() is None or not is_plain(value.dtype):
                continue
            if math.prod(static_shape(value) or [_SMALL + 1]) <= _SMALL:
                found[value] = None
    return list(found)
