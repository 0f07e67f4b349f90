"""ONNX Runtime sessions of pieces, over weights that are shared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from conrepair.formats.networks.network import Segment
from conrepair.formats.onnx.read.cut import OnnxCut
from conrepair.ground.data.stored_values import as_text, quantized, real_values
from conrepair.ground.graph.layer_graph import Array, Tensor
from conrepair.ground.runtime.errors import InferenceError
from conrepair.ground.runtime.words import lines_of

PACKED_PRODUCT = "com.microsoft.MatMulNBits"
"""ONNX Runtime's product by weights in few bits."""

_FATAL_ONLY = 4  # what can't be built is raised; printing it too helps nobody
_LARGE = 1 << 30  # bytes of weights in a network from which on they don't get another type in an optimized session
_PACKED = 32 << 20  # bytes of weights in a network up to which each session may have its own, packed copy


@dataclass(frozen=True)
class OpenPiece:
    """A session, and the weights that it computes with, which it doesn't keep alive itself."""

    session: Any
    weights: tuple[Any, ...]

    def run(self, wanted: Sequence[str], feeds: Mapping[str, Array]) -> list[Array]:
        """Compute outputs.

        Raises:
            InferenceError: if ONNX Runtime fails.
        """
        try:
            results: list[Array] = self.session.run(list(wanted), dict(feeds), _quiet())
        # onnxruntime raises one class per status code, without a common base of their own.
        except Exception as error:
            raise InferenceError(f"running a segment of the network failed: {lines_of(error)[0]}") from error
        return results


def _quiet() -> Any:
    options = onnxruntime.RunOptions()
    options.log_severity_level = _FATAL_ONLY
    return options


@dataclass(frozen=True)
class Sessions:
    """Opens sessions on the CPU that share the weights.

    Weights are mapped, and sessions compute with them in place. (An optimized session copies those that the model's
    file holds itself: it may change them.) Kernels keep a packed copy of some weights, which is faster; sessions of
    large networks go without, but for weights in few bits: their numbers then differ by rounding.

    Attributes:
        folder: Where external files are.
        weights: Bytes of them in the whole network.
        optimized: With all graph optimizations; otherwise as it's written.
    """

    folder: Path
    weights: int
    optimized: bool = False

    def open(self, piece: OnnxCut) -> OpenPiece:
        """Make a piece ready to run.

        Raises:
            InferenceError: if ONNX Runtime refuses it.
        """
        options = self._options(piece)
        values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(item.numpy()) for name, item in piece.given.items()}
        if self.optimized:
            options.add_external_initializers(list(values), list(values.values()))
        else:
            for name, value in values.items():
                options.add_initializer(name, value)
        try:
            session = onnxruntime.InferenceSession(
                piece.proto.SerializeToString(),
                options,
                providers=["CPUExecutionProvider"],
                disabled_optimizers=["ConstantFolding"] if self.optimized and self.weights > _LARGE else None,
            )
        # onnxruntime raises one class per status code, without a common base of their own.
        except Exception as error:
            raise InferenceError(f"ONNX Runtime can't run a segment of the network: {lines_of(error)[0]}") from error
        return OpenPiece(session, () if self.optimized else tuple(values.values()))

    def _options(self, piece: OnnxCut) -> Any:
        level = onnxruntime.GraphOptimizationLevel
        options = onnxruntime.SessionOptions()
        most = level.ORT_ENABLE_EXTENDED if self.weights > _LARGE else level.ORT_ENABLE_ALL
        options.graph_optimization_level = most if self.optimized else level.ORT_DISABLE_ALL
        options.log_severity_level = _FATAL_ONLY
        options.enable_mem_pattern = False  # one block for all intermediate values is larger than those alive at once
        options.enable_cpu_mem_arena = False  # an arena keeps what results took until the session goes
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(self.folder))
        if self.weights > _PACKED:
            # Weights in few bits would become real numbers as a whole in each run, which takes four times as long.
            if not any(f"{node.domain}.{node.op_type}" == PACKED_PRODUCT for node in piece.proto.graph.node):
                options.add_session_config_entry("session.disable_prepacking", "1")
            # Else weights of a type that no kernel takes are converted long before they're read.
            options.execution_order = onnxruntime.ExecutionOrder.PRIORITY_BASED
        return options


class OnnxSegment(Segment):
    """See `conrepair.formats.networks.network.Segment`."""

    def __init__(self, piece: OnnxCut, tensors: Mapping[str, Tensor], sessions: Sessions) -> None:
        self.needs = tuple(piece.feeds)
        self.wanted = piece.wanted
        self._feeds = dict(piece.feeds)
        self._tensors = {name: tensors[name] for name in (*self.needs, *self.wanted)}
        self._open = sessions.open(piece)

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """See the base class."""
        missing = [name for name in self.needs if name not in feeds]
        if missing:
            raise InferenceError(f"the segment reads {missing} too, which it wasn't fed")
        given = {self._feeds[name]: _stored(self._tensors[name], feeds[name]) for name in self.needs}
        results = self._open.run(self.wanted, given)
        return {name: _real(self._tensors[name], array) for name, array in zip(self.wanted, results, strict=True)}


def _stored(tensor: Tensor, array: Array) -> Array:
    """An array as the file stores it."""
    dtype = np.dtype(tensor.dtype)
    if tensor.quantization is not None and array.dtype.kind == "f":
        return quantized(array, tensor.quantization, dtype)
    return np.asarray(array, dtype=dtype, order="C")


def _real(tensor: Tensor, array: Array) -> Array:
    """An array as the real numbers that it stands for; texts as numpy's own."""
    if array.dtype.kind == "O":
        return as_text(array)
    return array if tensor.quantization is None else real_values(array, tensor.quantization)
