"""What the verb `converters` does."""

from __future__ import annotations

import argparse

from conrepair.formats.converters.listing import listing
from conrepair.ground.runtime.shown.progress import say


def converters(_: argparse.Namespace) -> int:
    """Print the list of converters; the exit code."""
    say(listing())
    return 0
