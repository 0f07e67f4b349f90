"""TFLite models as networks: any piece becomes a flatbuffer for an interpreter of its own."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from conrepair.data.tensor_spec import TensorSpec
from conrepair.frameworks.model import Model
from conrepair.frameworks.runnable import loading
from conrepair.graph.layer_graph import Tensor
from conrepair.networks.network import Network
from conrepair.networks.tflite_constants import TfliteConstants
from conrepair.networks.tflite_file import TfliteFile
from conrepair.networks.tflite_graph import build_graph
from conrepair.networks.tflite_piece import TflitePiece, write_piece
from conrepair.networks.tflite_segment import SegmentPort, TfliteSegment
from conrepair.networks.tflite_shapes import probe
from conrepair.runtime.errors import ConrepairError

__all__ = ["TfliteNetwork", "open_network"]

# They give what an initializing subgraph has put somewhere.
_READ_STATE = frozenset({"READ_VARIABLE", "HASHTABLE_FIND", "HASHTABLE_SIZE"})


class TfliteNetwork(Network):
    """See `conrepair.networks.network.Network`.

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
        """See `conrepair.networks.network.Network`."""
        self._check(fed, wanted)
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
            [self._port(name) for name in needs],
            [self._port(name) for name in computed],
            wanted,
            constants,
            reference=self._reference,
            assigns=any(self._file.kinds[index] == "ASSIGN_VARIABLE" for index in operators),
        )

    def second_opinion(self) -> TfliteNetwork:
        """On the reference kernels, from the same file."""
        return TfliteNetwork(self._file, self._inputs, reference=True)

    def _check(self, fed: Collection[str], wanted: Sequence[str]) -> None:
        for name in (*fed, *wanted):
            if name not in self._indices or name not in self.graph.tensors:
                raise ValueError(f"{name} is no tensor of the model that can be observed.")
        given = [name for name in wanted if name in self.graph.inputs]
        if given:
            raise ValueError(f"{', '.join(given)} can't be wanted: they are inputs of the model.")

    def _initializing(self, operators: Sequence[int]) -> list[int]:
        kinds = self._file.kinds
        if not any(kinds[index] in _READ_STATE for index in operators):
            return []
        return [index for index, kind in enumerate(kinds) if kind == "CALL_ONCE"]

    def _port(self, name: str) -> SegmentPort:
        tensor: Tensor = self.graph.tensors[name]
        return SegmentPort(
            TensorSpec(name, tensor.shape or (), tensor.dtype, tensor.quantization), tensor.shape is not None
        )


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
