"""The shapes that a TFLite model's tensors have for inputs of given shapes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conrepair.formats.tflite.load.framework import in_order, signature_names
from conrepair.formats.tflite.read.file import WITHOUT_NUMBERS, TfliteFile
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import DataError

SHAPING_OPERANDS: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(
        ("RESHAPE", "BROADCAST_TO", "TILE", "PAD", "PADV2", "MIRROR_PAD", "RESIZE_BILINEAR", "ONE_HOT", "TOPK_V2"),
        (1,),
    ),
    **dict.fromkeys(("RESIZE_NEAREST_NEIGHBOR", "TRANSPOSE", "EXPAND_DIMS", "SPARSE_TO_DENSE", "RFFT2D"), (1,)),
    **dict.fromkeys(("MEAN", "SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_ANY", "REDUCE_ALL"), (1,)),
    **dict.fromkeys(("ARG_MAX", "ARG_MIN", "MULTINOMIAL"), (1,)),
    **dict.fromkeys(("FILL", "SPLIT", "TRANSPOSE_CONV", "CONV_3D_TRANSPOSE", "RANDOM_UNIFORM"), (0,)),
    **dict.fromkeys(("SLICE", "SPLIT_V", "BATCH_TO_SPACE_ND", "SPACE_TO_BATCH_ND"), (1, 2)),
    **dict.fromkeys(("SCATTER_ND", "UNSORTED_SEGMENT_PROD", "UNSORTED_SEGMENT_MAX"), (2,)),
    **dict.fromkeys(("UNSORTED_SEGMENT_SUM", "UNSORTED_SEGMENT_MIN"), (2,)),
    "STRIDED_SLICE": (1, 2, 3),
    "RANGE": (0, 1, 2),
    "RANDOM_STANDARD_NORMAL": (0,),
}
"""Operands whose values decide about the shape of the result."""

OPAQUE = frozenset(
    {"WHERE", "UNIQUE", "NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5", "WHILE", "IF", "CALL", "SEGMENT_SUM"}
    | {"CALL_ONCE", "VAR_HANDLE", "READ_VARIABLE", "HASHTABLE_FIND", "STABLEHLO_WHILE", "STABLEHLO_COMPOSITE"}
)
"""Operators whose results' shapes depend on values, or on other subgraphs."""


@dataclass(frozen=True)
class Probe:
    """Shapes of tensors, by the interpreter.

    Attributes:
        shapes: Of each tensor, for this once; None for a tensor that wasn't computed.
        allocated: Which tensors had that shape before anything was computed.
        inputs: Tensors of the inputs, in the model's order, with the name that a `Runnable` has for them.
        outputs: The same of the outputs.
        ordered: Whether these have an order, and not the names of a signature alone.
    """

    shapes: tuple[tuple[int, ...] | None, ...]
    allocated: tuple[bool, ...]
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[str, int], ...]
    ordered: bool


def probe(file: TfliteFile, inputs: Sequence[TensorSpec] | None = None) -> Probe:
    """Resize, allocate, and only if that leaves shapes open, run on zeros.

    The interpreter stops planning at the first operator whose result's shape is computed, as a converter's
    Reshape to [batch, ...] is.

    Args:
        file: The model.
        inputs: With concrete sizes, named as a `Runnable` names them; None for those that the file says.

    Raises:
        DataError: if an input isn't among the specs or has no concrete shape.
        RuntimeError: what the interpreter raises; ValueError as well.
    """
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        model_path=file.path,
        num_threads=os.cpu_count(),
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    names = signature_names(interpreter)
    given = _named(interpreter.get_input_details(), names)
    results = _named(interpreter.get_output_details(), names)
    sizes = {spec.name: spec.shape for spec in inputs or ()}
    for name, index in given if inputs is not None else ():
        shape = sizes.get(name, ("?",))
        if not all(isinstance(size, int) for size in shape):
            raise DataError(f"the shape of the model's input {name} must be known to look into it. Declare it.")
        interpreter.resize_tensor_input(index, shape)
    interpreter.allocate_tensors()
    count = len(file.tensors)
    allocated = tuple(_is_allocated(interpreter, index, file.dtype(index)) for index in range(count))
    fed = [index for _, index in given]
    zeros = WITHOUT_NUMBERS.isdisjoint(file.dtype(index) for index in fed)
    computed = all(allocated) or (zeros and _runs(interpreter, fed))
    shapes: list[tuple[int, ...] | None] = [None] * count
    for detail in interpreter.get_tensor_details():
        index = detail["index"]
        if index < count and (computed or allocated[index]):
            shapes[index] = tuple(map(int, detail["shape"]))
    return Probe(tuple(shapes), allocated, given, results, ordered=not names)


def _named(details: list[dict[str, Any]], names: Mapping[int, str]) -> tuple[tuple[str, int], ...]:
    ordered = in_order(details, names)
    return tuple((names.get(detail["index"], detail["name"]), int(detail["index"])) for detail in ordered)


def _is_allocated(interpreter: Any, index: int, dtype: str) -> bool:
    # A view of a handle makes numpy take the memory for an object's address: the process may die of it.
    if dtype in WITHOUT_NUMBERS:
        return dtype != "string"
    try:
        interpreter.tensor(index)()
    # There's no other way to ask.
    except ValueError:
        return False
    return True


def _runs(interpreter: Any, inputs: Sequence[int]) -> bool:
    """Compute once, on zeros: they are in every range."""
    try:
        for index in inputs:
            interpreter.tensor(index)().fill(0)
        interpreter.invoke()
    # A model that fails on zeros has shapes that can't be known; it may still be run.
    except (RuntimeError, ValueError, TypeError):
        return False
    return True
