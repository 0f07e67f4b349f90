"""TFLite: whether all that a file refers to lies in it, before LiteRT, which doesn't look, is given it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from conrepair.ground.runtime.bounds import check_expansion

__all__ = [
    *("called_subgraphs", "check_tables", "dtype_of", "has_numbers", "is_pointer", "kind_of"),
    *("names_of", "tables_of"),
]

_INDEX, _BRANCHES = "SubgraphIndex", "branchSubgraphIndices"
_WORDS = {"cond": "the condition", "then": "the first branch", "else": "the second branch"}
# Operators of which some operands behind the second may be left out (-1); of those in the second row, the second one.
_BARE = re.compile(r"FULLY_CONNECTED|SVDF|\w*CONV\w*|CUSTOM|STABLEHLO\w*|\w*(LSTM|RNN)\w*")
_BARER = re.compile(r"CUSTOM|STABLEHLO\w*|\w*LSTM\w*")
# Operators that go from float32 to small integers or back; kernels of all others end the process where types differ.
_CONVERTS = re.compile(r"QUANTIZE|DEQUANTIZE|CAST|BITCAST|EMBEDDING\w*|CALL\w*|IF|WHILE|CUSTOM|STABLEHLO\w*")
_SMALL = {"int8", "uint8", "int16", "uint16"}
# Of one tensor, 1 GiB in float32: a 4K image in 32 channels. A damaged size fills memory or takes hours.
_MOST_ELEMENTS = 1 << 28


def tables_of(content: Any) -> Any:
    """A flatbuffer's tables as objects; arrays in them are views of it.

    Args:
        content: All of a file; whatever its bytes make of it is raised where it's damaged.
    """
    from ai_edge_litert import schema_py_generated as schema

    return schema.ModelT.InitFromPackedBuf(content, 0)


def check_tables(path: str) -> Any:
    """Read a flatbuffer to its end by a reader that minds where the file ends.

    LiteRT follows offsets and numbers of tensors wherever they lead, and ends the process where that's nowhere.

    Args:
        path: Of the file.

    Returns:
        Its tables; see `tables_of`.

    Raises:
        ValueError: if it's damaged, in words.
        ModelLoadError: if its subgraphs call themselves, or one another too often.
    """
    whole = Path(path).read_bytes()
    try:
        model = tables_of(whole)
        problem = next(_problems(model, len(whole)), None)
    # Reading a damaged flatbuffer raises whatever its bytes make of it.
    except Exception as error:
        raise ValueError(f"its tables lead out of the file ({type(error).__name__})") from error
    if problem is not None:
        raise ValueError(problem)
    graphs = {f"subgraph {place}": graph.operators or [] for place, graph in enumerate(model.subgraphs)}
    inner = {name: [index for item in items for index in called_subgraphs(item)] for name, items in graphs.items()}
    called = {name: {f"subgraph {index}": 1 for index in indices} for name, indices in inner.items()}
    check_expansion(path, {name: len(operators) for name, operators in graphs.items()}, called)
    return model


@cache
def names_of(enumeration: str) -> Mapping[int, str]:
    """What the schema calls the numbers of one of its enumerations."""
    from ai_edge_litert import schema_py_generated as schema

    return {number: name for name, number in vars(getattr(schema, enumeration)).items() if name.isupper()}


def dtype_of(code: int) -> str:
    """Name of a tensor's type."""
    return names_of("TensorType")[code].lower()


def kind_of(model: Any, operator: Any) -> str:
    """What an operator is, as the schema calls it; "" for one that came later.

    Args:
        model: The file's tables.
        operator: Of any of its subgraphs.
    """
    code = model.operatorCodes[operator.opcodeIndex]
    # Files from before the list of operators outgrew a byte have the number in the older field only.
    return names_of("BuiltinOperator").get(max(code.builtinCode, code.deprecatedBuiltinCode), "")


def has_numbers(model: Any, tensor: Any) -> bool:
    """Whether a tensor's numbers stand in the file, maybe behind the flatbuffer.

    Args:
        model: The file's tables.
        tensor: Of any of its subgraphs.
    """
    buffer = model.buffers[tensor.buffer]
    return buffer.offset > 1 or (buffer.data is not None and len(buffer.data) > 0)


