"""Makes tests/support importable, in worker processes too: spawned children inherit sys.path."""

from __future__ import annotations

import sys
from pathlib import Path

_SUPPORT = str(Path(__file__).with_name("support"))
if _SUPPORT not in sys.path:
    sys.path.insert(0, _SUPPORT)
