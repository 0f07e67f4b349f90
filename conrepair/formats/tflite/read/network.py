"""TFLite models as networks: any piece becomes a flatbuffer for an interpreter of its own."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from conrepair.formats.models.model import Model
from conrepair.formats.models.runnable import loading
from conrepair.formats.networks.network import Network, Segment
from conrepair.formats.tflite.read.constants import TfliteConstants
from conrepair.formats.tflite.read.file import TfliteFile
from conrepair.formats.tflite.read.graph import build_graph
from conrepair.formats.tflite.read.piece import TflitePiece, WrittenPiece, interpreter_of, write_piece
from conrepair.formats.tflite.read.shapes import probe
from conrepair.ground.data.stored_values import to_real, to_stored
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.graph.layer_graph import Array, Tensor
from conrepair.ground.runtime.errors import ConrepairError, DataError, InferenceError

# They give what an initializing subgraph has put somewhere.
_READ_STATE = frozenset({"READ_VARIABLE", "HASHTABLE_FIND", "HASHTABLE_SIZE"})


class TfliteNetwork(Network):
    """See `conrepair.formats.networks.network.Network`.

    Args:
        file: The model.
        inputs: With concrete sizes; None for those that the file says.
        reference: Whether pieces run on TFLite's reference kernels rather than with the default delegate (XNNPACK).

    Attributes:
        operators: Index in the file of the operator that each node is, or is a part of; constant results have none.
    """

    def __init__(self, file: TfliteFile, inputs: Sequence[TensorSpec] | None, *, reference: bool = False) -> None:
        probed = probe(file, inputs)
        self._file, self._inputs, self._reference = file, inputs, reference
        self._constants = TfliteConstants(file, probed)
        built = build_graph(file, self._constants, probed)
        self.graph = built.graph
        self.operators, self._indices = built.operators, built.tensors
        self.input_names = {name: file.names[index] for name, index in probed.inputs}
        self.output_names = {name: file.names[index] for name, index in probed.outputs}
        self.ordered = probed.ordered

    def segment(self, fed: Collection[str], wanted: Sequence[str]) -> TfliteSegment:
        """See `conrepair.formats.networks.network.Network`."""
        self.check_cuts(fed, wanted)
        computed = [name for name in dict.fromkeys(wanted) if self._indices[name] not in self._constants]
        nodes = self.graph.between(list(fed), computed)
        read = {name for node in nodes for name in node.inputs if name}
        needs = [name for name in dict.fromkeys(fed) if name in read]
        missing = [name for name in self.graph.inputs if name in read and name not in needs]
        if missing:
            raise ValueError(f"{', '.join(wanted)} can't be computed without the inputs {', '.join(missing)}.")
        constants = {
            name: self._constants.real(self._indices[name])
            for name in wanted
            if self._indices[name] in self._constants
        }
        operators = sorted({self.operators[node.name] for node in nodes if node.name in self.operators})
        written = None
        if operators:
            piece = TflitePiece(
                tuple(sorted({*operators, *self._constants.needed(operators), *self._initializing(operators)})),
                tuple(self._indices[name] for name in needs),
                tuple(self._indices[name] for name in computed),
                self._constants.sizes,
            )
            shapes = {index: shape for index, shape in enumerate(self._constants.shapes) if shape is not None}
            written = write_piece(self._file, piece, shapes)
        return TfliteSegment(
            written,
            [self.graph.tensors[name] for name in needs],
            [self.graph.tensors[name] for name in computed],
            wanted,
            constants,
            reference=self._reference,
            assigns=any(self._file.kinds[index] == "ASSIGN_VARIABLE" for index in operators),
        )

    def second_opinion(self) -> TfliteNetwork:
        """On the reference kernels, from the same file."""
        return TfliteNetwork(self._file, self._inputs, reference=True)

    def _initializing(self, operators: Sequence[int]) -> list[int]:
        kinds = self._file.kinds
        if not any(kinds[index] in _READ_STATE for index in operators):
            return []
        return [index for index, kind in enumerate(kinds) if kind == "CALL_ONCE"]


def open_network(model: Model, inputs: Sequence[TensorSpec] | None) -> TfliteNetwork:
    """Open a TFLite model.

    Args:
        model: A flatbuffer.
        inputs: The model's inputs with concrete sizes, named as its `Runnable` names them; None for those that the
            file says.

    Raises:
        ModelLoadError: if it can't be loaded.
        DataError: if the inputs' sizes aren't all known.
    """
    with loading(model, "a TFLite model", passing=ConrepairError):
        return TfliteNetwork(TfliteFile(model.path), inputs)


class TfliteSegment(Segment):
    """See `conrepair.formats.networks.network.Segment`.

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
        needs: Sequence[Tensor],
        computed: Sequence[Tensor],
        wanted: Sequence[str],
        constants: Mapping[str, Array],
        *,
        reference: bool,
        assigns: bool = False,
    ) -> None:
        self.needs = tuple(tensor.name for tensor in needs)
        self.wanted = tuple(wanted)
        self._constants = dict(constants)
        self._inputs: list[tuple[Tensor, int]] = []
        self._outputs: list[tuple[Tensor, int]] = []
        self._interpreter: Any = None
        self._resized: list[tuple[int, ...]] | None = None
        self._written, self._reference, self._assigns = written, reference, assigns
        if written is not None:
            self._inputs = list(zip(needs, written.inputs, strict=True))
            self._outputs = list(zip(computed, written.outputs, strict=True))
            self._prepare(written)

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """See `conrepair.formats.networks.network.Segment`."""
        results = dict(self._constants)
        if self._written is not None:
            if self._interpreter is None:
                self._prepare(self._written)
            missing = [name for name in self.needs if name not in feeds]
            if missing:
                raise DataError(f"the segment reads {missing}, which it wasn't fed.")
            given = [(tensor, np.asarray(feeds[tensor.name])) for tensor, _ in self._inputs]
            arrays = [to_stored(_spec(tensor, array.shape), array) for tensor, array in given]
            try:
                self._invoke(arrays)
            except (RuntimeError, ValueError) as error:
                raise InferenceError(f"TFLite can't compute {self.wanted}: {error}") from error
            for tensor, place in self._outputs:
                results[tensor.name] = to_real(_spec(tensor), self._interpreter.get_tensor(place))
            if self._assigns:
                self._interpreter = None
        return {name: results[name] for name in self.wanted}

    def _prepare(self, written: WrittenPiece) -> None:
        try:
            self._interpreter = interpreter_of(written.content, reference=self._reference)
            self._interpreter.allocate_tensors()
        except (RuntimeError, ValueError) as error:
            raise InferenceError(f"TFLite can't prepare the segment that computes {self.wanted}: {error}") from error
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
        if all(tensor.shape is not None for tensor, _ in self._inputs):
            return
        shapes = [array.shape for array in arrays]
        if shapes != self._resized:
            for shape, (_, place) in zip(shapes, self._inputs, strict=True):
                self._interpreter.resize_tensor_input(place, shape)
            self._interpreter.allocate_tensors()
            self._resized = shapes


def _spec(tensor: Tensor, shape: tuple[int, ...] = ()) -> TensorSpec:
    """What the interpreter takes or gives; a shape counts where only running tells the tensor's."""
    return TensorSpec(tensor.name, shape if tensor.shape is None else tensor.shape, tensor.dtype, tensor.quantization)
