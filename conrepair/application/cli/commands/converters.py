"""What the verb `converters` does."""

from __future__ import annotations

import argparse

from conrepair.application.cli.next_step import tell_next
from conrepair.formats.converters.listing import by_formats
from conrepair.ground.runtime.shown.progress import say


def converters(_: argparse.Namespace) -> int:
    """Print the list of converters; the exit code."""
    for (source, target), members in by_formats():
        say(f"{source} to {target}")
        for item in members:
            own = f", in the environment {item.environment}" if item.environment else ""
            named = "" if item.automatic else " (used only where --via names it)"
            say(f"  {item.name}{named}: {', '.join(item.distributions)}{own}")
            for name, option in item.options.items():
                say(f"      {name} (default: {option.default!r}): {option.meaning}")
    example = "`conrepair convert MODEL --to tflite --via keras-tflite --option keras-tflite.quantize=int8 -o OUTPUT`"
    tell_next(f"{example} names a converter (default: the best) and sets an option")
    return 0
