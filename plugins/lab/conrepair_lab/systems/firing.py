"""Which of ONNX Runtime's optimizations change a network, found by switching each of them off.

A name is proved only once it has fired: `disabled_optimizers` ignores a wrong one without a word.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from pathlib import Path

import onnx
from onnx import numpy_helper

from conrepair.formats.onnx.load.optimizers import OPTIMIZERS
from conrepair.ground.runtime.onnx_session import open_session


def optimized(text: bytes, off: Collection[str] = ()) -> str:
    """The graph that ONNX Runtime would run, in one word that is the same for the same graph, whatever its names.

    Args:
        text: A network.
        off: Optimizers that are left out.
    """
    open_session(text, threads=1, quiet=True, optimized=True, off=off, written=_file())
    return _essence(onnx.load_from_string(_file().read_bytes()).graph)


@cache
def _file() -> Path:
    """One for all: to make and remove files takes longer than sessions do."""
    return Path(tempfile.mkdtemp()) / "optimized.onnx"


def fired(model: onnx.ModelProto, names: Sequence[str] = OPTIMIZERS) -> set[str]:
    """Optimizations without which the optimized graph is another."""
    text = model.SerializeToString()
    every = optimized(text)
    return singled_out(names, lambda off: optimized(text, off) != every)


def singled_out(names: Sequence[str], differs: Callable[[Collection[str]], bool]) -> set[str]:
    """Those that make a difference by themselves, found by halves: most make none, together with others neither.

    Args:
        names: Of optimizations.
        differs: Whether some make one together.
    """
    if not names or not differs(names):
        return set()
    if len(names) == 1:
        return set(names)
    middle = len(names) // 2
    return singled_out(names[:middle], differs) | singled_out(names[middle:], differs)


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
