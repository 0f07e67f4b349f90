"""Operators learned from ONNX's own test cases, kept in a file beside this module.

`python -m conrepair_lab.generate.learned.cases` makes it anew.
"""

from __future__ import annotations

import gzip
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from conrepair.formats.onnx.load.proto_file import fed_to
from conrepair.formats.onnx.passes.fold_constants import RANDOM
from conrepair_lab.generate.learned.instances import Instance, instances_of, spread, text_of_instances
from conrepair_lab.generate.learned.trying import Closing, tried
from conrepair_lab.generate.pieces import Piece, operator_of

# What ONNX tests backends with: a case for each way in which an operator is used.


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
        inputs = [onnx.load_tensor(data / f"input_{place}.pb") for place in range(len(fed_to(model.graph)))]
        outputs = [onnx.load_tensor(data / f"output_{place}.pb") for place in range(len(model.graph.output))]
        yield from _closed(folder.name, model, inputs, outputs)


def _closed(name: str, model: onnx.ModelProto, inputs: Any, outputs: Any) -> Iterator[tuple[str, str, Closing]]:
    graph = model.graph
    if RANDOM & Piece("", graph).operators or any("training" in item.domain for item in model.opset_import):
        return
    closing = Closing(constants=list(graph.initializer))
    for info, value in zip(fed_to(graph), inputs, strict=False):
        closing.take(info.name, info.type, _plain(value))
    closing.nodes += graph.node
    for info, value in zip(graph.output, outputs, strict=False):
        closing.give(info.name, _plain(value))
    yield operator_of(graph.node[-1]), name, closing


def _plain(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


# Operators that draw numbers, where there's only one number to draw: they always give the same.

_SHAPE = (2, 3, 4)
_NOTHING = 1e-30
"""What adding to a mean is lost in rounding; a deviation of 0 ends ONNX Runtime's process."""


def still_cases() -> Iterator[tuple[str, str, Closing]]:
    """Each of them.

    Yields:
        The operator, a name, and the case.
    """
    some = np.linspace(-1, 1, 24, dtype=np.float32).reshape(_SHAPE)
    yield _case("RandomNormal", mean=0.5, scale=_NOTHING, shape=_SHAPE)
    yield _case("RandomUniform", low=1.5, high=1.5, shape=_SHAPE)
    yield _case("RandomNormalLike", x=some, mean=-1.0, scale=_NOTHING)
    yield _case("RandomUniformLike", x=some, low=0.25, high=0.25, dtype=TensorProto.DOUBLE)
    yield _case("Multinomial", x=some[:, :1, 0], sample_size=5)  # one class
    for dtype in (TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL):
        yield _bernoulli(some > 0, dtype)


def _case(op: str, x: np.ndarray[Any, Any] | None = None, **attributes: Any) -> tuple[str, str, Closing]:
    closing = Closing(feeds={} if x is None else {"x": x}, outputs=["y"])
    closing.nodes.append(helper.make_node(op, list(closing.feeds), ["y"], **attributes))
    return op, f"{op} of one number", closing


def _bernoulli(sure: np.ndarray[Any, Any], dtype: int) -> tuple[str, str, Closing]:
    """Likelihoods of 0 and 1 alone."""
    closing = Closing(feeds={"x": sure}, outputs=["y"])
    closing.nodes.append(helper.make_node("Cast", ["x"], ["likelihood"], to=TensorProto.FLOAT))
    closing.nodes.append(helper.make_node("Bernoulli", ["likelihood"], ["y"], dtype=dtype))
    return "Bernoulli", "Bernoulli of sure things", closing


_KEPT = Path(__file__).parent / "onnx_cases.json.gz"


def case_instances() -> tuple[Instance, ...]:
    """Those that are kept."""
    return instances_of(gzip.decompress(_KEPT.read_bytes()).decode())


def harvested_cases() -> tuple[Instance, ...]:
    """Look at all cases of the ONNX that is installed, with the ONNX Runtime that is installed."""
    found: list[Instance] = []
    for op, name, case in (*still_cases(), *cases()):
        item = tried(op, case, name)
        if item is not None:
            found.append(item)
    return spread(found)


if __name__ == "__main__":
    _KEPT.write_bytes(gzip.compress(text_of_instances(harvested_cases()).encode(), mtime=0))
