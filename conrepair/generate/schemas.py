"""What ONNX's schemas say of operators."""

from __future__ import annotations

from functools import cache
from typing import Any

import onnx

from conrepair.generate.tensors import in_schema

__all__ = ["VARIADIC", "dtypes_of", "schema_of"]

VARIADIC = onnx.defs.OpSchema.FormalParameterOption.Variadic


@cache
def schema_of(op: str, opset: int) -> Any:
    """An operator's schema; its domain is before its name where it isn't the standard's."""
    domain, _, name = op.rpartition("::")
    return onnx.defs.get_schema(name, opset, domain)


@cache
def dtypes_of(op: str, opset: int, variable: str) -> tuple[str, ...]:
    """Element types that a schema allows for a type variable."""
    schema = schema_of(op, opset)
    texts = next((c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == variable), [variable])
    found = (in_schema(text) for text in texts)
    return tuple(dtype for dtype in found if dtype is not None and dtype in _DTYPES)


_DTYPES = frozenset(
    {
        "float32",
        "float16",
        "float64",
        "bool",
        "int64",
        "int32",
        "int16",
        "int8",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
    }
)
