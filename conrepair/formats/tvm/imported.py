"""A model as Relax, and what to say where TVM can't read it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any

from conrepair.formats.tvm.calls import ModelOperator
from conrepair.ground.data.sample_axes import UNNAMED, batch_symbols, has_batch, sample_axes
from conrepair.ground.data.symbolic_sizes import declaration
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import ConversionError


@dataclass(frozen=True)
class Imported:
    """A Relax module and its signature.

    Attributes:
        module: `tvm.IRModule` whose function `main` takes the inputs in order.
        importer: Which of TVM's importers made it.
        inputs: With definite shapes.
        outputs: In order; sizes may be symbolic as the model's framework has them.
        names: The model's tensors that the module's variables stand for, by the variables' names.
        operators: The model's, in order.
        save: Writes the model, as the importer took it, into a folder, and returns the file's name.
    """

    module: Any
    importer: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    operators: tuple[ModelOperator, ...] = ()
    save: Callable[[Path], str] | None = None


def definite(inputs: Sequence[TensorSpec], batch: int) -> tuple[TensorSpec, ...]:
    """Inputs with the batch in place of its symbol.

    Args:
        inputs: As the framework has them, with declared sizes filled in.
        batch: Where all inputs have it; those that share none get 1.

    Raises:
        ConversionError: if another size is open, which code is generated for.
    """
    size = batch if has_batch(inputs) else 1
    symbols, axes = batch_symbols(inputs) - {UNNAMED}, sample_axes(inputs)
    result = []
    for spec, axis in zip(inputs, axes, strict=True):
        shape = tuple(
            size if isinstance(item, str) and (place == axis or item in symbols) else item
            for place, item in enumerate(spec.shape)
        )
        if any(isinstance(item, str) for item in shape):
            raise ConversionError(
                f"input {spec} leaves sizes open, and TVM generates code for definite ones. Declare them: "
                f'"inputs": [{{"name": ..., "shape": [...]}}] (command line, for instance: {declaration(spec)}).'
            )
        result.append(replace(spec, shape=shape))
    return tuple(result)


def import_error(what: str, path: str, error: BaseException) -> ConversionError:
    """Say which operator an importer stopped at, and why.

    Args:
        what: Of the importer ("ONNX").
        path: Of the model.
        error: The importer's.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    reason = " ".join(lines)[:400].rstrip(".") or "no reason given"
    operator = _operator(error)
    place = f" at operator {operator}" if operator else ""
    advice = (
        "Recurrent layers run in loops unless they're unrolled: build the network with its steps written out (Keras: "
        "`unroll=True`, for a known number of steps), and convert it again."
        if _LOOPS.search(operator or "")
        else "Rewrite that part of the model, or pin another importer (`importer`), for which the model is converted."
    )
    return ConversionError(
        f"TVM's {what} importer can't take {path}: it stops{place}: {type(error).__name__}: {reason}. {advice}"
    )


# How each importer calls what it's converting, by the function that has it.
_PLACES: dict[str, Callable[[dict[str, Any]], str]] = {
    "_construct_nodes": lambda found: f"{found['op_name']} (node '{found['node'].name or found['node'].output[0]}')",
    "_translate_fx_graph": lambda found: f"{found['node'].target} (node '{found['node'].name}')",
    "convert_op_to_relax": lambda found: f"{found['op_code_str']} (number {found['op_idx']})",
}
_LOOPS = re.compile(r"\b(WHILE|Loop|Scan|LSTM|GRU|RNN|\w+_SEQUENCE_(LSTM|RNN)|aten\.(lstm|gru)\S*)\b")
_LISTED = re.compile(
    r"not supported (?:for|in) frontend \w+(?: yet)?: (?P<missing>.*?)(?:\. Quantized .*)?$"
    r"|dynamic range quantization: (?P<dynamic>.*?)(?:\. If .*)?$"
    r"|Unsupported function types \[(?P<functions>.*)\]",
    re.MULTILINE,
)


def _operator(error: BaseException) -> str | None:
    """The operator that an importer was at, and those that it's in: messages seldom say, but the frames know."""
    listed = _LISTED.search(str(error))
    if listed is not None:
        return str(listed[listed.lastgroup or 0]).replace("'", "").strip()
    found = []
    for frame in _frames(error):
        describe = _PLACES.get(frame.f_code.co_name)
        if describe is not None:
            with suppress(KeyError):  # it stopped before the first operator
                found.append(describe(frame.f_locals))
    return " inside of ".join(reversed(found)) or None


def _frames(error: BaseException) -> Iterator[FrameType]:
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next
