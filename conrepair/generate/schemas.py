"""What ONNX's schemas say of operators."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

import onnx

from conrepair.generate.tensors import BOOL, NUMERIC, in_schema
from conrepair.runtime.errors import ConrepairError

__all__ = ["VARIADIC", "SpecificationError", "dtypes_of", "schema_of"]

VARIADIC = onnx.defs.OpSchema.FormalParameterOption.Variadic


class SpecificationError(ConrepairError):
    """A specification of an operator that ONNX doesn't know; the text says which file has it."""


@cache
def schema_of(op: str, opset: int) -> Any:
    """An operator's schema; its domain is before its name where it isn't the standard's.

    Raises:
        SpecificationError: if ONNX has none.
    """
    domain, _, name = op.rpartition("::")
    try:
        return onnx.defs.get_schema(name, opset, domain)
    except onnx.defs.SchemaError as error:
        from conrepair.generate.specifications.specification import specifications  # they import this

        found = specifications().get(op)
        place = "" if found is None else f"{inspect.getfile(found.body)}: "
        raise SpecificationError(
            f"{place}ONNX {onnx.__version__} has no schema of {op} in opset {opset}. Register one before its "
            "specification (onnx.defs.register_schema), or take the specification out."
        ) from error


@cache
def dtypes_of(op: str, opset: int, variable: str) -> tuple[str, ...]:
    """Element types that a schema allows for a type variable."""
    schema = schema_of(op, opset)
    texts = next((c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == variable), [variable])
    found = (in_schema(text) for text in texts)
    return tuple(dtype for dtype in found if dtype is not None and dtype in NUMERIC + BOOL)
