"""Write the page of converters: `python -m conrepair.formats.converters.listing [FILE]`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from conrepair.formats.converters.all_converters import CONVERTERS
from conrepair.formats.converters.base import Converter
from conrepair.ground.runtime.files.whole import write_text

_INTRODUCTION = """# All converters

Made by `python -m conrepair.formats.converters.listing docs/measured/converters.md`: by a command, not by hand. A
test keeps it true with every commit.

Routes are found through those marked "yes"; the others are used where they're named: `"via": ["onnx-onnxslim"]` in a
configuration, `--via` on the command line. Options are given by converter: `"options": {"keras-tflite": {"quantize":
"int8"}}`, or `--option keras-tflite.quantize=int8`. Those in an environment of their own are described in
[install.md](../install.md#converters-in-environments-of-their-own), all others in [converters.md](../converters.md).
"""


def listing() -> str:
    """The list as Markdown."""
    parts = [_INTRODUCTION]
    for (source, target), members in by_formats():
        lines = ["| converter | automatic | tools | options |", "|---|---|---|---|", *map(_line, members)]
        parts.append(f"## {source} to {target}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def by_formats() -> Iterator[tuple[tuple[str, str], Iterator[Converter]]]:
    """All converters by the formats that they convert from and to, the best first."""
    ordered = sorted(CONVERTERS.values(), key=lambda item: (item.source, item.target, item.preference, item.name))
    return groupby(ordered, key=lambda item: (item.source, item.target))


def _line(item: Converter) -> str:
    options = "; ".join(f"`{name}` ({option.default!r}): {option.meaning}" for name, option in item.options.items())
    own = f" (environment `{item.environment}`)" if item.environment else ""
    return f"| {item.name} | {'yes' if item.automatic else 'no'} | {', '.join(item.distributions)}{own} | {options} |"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        write_text(Path(sys.argv[1]), listing())
    else:
        sys.stdout.write(listing())
