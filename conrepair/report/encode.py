"""Turn results into JSON values: dataclasses, enums, paths, and numbers that JSON doesn't have."""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np


def encode(value: Any, text: Callable[[str], str] | None = None) -> Any:
    r"""Make `value` JSON-able; infinities become "inf" and "-inf", NaN becomes "nan", half a surrogate `\udc80`.

    Args:
        value: Any.
        text: What is written of a text; default: half a surrogate as that escape, for documents.
    """
    text = text or _text
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: encode(getattr(value, field.name), text) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return {text(str(key)): encode(item, text) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [encode(item, text) for item in value]
    if isinstance(value, str | Path):
        return text(str(value))
    if isinstance(value, np.generic):
        return encode(value.item(), text)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _text(text: str) -> str:
    """What UTF-8 lacks as escapes: names come from files."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()
