"""Which of ONNX Runtime's optimizations change a network, found by switching each of them off.

A name is proved only once it has fired: `disabled_optimizers` ignores a wrong one without a word.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

import onnx
from onnx import numpy_helper

from conrepair.formats.onnx.load.optimizers import OPTIMIZERS

__all__ = ["ELSEWHERE", "OPTIMIZATIONS", "Optimizer", "fired", "fired_alone"]

_OPTIONS = {
    "CastChainElimination": "optimization.enable_cast_chain_elimination",
    "GeluApproximation": "optimization.enable_gelu_approximation",
}
"""What is off unless a session's option says otherwise."""

OPTIMIZATIONS = (*OPTIMIZERS, *_OPTIONS)
ELSEWHERE = (
    "BiasDropoutFusion",
    "BiasSoftmaxFusion",
    "MatMulActivationFusion",
    "GroupQueryAttentionFusion",
    "GroupQueryAttentionPreNormFusion",
)
"""Registered, but for other devices than a CPU."""


class Optimizer:
    """ONNX Runtime as far as the optimized graph.

    Attributes:
        sessions: How many were made.
    """

    def __init__(self) -> None:
        import onnxruntime

        onnxruntime.set_default_logger_severity(4)
        self._runtime, self.sessions = onnxruntime, 0
        self._file = Path(tempfile.mkdtemp()) / "optimized.onnx"

    def optimized(self, text: bytes, disabled: Collection[str] = (), option: str | None = None) -> str:
        """The graph that it would run, in one word that is the same for the same graph, whatever names are in it."""
        self.sessions += 1
        options = self._runtime.SessionOptions()
        options.graph_optimization_level = self._runtime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        options.optimized_model_filepath = str(self._file)
        if option is not None:
            options.add_session_config_entry(option, "1")
        self._runtime.InferenceSession(
            text, options, providers=["CPUExecutionProvider"], disabled_optimizers=list(disabled)
        )
        return _essence(onnx.load_from_string(self._file.read_bytes()).graph)


def fired(model: onnx.ModelProto, optimizer: Optimizer, names: Collection[str] = OPTIMIZATIONS) -> set[str]:
    """Optimizations without which the optimized graph is another."""
    text = model.SerializeToString()
    every = optimizer.optimized(text)
    by_option = {
        name for name in names if name in _OPTIONS and optimizer.optimized(text, (), _OPTIONS[name]) != every
    }
    switched = [name for name in names if name in OPTIMIZERS]
    return by_option | _singled_out(switched, lambda off: optimizer.optimized(text, off) != every)


def fired_alone(model: onnx.ModelProto, optimizer: Optimizer, names: Collection[str]) -> set[str]:
    """Those that change the graph with all others off: another one may else do the same in their place."""
    text = model.SerializeToString()
    nothing = optimizer.optimized(text, OPTIMIZERS)
    return _singled_out(
        [name for name in names if name in OPTIMIZERS],
        lambda on: optimizer.optimized(text, [name for name in OPTIMIZERS if name not in on]) != nothing,
    )


def _singled_out(names: Sequence[str], differs: Callable[[Collection[str]], bool]) -> set[str]:
    """Those that make a difference by themselves, found by halves: most make none, together with others neither."""
    if not names or not differs(names):
        return set()
    if len(names) == 1:
        return set(names)
    middle = len(names) // 2
    return _singled_out(names[:middle], differs) | _singled_out(names[middle:], differs)


def _essence(graph: onnx.GraphProto, outside: Mapping[str, str] | None = None) -> str:
    """All of a graph but its names and its order: a digest of each tensor from those that it's made of."""
    known = dict(outside or {})
    known.update((value.name, f"input {place}") for place, value in enumerate(graph.input))
    for item in graph.initializer:
        array = numpy_helper.to_array(item)
        known[item.name] = _digest(str(array.dtype), str(array.shape), array.tobytes())
    nodes = []
    for node in graph.node:
        said = sorted(_attribute(item, known) for item in node.attribute)
        word = _digest(node.domain, node.op_type, *said, *(known.get(name, "") for name in node.input))
        known.update((name, f"{word} {place}") for place, name in enumerate(node.output))
        nodes.append(word)
    return _digest(*sorted(nodes), *(known[value.name] for value in graph.output))


def _attribute(item: onnx.AttributeProto, known: Mapping[str, str]) -> str:
    if item.type == onnx.AttributeProto.GRAPH:
        return f"{item.name} {_essence(item.g, known)}"
    return f"{item.name} {item.SerializeToString(deterministic=True)!r}"


def _digest(*parts: str | bytes) -> str:
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        found.update(part if isinstance(part, bytes) else part.encode())
        found.update(b"\0")
    return found.hexdigest()
