"""An audit of many targets: one network, and copies with a weight that's off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from conrepair.ground.graph.layer_graph import Array

__all__ = ["audit_of"]

_LAYERS, _WIDTH = 4, 16


def audit_of(folder: Path, targets: int) -> dict[str, Any]:
    """Write the models, and return the configuration of an audit with localization and repair.

    Args:
        folder: Where; exists.
        targets: How many.
    """
    drawn = np.random.default_rng(3)
    weights = [drawn.standard_normal((_WIDTH, _WIDTH)).astype(np.float32) / 4 for _ in range(_LAYERS)]
    models = [{"name": "source", "path": _written(folder / "source.onnx", weights)}]
    for number in range(targets):
        off = [weight.copy() for weight in weights]
        off[number % _LAYERS][:, number % _WIDTH] += 0.3 + number / 10
        path = _written(folder / f"target-{number}.onnx", off)
        models.append({"name": f"target-{number}", "path": path, "compare_with": "source"})
    stages = {"localize": True, "repair": True}
    return {"name": "many", "models": models, "stages": stages, "dataset": {"synthetic": {"samples": 4}}}


def _written(path: Path, weights: list[Array]) -> str:
    nodes, last = [], "x"
    for number in range(len(weights)):
        nodes.append(helper.make_node("MatMul", [last, f"w{number}"], [f"m{number}"], f"product{number}"))
        last = "y" if number == len(weights) - 1 else f"r{number}"
        nodes.append(helper.make_node("Relu", [f"m{number}"], [last], f"relu{number}"))
    floats = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", _WIDTH]) for name in ("x", "y")]
    held = [numpy_helper.from_array(weight, f"w{number}") for number, weight in enumerate(weights)]
    graph = helper.make_graph(nodes, "layers", floats[:1], floats[1:], held)
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path.name
