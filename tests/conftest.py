"""Makes tests/support importable, in worker processes too; fixes the seed of hypothesis."""

from __future__ import annotations

import sys
from pathlib import Path

import hypothesis

_SUPPORT = str(Path(__file__).with_name("support"))
if _SUPPORT not in sys.path:
    sys.path.insert(0, _SUPPORT)

hypothesis.settings.register_profile("fixed", derandomize=True, deadline=None)
hypothesis.settings.load_profile("fixed")
