"""What ONNX tests backends with: a case for each way in which an operator is used."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
from onnx import numpy_helper

from conrepair.generate.learned.closing import Closing
from conrepair.generate.pieces import Piece, operator_of

__all__ = ["cases"]

_RANDOM = frozenset(
    {"Bernoulli", "Multinomial"} | {f"Random{a}{b}" for a in ("Normal", "Uniform") for b in ("", "Like")}
)


def cases() -> Iterator[tuple[str, str, Closing]]:
    """Each case of one operator, and those of sequences.

    Yields:
        The operator, the case's name, and the case.
    """
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # cases compute overflows on purpose
        every = collect_testcases(None)
    for case in every:
        model, sets = case.model, case.data_sets
        if model is not None and sets and len(model.graph.node) == 1:
            yield from _closed(case.name, model, *sets[0])
    for folder in sorted((Path(onnx.backend.test.__file__).parent / "data" / "simple").glob("test_sequence_model*")):
        model = onnx.load(folder / "model.onnx")
        data = folder / "test_data_set_0"
        inputs = [_array(data / f"input_{place}.pb") for place in range(len(_inputs(model.graph)))]
        outputs = [_array(data / f"output_{place}.pb") for place in range(len(model.graph.output))]
        yield from _closed(folder.name, model, inputs, outputs)


def _closed(name: str, model: onnx.ModelProto, inputs: Any, outputs: Any) -> Iterator[tuple[str, str, Closing]]:
    graph = model.graph
    if _RANDOM & Piece("", graph).operators or any("training" in item.domain for item in model.opset_import):
        return
    closing = Closing(constants=list(graph.initializer))
    for info, value in zip(_inputs(graph), inputs, strict=False):
        closing.take(info.name, info.type, _plain(value))
    closing.nodes += graph.node
    for info, value in zip(graph.output, outputs, strict=False):
        closing.give(info.name, _plain(value))
    yield operator_of(graph.node[-1]), name, closing


def _inputs(graph: onnx.GraphProto) -> list[onnx.ValueInfoProto]:
    constants = {item.name for item in graph.initializer}
    return [info for info in graph.input if info.name not in constants]


def _plain(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def _array(path: Path) -> Any:
    return numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes()))
