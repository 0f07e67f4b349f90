"""Nodes whose inputs are all known are computed while importing, by ONNX Runtime without optimizations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir
from onnx.reference import ReferenceEvaluator

from conrepair.ground.onnx_graphs.computing import computing
from conrepair.ground.runtime.onnx_session import open_session
from conrepair_onnx_keras.importer.values import Array


def evaluate(node: onnx_ir.Node, inputs: Sequence[Array | None], opset: int) -> list[Array]:
    """Compute a node.

    Args:
        node: Of ONNX's own domain, without subgraphs.
        inputs: In its order; None for those left out.
        opset: Of the model.

    Returns:
        Its outputs.

    Raises:
        RuntimeError: if neither ONNX Runtime nor ONNX's reference implementation can.
    """
    names = [f"input_{index}" if value is not None else "" for index, value in enumerate(inputs)]
    pairs = zip(names, inputs, strict=True)
    given = {name: np.asarray(value, order="C") for name, value in pairs if value is not None}
    outputs = [f"output_{index}" if value.name else "" for index, value in enumerate(node.outputs)]
    proto = onnx.helper.make_node(node.op_type, names, outputs, domain=node.domain)
    proto.attribute.extend(onnx_ir.to_proto(attribute) for attribute in node.attributes.values())
    model = computing([proto], given, filter(None, outputs), {node.domain: opset})
    try:
        results = run(model, given)
    # onnxruntime raises one class per status code, without a common base of their own; the second way decides.
    except Exception:  # noqa: BLE001
        try:
            results = list(ReferenceEvaluator(model).run(None, given))
        except Exception as error:
            raise RuntimeError(f"{type(error).__name__}: {str(error).strip()[:200]}") from error
    found = iter(results)
    return [np.asarray(next(found)) if name else np.zeros(0) for name in outputs]


def run(model: onnx.ModelProto, feeds: dict[str, Array]) -> list[Any]:
    """All outputs of a model by ONNX Runtime, with optimizations disabled."""
    # What it can't do is tried otherwise, or answers a question.
    session = open_session(model.SerializeToString(), threads=1, quiet=True)
    results: list[Any] = session.run(None, feeds)
    return results
