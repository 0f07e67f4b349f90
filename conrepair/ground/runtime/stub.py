"""Names that a module imports when they're asked for: its stub (.pyi) lists them, for Python and type checkers."""

from __future__ import annotations

import ast
from pathlib import Path


def places_in(file: str) -> dict[str, str]:
    """The module that each name comes from.

    Args:
        file: Of the module; its stub lies beside it.
    """
    tree = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [item for item in tree.body if isinstance(item, ast.ImportFrom) and item.module is not None]
    return {name.name: str(item.module) for item in imports for name in item.names}
