"""Put a fault into a model at a random place, and make sure that it changes what the model computes."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnx_ir
from onnx_ir.passes.common import LiftConstantsToInitializersPass

from benchmarks.faults.fault import Fault
from conrepair.onnx_passes.files import is_large, save
from conrepair.onnx_passes.infer_shapes import infer_shapes
from conrepair.onnx_passes.verify import relative_error
from conrepair.runtime.onnx_session import open_session

__all__ = ["ATTEMPTS", "LEAST_EFFECT", "Injection", "inject", "prepared"]

LEAST_EFFECT = 1e-4  # relative L2 of an output
ATTEMPTS = 8


@dataclass(frozen=True)
class Injection:
    """A model with a fault.

    Attributes:
        model: The faulty model.
        fault: Which fault it has.
        nodes: Names of the nodes at fault; of removed ones, the neighbours'.
        words: What was done.
        effect: Relative L2 of the output that changed most; infinite where values stopped being finite.
    """

    model: onnx_ir.Model
    fault: Fault[Any]
    nodes: frozenset[str]
    words: str
    effect: float


def inject(
    model: onnx_ir.Model,
    fault: Fault[Any],
    feeds: Mapping[str, npt.NDArray[Any]],
    generator: np.random.Generator,
    *,
    avoid: frozenset[str] = frozenset(),
) -> Injection | None:
    """Inject a fault.

    Args:
        model: A model that is right; it isn't changed.
        fault: What to inject.
        feeds: Inputs on which the model must answer otherwise.
        generator: Decides about the place, and about what the fault leaves open.
        avoid: Names of nodes that must not be touched, because they have a fault already.

    Returns:
        The faulty model; None when the fault has no place in this model, or none where it changes an answer
        (several are tried).
    """
    ready = prepared(model)
    expected = _run(ready, feeds)
    count = len(fault.places(ready.graph))
    attempts = 0
    for index in generator.permutation(count):
        if attempts == ATTEMPTS:
            break
        changed = ready.clone()
        change = fault.change(fault.places(changed.graph)[int(index)], generator)
        names = frozenset(str(node.name) for node in change.nodes)
        if names & avoid:
            continue
        attempts += 1
        effect = _effect(changed, feeds, expected)
        if effect is not None and effect > LEAST_EFFECT:
            return Injection(changed, fault, names, change.words, effect)
    return None


def prepared(model: onnx_ir.Model) -> onnx_ir.Model:
    """A copy that places are looked for in: constants as initializers, shapes inferred, a name for every node."""
    copy = model.clone()
    LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(copy)
    infer_shapes(copy)
    taken: set[str] = set()
    for node in copy.graph:
        name = str(node.name or node.outputs[0].name)
        while name in taken:
            name += "'"
        node.name = name
        taken.add(name)
    return copy


def _effect(
    model: onnx_ir.Model, feeds: Mapping[str, npt.NDArray[Any]], expected: list[npt.NDArray[Any]]
) -> float | None:
    """How much the outputs change; None when the model isn't valid any more, or gives other shapes."""
    try:
        results = _run(model, feeds, check=True)
    # The checker and onnxruntime raise classes without a common base; whatever they say, it's no valid place.
    except Exception:  # noqa: BLE001
        return None
    if [item.shape for item in results] != [item.shape for item in expected]:
        return None
    return max(map(relative_error, expected, results), default=0.0)


def _run(
    model: onnx_ir.Model, feeds: Mapping[str, npt.NDArray[Any]], *, check: bool = False
) -> list[npt.NDArray[Any]]:
    """Run in memory, or from a file where the weights are too many for one message."""
    with tempfile.TemporaryDirectory() as folder:
        source: Path | bytes
        if is_large(model):
            source = Path(folder) / "model.onnx"
            save(model, source)
        else:
            source = onnx_ir.to_proto(model).SerializeToString()
        if check:
            onnx.checker.check_model(source if isinstance(source, bytes) else str(source))
        session = open_session(source, quiet=True)
        return [np.asarray(item) for item in session.run(None, dict(feeds))]
