"""TFLite's names and options of operators in the neutral vocabulary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ai_edge_litert import schema_py_generated as schema

from conrepair.editors.editor import NotEditableError
from conrepair.networks.tflite_operators import NAMES, POOLS, REDUCTIONS

_OPTIONS = {  # of those whose options aren't called as they are
    **dict.fromkeys(("MAXIMUM", "MINIMUM"), "MaximumMinimum"),
    **dict.fromkeys(POOLS, "Pool2D"),
    **dict.fromkeys(REDUCTIONS, "Reducer"),
    "BATCH_MATMUL": "BatchMatMul",
    "PADV2": "PadV2",
}
_SLOPE = 0.01


def options_for(operator: str, attributes: Mapping[str, Any]) -> tuple[str, Any]:
    """A TFLite operator's name, and its options.

    Raises:
        NotEditableError: if there is none.
    """
    kind = NAMES.get(operator)
    if kind is None:
        raise NotEditableError(f"TFLite has no {operator}")
    options = new_options(kind)
    if kind == "SOFTMAX":
        options.beta = 1.0
    elif kind == "LEAKY_RELU":
        options.alpha = float(attributes.get("alpha", _SLOPE))
    elif kind == "GELU":
        options.approximate = attributes.get("approximate") == "tanh"
    elif kind == "ELU" and attributes.get("alpha", 1.0) != 1.0:
        raise NotEditableError("TFLite's ELU has no alpha")
    return kind, options


def new_options(kind: str, **values: Any) -> Any:
    """Options of a TFLite operator, some of other values than usual; None where it has none."""
    make = getattr(schema, f"{_OPTIONS.get(kind, kind.title().replace('_', ''))}OptionsT", None)
    options = None if make is None else make()
    for name, value in values.items():
        setattr(options, name, value)
    return options


def set_options(operator: Any, options: Any) -> None:
    """Give an operator options, or None, and the number of their type beside them."""
    name = "NONE" if options is None else type(options).__name__.removesuffix("T")
    operator.builtinOptions, operator.builtinOptionsType = options, getattr(schema.BuiltinOptions, name)
