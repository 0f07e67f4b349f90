"""Which tensors of a TFLite model depend on no input, and their numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from functools import cached_property

import numpy as np

from conrepair.formats.networks.stored import StoredParameter, stored_parameter
from conrepair.formats.tflite.read.file import TfliteFile
from conrepair.formats.tflite.read.piece import TflitePiece, interpreter_of, write_piece
from conrepair.formats.tflite.read.shapes import OPAQUE, SHAPING_OPERANDS, Probe
from conrepair.ground.data.tensor_spec import numpy_dtype
from conrepair.ground.graph.layer_graph import Array

_NEVER = OPAQUE | {
    *(
        "CUSTOM",
        "ASSIGN_VARIABLE",
        "HASHTABLE",
        "HASHTABLE_IMPORT",
        "HASHTABLE_SIZE",
        "RANDOM_UNIFORM",
        "MULTINOMIAL",
    ),
    *("RANDOM_STANDARD_NORMAL", "STABLEHLO_RNG_BIT_GENERATOR", "LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM", "SVDF"),
}

Arrange = Callable[[Array], Array]


class TfliteConstants:
    """Tensors that are the same for all inputs of the shapes that the network was opened with.

    Sizes of tensors count as constants: with them, a Reshape to [batch, ...] has a constant shape.

    Attributes:
        operators: Those that compute constants.
        of_sizes: Tensors that are constant only because sizes are.
        shapes: Of all tensors; None where only running tells.
    """

    def __init__(self, file: TfliteFile, probed: Probe) -> None:
        self._file = file
        self._sizes: dict[int, Array] = {}
        self.of_sizes: set[int] = set()
        self._constant = {index for index in range(len(file.tensors)) if file.is_stored(index)}
        given = {index for _, index in probed.inputs}
        self._fixed = {index for index, allocated in enumerate(probed.allocated) if allocated} | given
        self._probed = probed.shapes
        found = [index for index in range(len(file.operators)) if self._visit(index)]
        self.operators = frozenset(found)
        self.shapes = tuple(
            shape if index in self._fixed or index in self._constant else None
            for index, shape in enumerate(probed.shapes)
        )

    def __contains__(self, tensor: int) -> bool:
        """Whether a tensor is constant."""
        return tensor in self._constant

    def _visit(self, index: int) -> bool:
        """Whether an operator computes constants; to be asked in the operators' order."""
        file, kind = self._file, self._file.kinds[index]
        inputs = [tensor for tensor in file.inputs(index) if tensor >= 0]
        outputs = file.outputs(index)
        if kind in {"SHAPE", "RANK"} and inputs[0] in self._fixed and self._probed[inputs[0]] is not None:
            shape = np.array(self._probed[inputs[0]])
            value = shape if kind == "SHAPE" else np.array(shape.size)
            self._sizes[outputs[0]] = value.astype(numpy_dtype(file.dtype(outputs[0])))
            self.of_sizes.update(outputs)
        elif kind in _NEVER or not inputs or not self._constant.issuperset(inputs):
            if self._keeps_shapes(index, kind, inputs):
                self._fixed.update(tensor for tensor in outputs if self._probed[tensor] is not None)
            return False
        elif not self.of_sizes.isdisjoint(inputs):
            self.of_sizes.update(outputs)
        self._constant.update(outputs)
        self._fixed.update(outputs)
        return True

    def _keeps_shapes(self, index: int, kind: str, inputs: Sequence[int]) -> bool:
        """Whether the shapes of an operator's results follow from what is known."""
        file = self._file
        if kind in OPAQUE or kind == "CUSTOM":
            return all(
                file.declares_shape(tensor) and file.shape(tensor) == self._probed[tensor]
                for tensor in file.outputs(index)
            )
        operands = file.inputs(index)
        shaping = [operands[position] for position in SHAPING_OPERANDS.get(kind, ()) if position < len(operands)]
        variables = {tensor for tensor in inputs if file.tensors[tensor].isVariable}
        return all(tensor in self._constant for tensor in shaping if tensor >= 0) and all(
            tensor in self._fixed or tensor in self._constant or tensor in variables for tensor in inputs
        )

    @cached_property
    def sizes(self) -> Mapping[int, Array]:
        """The tensors that are constant because sizes are, as far as other operators read them."""
        computing = [index for index in sorted(self.operators) if self._is_of_sizes(index)]
        read = {
            tensor
            for index in range(len(self._file.operators))
            if index not in self.operators
            for tensor in self._file.inputs(index)
        } | set(self._file.outputs_of_graph)
        wanted = sorted((self.of_sizes - self._sizes.keys()) & read)
        found = {tensor: value for tensor, value in self._sizes.items() if tensor in read}
        return found | self._computed(computing, wanted)

    def stored(self, tensor: int) -> Array:
        """A constant's values, as the tensor's type has them."""
        if self._file.is_stored(tensor):
            return self._file.numbers(tensor)
        if tensor in self._sizes:
            return self._sizes[tensor]
        if tensor in self.of_sizes and tensor in self.sizes:
            return self.sizes[tensor]
        return self._computed(self._behind({tensor}, self.operators), [tensor])[tensor]

    def real(self, tensor: int) -> Array:
        """A constant's values, as the numbers they stand for."""
        root = self._root(tensor)
        numbers = self._file.meant(root, self.stored(root))
        return numbers.astype(numpy_dtype(self._file.dtype(tensor))) if root != tensor else numbers

    def parameter(self, tensor: int, arrange: Arrange | None = None) -> StoredParameter:
        """A constant as a parameter.

        Args:
            tensor: Its index.
            arrange: From the file's convention to the graph's; None where they're the same.
        """
        held = self._file.parameter(self._root(tensor))
        shapes, more = [self.shape(tensor)], {"bits": held.bits, "scales": held.scales, "blocks": held.blocks}
        return stored_parameter(held.name, held.dtype, lambda: [self.real(tensor)], shapes, arrange, **more)

    def shape(self, tensor: int) -> tuple[int, ...]:
        """A constant's shape."""
        probed = self._probed[tensor]
        if self._file.is_stored(tensor):
            return self._file.shape(tensor)
        return self.stored(tensor).shape if probed is None or tensor in self.of_sizes else probed

    def needed(self, operators: Sequence[int]) -> list[int]:
        """Constant operators that others need, those that compute with sizes excepted."""
        wanted = {tensor for index in operators for tensor in self._file.inputs(index)}
        return self._behind(wanted, {index for index in self.operators if not self._is_of_sizes(index)})

    def _is_of_sizes(self, index: int) -> bool:
        return not self.of_sizes.isdisjoint(self._file.outputs(index))

    def _root(self, tensor: int) -> int:
        """The stored tensor whose numbers a Dequantize only writes in another type."""
        while not self._file.is_stored(tensor) and (index := self._producers.get(tensor)) is not None:
            if self._file.kinds[index] != "DEQUANTIZE":
                break
            tensor = self._file.inputs(index)[0]
        return tensor

    @cached_property
    def _producers(self) -> Mapping[int, int]:
        return {tensor: index for index in self.operators for tensor in self._file.outputs(index)}

    def _behind(self, wanted: set[int], operators: Set[int]) -> list[int]:
        """Those of some constant operators that compute tensors; what they read is added to these."""
        found = []
        for index in sorted(operators, reverse=True):
            if wanted.intersection(self._file.outputs(index)):
                found.append(index)
                wanted.update(self._file.inputs(index))
        return found[::-1]

    def _computed(self, operators: Sequence[int], wanted: Sequence[int]) -> dict[int, Array]:
        """Run constant operators, by the framework's own kernels."""
        if not wanted:
            return {}
        body = [index for index in operators if self._file.kinds[index] not in {"SHAPE", "RANK"}]
        piece = TflitePiece(tuple(body), (), tuple(wanted), self._sizes)
        written = write_piece(self._file, piece, {})
        interpreter = interpreter_of(written.content, reference=True)
        interpreter.allocate_tensors()
        interpreter.invoke()
        return {tensor: interpreter.get_tensor(place) for tensor, place in zip(wanted, written.outputs, strict=True)}
