"""Results that were saved: `read_result(path)`."""

from __future__ import annotations

from conrepair.application.report.saved import read_result

__all__ = ["read_result"]
