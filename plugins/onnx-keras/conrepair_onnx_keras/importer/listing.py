"""Write the list of operators that the importer knows: `python -m conrepair_onnx_keras.importer.listing [FILE]`."""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path

import onnx

from conrepair.ground.runtime.files.whole import write_text
from conrepair_onnx_keras.importer.node import ImportRule, rules
from conrepair_onnx_keras.importer.values import DTYPES

_INTRODUCTION = """# ONNX operators that the importer to Keras knows

Made by `python -m conrepair_onnx_keras.importer.listing docs/measured/onnx-operators.md`: by a command. A test
keeps it true with every commit.

The converter `onnx-keras` imports the operators below, of any opset since 7, and besides them every operator that
ONNX's standard defines by a function of others ({expanded}).
Element types: {dtypes}. Keras computes uint64 in uint32, so operators that would do so are refused.

"Constant" inputs must be known when the model is imported: initializers, what follows from them, or from shapes.
Sizes may be symbolic; where an operator needs a number, the message says so, and `--input` gives it. An attribute
that a rule doesn't look at must be at its default.
"""


def listing() -> str:
    """The list as Markdown."""
    known = {rule.operator for rule in rules().values() if not rule.domain}
    schemas = [schema for schema in onnx.defs.get_all_schemas() if schema.domain == "" and schema.name not in known]
    expanded = sorted({s.name for s in schemas if s.has_function or s.has_context_dependent_function})
    dtypes = ", ".join(sorted(DTYPES - {"uint64"}))
    parts = [_INTRODUCTION.format(expanded=", ".join(expanded), dtypes=dtypes)]
    public = (rule for rule in rules().values() if rule.domain != "conrepair")
    ordered = sorted(public, key=lambda rule: (rule.family, rule.domain, rule.operator))
    for family, members in groupby(ordered, key=lambda rule: rule.family):
        lines = ["| operator | constant inputs | refused |", "|---|---|---|", *map(_line, members)]
        parts.append(f"## {family.replace('_', ' ').capitalize()}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def _line(rule: ImportRule) -> str:
    name = f"{rule.domain}.{rule.operator}" if rule.domain else rule.operator
    return f"| {name} | {', '.join(rule.constant)} | {rule.refuses} |"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        write_text(Path(sys.argv[1]), listing())
    else:
        sys.stdout.write(listing())
