"""Turn results into JSON values: dataclasses, enums, paths, and numbers that JSON doesn't have."""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["encode"]


def encode(value: Any) -> Any:
    r"""Make `value` JSON-able; infinities become "inf" and "-inf", NaN becomes "nan", half a surrogate `\udc80`."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: encode(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return {_text(str(key)): encode(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [encode(item) for item in value]
    if isinstance(value, str | Path):
        return _text(str(value))
    if isinstance(value, np.generic):
        return encode(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _text(text: str) -> str:
    """What UTF-8 lacks as escapes: names come from files."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()
