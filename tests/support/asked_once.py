"""What ONNX Runtime takes of an operator, asked once in a process: it says the same each time.

Of all operators it takes ten processor seconds.
"""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["remember"]

_KNOWN: dict[tuple[int, str], list[dict[str, str]]] = {}


def remember() -> None:
    """Let all who ask ONNX Runtime itself share its answers; the module isn't imported if nobody has done it yet."""
    support = sys.modules.get("conrepair_lab.generate.support")
    if support is not None and not hasattr(support.Probed, "asked_anew"):
        support.Probed.asked_anew = support.Probed._probed
        support.Probed._probed = _probed


def _probed(support: Any, op: str) -> list[dict[str, str]]:
    """What was said before, to who asks ONNX Runtime and has heard nothing else of other operators."""
    from conrepair_lab.generate.onnx_form import accepted

    opset = support._opset
    heard = all(_KNOWN.get((opset, name)) is types for name, types in support.found.items())
    if support._accepts is not accepted or not heard:
        anew: list[dict[str, str]] = support.asked_anew(op)
        return anew
    if (opset, op) not in _KNOWN:
        _KNOWN[opset, op] = support.asked_anew(op)
    return _KNOWN[opset, op]
