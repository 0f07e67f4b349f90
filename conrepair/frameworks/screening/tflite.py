"""TFLite: whether all that a file refers to lies in it, before LiteRT, which doesn't look, is given it."""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from conrepair.runtime.bounds import check_expansion

__all__ = ["called_subgraphs", "check_tables", "is_pointer"]

_INDEX = "SubgraphIndex"
_BRANCHES = "branchSubgraphIndices"
_CALLED = {"subgraph": "the subgraph"}
_WORDS = {"cond": "the condition", "then": "the first branch", "else": "the second branch"}
# Operators of which some operands behind the second may be left out (-1); of those in the second row, the second one.
_BARE = re.compile(r"FULLY_CONNECTED|SVDF|\w*CONV\w*|CUSTOM|STABLEHLO\w*|\w*(LSTM|RNN)\w*")
_BARER = re.compile(r"CUSTOM|STABLEHLO\w*|\w*LSTM\w*")


def check_tables(path: str) -> None:
    """Read a flatbuffer to its end by a reader that minds where the file ends.

    LiteRT follows offsets and numbers of tensors wherever they lead, and ends the process where that's nowhere.

    Args:
        path: Of the file.

    Raises:
        ValueError: if it's damaged, in words.
        ModelLoadError: if its subgraphs call themselves, or one another too often.
    """
    from ai_edge_litert import schema_py_generated as schema

    with Path(path).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        whole = content[:]
    try:
        model = schema.ModelT.InitFromPackedBuf(whole, 0)
        kinds = {value: name for name, value in vars(schema.BuiltinOperator).items() if name.isupper()}
        types = {value: name.lower() for name, value in vars(schema.TensorType).items() if name.isupper()}
        problem = next(_problems(model, len(whole), kinds, types), None)
    # Reading a damaged flatbuffer raises whatever its bytes make of it.
    except Exception as error:
        raise ValueError(f"its tables lead out of the file ({type(error).__name__})") from error
    if problem is not None:
        raise ValueError(problem)
    graphs = {f"subgraph {place}": graph.operators or [] for place, graph in enumerate(model.subgraphs)}
    called = {
        name: {f"subgraph {inner}": 1 for operator in operators for inner in called_subgraphs(operator)}
        for name, operators in graphs.items()
    }
    check_expansion(path, {name: len(operators) for name, operators in graphs.items()}, called)


def is_pointer(option: str) -> bool:
    """Whether an option says which subgraphs are called, and nothing of what they compute."""
    return option.endswith(_INDEX) or option in {*_CALLED, _BRANCHES}


def called_subgraphs(operator: Any) -> dict[int, str]:
    """The subgraphs that an operator calls, by index, with what each is for it."""
    found: dict[int, str] = {}
    for options in (operator.builtinOptions, operator.builtinOptions2):
        for name, value in {} if options is None else vars(options).items():
            if name.endswith(_INDEX):
                what = name.removesuffix(_INDEX)
                found.setdefault(int(value), _WORDS.get(what, f"the {what}"))
            elif name in _CALLED:
                found.setdefault(int(value), _CALLED[name])
            elif name == _BRANCHES:
                for place, index in enumerate([] if value is None else value):
                    found.setdefault(int(index), f"branch {place}")
    return {index: what for index, what in found.items() if index >= 0}


def _problems(model: Any, size: int, kinds: Mapping[int, str], types: Mapping[int, str]) -> Iterator[str]:
    """Numbers that name nothing, or that LiteRT's tables of quantized values have no place for."""
    if not model.subgraphs or not model.buffers:
        yield "it has no subgraphs, or no buffers"
    for place, buffer in enumerate(model.buffers):
        if buffer.offset > 1 and buffer.offset + buffer.size > size:
            yield f"the file ends before its buffer {place}"
    codes = [kinds.get(max(code.builtinCode, code.deprecatedBuiltinCode), "") for code in model.operatorCodes or []]
    for place, graph in enumerate(model.subgraphs):
        where = f"subgraph {place}"
        tensors = graph.tensors or []
        for number, tensor in enumerate(tensors):
            if not 0 <= tensor.buffer < len(model.buffers):
                yield f"tensor {number} of {where} has its numbers in buffer {tensor.buffer}, which isn't there"
            if not _fits(tensor.quantization, types.get(tensor.type, "")):
                yield f"tensor {number} of {where} has a scale that's no number, or a zero point beyond its type"
        yield from _beyond(f"{where} takes or gives", [*_listed(graph.inputs), *_listed(graph.outputs)], tensors)
        for number, operator in enumerate(graph.operators or []):
            who = f"operator {number} of {where}"
            if not 0 <= operator.opcodeIndex < len(codes):
                yield f"{who} is of a kind that isn't there"
            kind, inputs = codes[operator.opcodeIndex], _listed(operator.inputs)
            needed = 1 if _BARER.fullmatch(kind) else 2 if _BARE.fullmatch(kind) else len(inputs)
            given = [index for index in [*inputs[needed:], *_listed(operator.intermediates)] if index != -1]
            yield from _beyond(f"{who} has", [*inputs[:needed], *_listed(operator.outputs), *given], tensors)
            for inner in called_subgraphs(operator):
                if inner >= len(model.subgraphs):
                    yield f"{who} calls subgraph {inner}, which isn't there"


def _fits(grid: Any, kind: str) -> bool:
    """Whether scales are numbers, and zero points of the type that they're subtracted from."""
    if grid is None:
        return True
    scales, points = (np.asarray([] if item is None else item) for item in (grid.scale, grid.zeroPoint))
    if kind not in {"int8", "uint8", "int16", "uint16", "int32"} or not points.size:
        return bool(np.isfinite(scales).all())
    span = np.iinfo(kind)
    return bool(np.isfinite(scales).all() and points.min() >= span.min and points.max() <= span.max)


def _listed(values: Any) -> list[int]:
    return [] if values is None else [int(value) for value in values]


def _beyond(who: str, numbers: Iterable[int], tensors: list[Any]) -> Iterator[str]:
    yield from (f"{who} tensor {number}, which isn't there" for number in numbers if not 0 <= number < len(tensors))
