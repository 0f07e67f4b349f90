"""Jobs that start a GPU."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

Payload = dict[str, Any]


def start(folder: Path, **payload: Any) -> Payload:
    """What a driver's library says when it's started."""
    return {"code": int(ctypes.CDLL(payload["library"]).cuInit(0))}
