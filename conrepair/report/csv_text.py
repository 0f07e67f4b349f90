"""Cells of tables as they were: `original_text(cell)`."""

from __future__ import annotations

from conrepair.application.report.csv_text import original_text

__all__ = ["original_text"]
