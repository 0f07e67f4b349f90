"""What a model's file is worth: what it answers, how large it is, what it holds in few bits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from conrepair.formats.models.identity import model_files
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.data.feeds import DataReference, batches, open_feeds
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.typed import typed
from conrepair.verdicts.evaluate.pairing import fit, pair_outputs

__all__ = ["Agreement", "agreement", "answers", "quantized_tensors", "size"]

Answers = dict[str, np.ndarray[Any, Any]]

_BATCH = 8


@dataclass(frozen=True)
class Agreement:
    """How far two models answer alike.

    Attributes:
        error: Largest relative L2 of an output; infinite where outputs have no partner or aren't finite.
        top1: How many samples have another largest class, in any output of scores.
    """

    error: float
    top1: int


def answers(side: Mapping[str, Any], data: DataReference) -> Answers:
    """All outputs of a model for all samples, computed by its own framework from its file."""
    inputs = tuple(typed(TensorSpec, spec) for spec in side["inputs"])
    runnable = framework(side["model"]["framework"]).load(typed(Model, side["model"]))
    parts: dict[str, list[np.ndarray[Any, Any]]] = {}
    for batch in batches(open_feeds(data, inputs, None), inputs, _BATCH):
        for name, array in runnable.run(batch.feeds).items():
            parts.setdefault(name, []).append(array[: batch.valid])
    return {name: np.concatenate(arrays) for name, arrays in parts.items()}


def agreement(right: Answers, given: Answers) -> Agreement:
    """Compare the answers of two models to the same samples."""
    pairs, unpaired = pair_outputs(right, given)
    errors, differing = [float("inf")] if unpaired else [0.0], np.zeros(0, bool)
    for pair in pairs:
        one, two = fit(pair, right[pair.reference], given[pair.candidate])
        if one.shape != two.shape or not np.isfinite(two).all():
            return Agreement(float("inf"), len(one))
        difference = np.linalg.norm((two.astype(float) - one).ravel())
        errors.append(float(difference / max(np.linalg.norm(one.astype(float).ravel()), np.finfo(np.float32).tiny)))
        if one.ndim == 2 and one.shape[1] > 1:  # scores of classes
            other = one.argmax(1) != two.argmax(1)
            differing = other if not len(differing) else differing | other
    return Agreement(max(errors), int(differing.sum()))


def size(path: Path) -> int:
    """Bytes of a model with all that belongs to it."""
    files = [item for part in model_files(path) for item in (part.rglob("*") if part.is_dir() else (part,))]
    return sum(item.stat().st_size for item in files if item.is_file())


def quantized_tensors(model: Model) -> int | None:
    """How many constants a file stores in eight bits; None for a format of which that isn't known here."""
    if model.framework == "onnx":
        import onnx

        kinds = {onnx.TensorProto.INT8, onnx.TensorProto.UINT8}
        held = onnx.load(model.path, load_external_data=False).graph.initializer
        return sum(item.data_type in kinds and bool(item.dims) for item in held)
    if model.framework == "tflite":
        from ai_edge_litert import schema_py_generated as schema

        graph = schema.ModelT.InitFromPackedBuf(Path(model.path).read_bytes())
        constant = [buffer.data is not None and len(buffer.data) > 0 for buffer in graph.buffers]
        return sum(
            tensor.type in {schema.TensorType.INT8, schema.TensorType.UINT8}
            and constant[tensor.buffer]
            and tensor.quantization is not None
            and tensor.quantization.scale is not None
            for subgraph in graph.subgraphs
            for tensor in subgraph.tensors
        )
    return None
