"""A piece of a TFLite model, run by an interpreter of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from conrepair.data.stored_values import to_real, to_stored
from conrepair.data.tensor_spec import TensorSpec
from conrepair.graph.layer_graph import Array
from conrepair.networks.network import Segment
from conrepair.networks.tflite_piece import WrittenPiece, interpreter_of
from conrepair.runtime.errors import DataError, InferenceError

__all__ = ["SegmentPort", "TfliteSegment"]


@dataclass(frozen=True)
class SegmentPort:
    """A tensor that goes into or comes out of a segment.

    Attributes:
        spec: Name, type, quantization, and the shape where it's known.
        has_shape: Whether it is; the spec's shape means nothing if not.
    """

    spec: TensorSpec
    has_shape: bool

    def stored(self, array: Array) -> Array:
        """An array as the tensor takes it."""
        spec = self.spec if self.has_shape else replace(self.spec, shape=tuple(map(int, array.shape)))
        return to_stored(spec, array)


class TfliteSegment(Segment):
    """See `conrepair.networks.network.Segment`.

    Args:
        written: The piece; None when everything wanted is constant.
        needs: Its inputs, in the piece's order.
        computed: Its outputs, in the piece's order.
        wanted: Names of all tensors that are wanted.
        constants: Those among them that depend on nothing.
        reference: Whether to use the reference kernels rather than the default delegate.
        assigns: Whether the piece assigns variables, so that each run needs an interpreter of its own.

    Raises:
        InferenceError: if the interpreter refuses the piece.
    """

    def __init__(
        self,
        written: WrittenPiece | None,
        needs: Sequence[SegmentPort],
        computed: Sequence[SegmentPort],
        wanted: Sequence[str],
        constants: Mapping[str, Array],
        *,
        reference: bool,
        assigns: bool = False,
    ) -> None:
        self.needs = tuple(port.spec.name for port in needs)
        self.wanted = tuple(wanted)
        self._constants = dict(constants)
        self._inputs: list[tuple[SegmentPort, int]] = []
        self._outputs: list[tuple[SegmentPort, int]] = []
        self._interpreter: Any = None
        self._resized: list[tuple[int, ...]] | None = None
        self._written, self._reference, self._assigns = written, reference, assigns
        if written is not None:
            self._inputs = list(zip(needs, written.inputs, strict=True))
            self._outputs = list(zip(computed, written.outputs, strict=True))
            self._prepare(written)

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """See `conrepair.networks.network.Segment`."""
        results = dict(self._constants)
        if self._written is not None:
            if self._interpreter is None:
                self._prepare(self._written)
            missing = [name for name in self.needs if name not in feeds]
            if missing:
                raise DataError(f"the piece needs values of {missing}, which aren't fed.")
            arrays = [port.stored(np.asarray(feeds[port.spec.name])) for port, _ in self._inputs]
            try:
                self._invoke(arrays)
            except (RuntimeError, ValueError) as error:
                raise InferenceError(f"TFLite can't compute {self.wanted}: {error}") from error
            for port, place in self._outputs:
                results[port.spec.name] = to_real(port.spec, self._interpreter.get_tensor(place))
            if self._assigns:
                self._interpreter = None
        return {name: results[name] for name in self.wanted}

    def _prepare(self, written: WrittenPiece) -> None:
        try:
            self._interpreter = interpreter_of(written.content, reference=self._reference)
            self._interpreter.allocate_tensors()
        except (RuntimeError, ValueError) as error:
            raise InferenceError(f"TFLite can't prepare the piece that computes {self.wanted}: {error}") from error
        self._resized = None

    def _invoke(self, arrays: Sequence[Array]) -> None:
        self._fit(arrays)
        # State of recurrent layers would go on from one batch to the next.
        self._interpreter.reset_all_variables()
        for array, (_, place) in zip(arrays, self._inputs, strict=True):
            self._interpreter.set_tensor(place, array)
        self._interpreter.invoke()

    def _fit(self, arrays: Sequence[Array]) -> None:
        """Resize inputs whose shape couldn't be known."""
        if all(port.has_shape for port, _ in self._inputs):
            return
        shapes = [array.shape for array in arrays]
        if shapes != self._resized:
            for shape, (_, place) in zip(shapes, self._inputs, strict=True):
                self._interpreter.resize_tensor_input(place, shape)
            self._interpreter.allocate_tensors()
            self._resized = shapes
