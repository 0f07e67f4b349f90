"""The line by which pages of docs/measured begin."""

from __future__ import annotations

import datetime as dt
import subprocess
from pathlib import Path

__all__ = ["made_by"]


def made_by(command: str) -> str:
    """What made a page, of which commit, and when.

    Args:
        command: As it's typed.
    """
    asked = ["git", "rev-parse", "--short", "HEAD"]
    answer = subprocess.run(asked, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    commit = answer.stdout.strip() or "unknown"
    return f"Made by `{command}`, commit {commit}, {dt.date.today()}: by a command, not by hand."