def is_pointer(option: str) -> bool:
    """Whether an option says which subgraphs are called, and nothing of what they compute."""
    return option.endswith(_INDEX) or option in {"subgraph", _BRANCHES}


def called_subgraphs(operator: Any) -> dict[int, str]:
    """The subgraphs that an operator calls, by index, with what each is for it."""
    found: dict[int, str] = {}
    for options in (operator.builtinOptions, operator.builtinOptions2):
        for name, value in {} if options is None else vars(options).items():
            what = name.removesuffix(_INDEX)
            if name == _BRANCHES:
                found |= {
                    index: f"branch {place}" for place, index in enumerate(_listed(value)) if index not in found
                }
            elif is_pointer(name):
                found.setdefault(int(value), _WORDS.get(what, f"the {what}"))
    return {index: what for index, what in found.items() if index >= 0}


def _problems(model: Any, size: int) -> Iterator[str]:
    """Numbers that name nothing, and what LiteRT's kernels take for granted; what is read beyond a list raises."""
    for place, buffer in enumerate(model.buffers):
        if buffer.offset > 1 and buffer.offset + buffer.size > size:
            yield f"the file ends before its buffer {place}"
    for place, graph in enumerate(model.subgraphs):
        where, tensors = f"subgraph {place}", graph.tensors or []
        held = [model.buffers[tensor.buffer] for tensor in tensors]
        written = {number for number, buffer in enumerate(held) if buffer.data is not None or buffer.offset > 1}
        for number, tensor in enumerate(tensors):
            yield from (f"tensor {number} of {where} {wrong}" for wrong in _wrong(tensor, number in written))
        written.update(_listed(graph.inputs))
        yield from _beyond(f"{where} takes or gives", [*_listed(graph.inputs), *_listed(graph.outputs)], tensors)
        for number, operator in enumerate(graph.operators or []):
            kind, inputs, outputs = kind_of(model, operator), _listed(operator.inputs), _listed(operator.outputs)
            # LiteRT reads the third operand of depthwise convolutions without asking whether there is one.
            who, least = f"operator {number} of {where} ({kind})", 3 if kind == "DEPTHWISE_CONV_2D" else 0
            needed = 1 if _BARER.fullmatch(kind) else 2 if _BARE.fullmatch(kind) else len(inputs)
            given = [index for index in [*inputs[needed:], *_listed(operator.intermediates)] if index != -1]
            yield from _beyond(f"{who} has", [*inputs[:needed], *outputs, *given], tensors)
            if again := written.intersection(outputs):
                yield f"{who} writes tensor {min(again)}, an input, a constant or another operator's output"
            written.update(outputs)
            sides = {dtype_of(tensors[index].type) for index in [*inputs[:1], *outputs[:1]]}
            if "float32" in sides and sides & _SMALL and not _CONVERTS.fullmatch(kind):
                yield f"{who} converts no types, but goes from one of {sorted(sides)} to the other"
            if max(called_subgraphs(operator), default=0) >= len(model.subgraphs) or len(inputs) < least:
                yield f"{who} calls a subgraph, or reads an operand, that isn't there"


def _wrong(tensor: Any, constant: bool) -> Iterator[str]:
    """What is off about a tensor by itself; constants may have a scale of 0, for channels that are all 0."""
    if (elements := math.prod(_listed(tensor.shape))) > _MOST_ELEMENTS:
        yield f"would have {elements:,} elements, and {_MOST_ELEMENTS:,} is the most that's run"
    scales, points = (_array(getattr(tensor.quantization, name, None)) for name in ("scale", "zeroPoint"))
    dtype = dtype_of(tensor.type)
    span = np.iinfo(dtype if dtype in {*_SMALL, "int32"} else "int64")
    if not np.isfinite(scales).all() or (not constant and points.size and scales.min(initial=1) <= 0):
        yield "has a scale that's no number above 0"
    if points.size and not span.min <= points.min() <= points.max() <= span.max:
        yield "has a zero point beyond its type"


def _listed(values: Any) -> list[int]:
    return [int(value) for value in _array(values)]


def _array(values: Any) -> Any:
    return np.asarray([] if values is None else values)


def _beyond(who: str, numbers: Iterable[int], tensors: list[Any]) -> Iterator[str]:
    yield from (f"{who} tensor {number}, which isn't there" for number in numbers if not 0 <= number < len(tensors))
