"""Inputs that the older form declares, for models that don't say them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from conrepair.application.config.model import InputConfig
from conrepair.application.config.older import KeyOutcome
from conrepair_legacy.account import Context

_TYPES: tuple[str, ...] = get_args(InputConfig.model_fields["dtype"].annotation)


def declared_input(shape: Sequence[Any], dtype: str | None) -> dict[str, Any]:
    """An input in our form; a size that isn't a positive number is open.

    Args:
        shape: With the batch.
        dtype: None, or one that we don't know, is float32.
    """
    sizes = [_size(axis, size) for axis, size in enumerate(shape)]
    return {"shape": sizes} | ({"dtype": dtype} if dtype in _TYPES else {})


def account_for_input(context: Context, path: str, keys: Sequence[str], dtype: str | None, *, declares: bool) -> None:
    """Say what becomes of shapes and types of inputs.

    Args:
        context: Of the translation.
        path: Of the object.
        keys: That it has, of `input` and `dtype`.
        dtype: As given.
        declares: Whether the model doesn't say them itself.
    """
    for key in keys:
        place = f"{path}.{key}"
        if not declares:
            context.account.ignored(place, "the model itself says its inputs")
        elif key == "dtype" and dtype not in _TYPES:
            context.account.refused(
                place, f"there is no type '{dtype}', float32 is taken; known: {', '.join(_TYPES)}"
            )
        else:
            context.account.note(place, KeyOutcome.TRANSLATED, "declares the input (inputs)")


def _size(axis: int, size: Any) -> int | str:
    if isinstance(size, str) and size.strip():
        return size
    if isinstance(size, int) and size > 0:
        return size
    return f"size{axis}" if axis else "batch"
