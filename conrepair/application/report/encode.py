"""Turn results into JSON for documents: without numbers and texts that these can't have."""

from __future__ import annotations

import math
from typing import Any

from conrepair.ground.runtime.typed import plain


def encode(value: Any) -> Any:
    r"""Make `value` JSON-able; infinities become "inf" and "-inf", NaN becomes "nan", half a surrogate `\udc80`.

    Args:
        value: As of `plain`.
    """
    return _written(plain(value))


def _written(value: Any) -> Any:
    if isinstance(value, dict):
        return {_text(key): _written(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_written(item) for item in value]
    if isinstance(value, str):
        return _text(value)
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _text(text: str) -> str:
    """What UTF-8 lacks as escapes: names come from files."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()
