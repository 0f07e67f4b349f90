"""Whether a factory is there, by reading the files of its module: nothing of anybody's is run to find out."""

from __future__ import annotations

import ast
import sys
import tokenize
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from conrepair.ground.runtime.libraries import absent
from conrepair.ground.runtime.user_modules import library_path

_MOST_MODULES = 200  # that a name is looked for in, through `from .module import *`
_MOST_BYTES = 1 << 22


def factory_problem(target: str, folders: Sequence[Path]) -> str:
    """Why a factory can't be had; "" where it can, or where only running its module would tell.

    Args:
        target: "package.module:function".
        folders: Where modules of the user's may lie, behind everything that's installed.
    """
    module, _, function = target.partition(":")
    if module in sys.builtin_module_names:
        return ""
    path = [*library_path(), *map(str, folders)]
    if words := absent(module.partition(".")[0]):
        return words
    found, missing = _module(module, path)
    if missing:
        return f"there's no module {missing}. Install it, or put it into the working directory or the configuration's"
    name = function.partition(".")[0]
    if found is None or _binds(found, name, path, set()):
        return ""
    return f"module {module} has no '{name}'"


def _module(name: str, path: Sequence[str]) -> tuple[ModuleSpec | None, str]:
    """A module, or the name of what isn't there; neither, where a package makes its modules when it's run."""
    spec: ModuleSpec | None = None
    whole, where = "", list(path)
    for part in name.split("."):
        before, whole = spec, f"{whole}.{part}".lstrip(".")
        spec = PathFinder.find_spec(whole, where)
        if spec is None:
            made = before is not None and any(word in _text(before) for word in ("sys.modules", "__getattr__"))
            return None, "" if made else whole
        where = list(spec.submodule_search_locations or [])
    return spec, ""


def _binds(spec: ModuleSpec, name: str, path: Sequence[str], seen: set[str]) -> bool:
    """Whether a module has a name, or may have it."""
    if spec.name in seen or len(seen) >= _MOST_MODULES:
        return False
    seen.add(spec.name)
    text = _text(spec)
    if not text:
        return spec.origin is None or not spec.origin.endswith(".py")  # a built one, or a folder without __init__.py
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True  # what imports it says what is wrong with it
    names = set(_names(tree.body))
    if {name, "__getattr__"} & names or (spec.submodule_search_locations and _module(f"{spec.name}.{name}", path)[0]):
        return True
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and any(item.name == "*" for item in node.names):
            other, missing = _module(_whole_name(node, spec), path)
            if missing or (other is None) or _binds(other, name, path, seen):
                return True
    return False


def _names(body: Sequence[ast.stmt]) -> Iterator[str]:
    """All that statements of a module may bind, in their branches too."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
            continue
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                yield inner.id
            elif isinstance(inner, ast.Import | ast.ImportFrom):
                yield from ((item.asname or item.name).partition(".")[0] for item in inner.names)
            elif isinstance(inner, ast.FunctionDef | ast.ClassDef):
                yield inner.name


def _whole_name(node: ast.ImportFrom, spec: ModuleSpec) -> str:
    """Of the module that something is imported from."""
    if not node.level:
        return node.module or ""
    package = spec.name if spec.submodule_search_locations is not None else spec.name.rpartition(".")[0]
    parts = package.split(".")
    return ".".join([*parts[: len(parts) - node.level + 1], *([node.module] if node.module else [])])


def _text(spec: ModuleSpec) -> str:
    """A module's source; "" where there's none."""
    if spec.origin is None or not spec.origin.endswith(".py"):
        return ""
    try:
        with tokenize.open(spec.origin) as file:
            return file.read(_MOST_BYTES)
    except (OSError, SyntaxError, ValueError):
        return ""
