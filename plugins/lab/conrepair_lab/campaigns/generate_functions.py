"""A user's own functions in files: looked at without running anything, and loaded where they're called."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from conrepair.formats.models.admission import how_to_trust
from conrepair.ground.runtime.errors import ModelLoadError, UsageError
from conrepair.ground.runtime.files.ordinary_file import NotOrdinaryError, read_ordinary
from conrepair.ground.runtime.files.whole import sha256_of
from conrepair.ground.runtime.user_functions import module_at
from conrepair.ground.runtime.words import meant
from conrepair_lab.generate.functions import FINDING, Function, Functions, kind_by

_LARGEST = 16 << 20  # bytes of a program that people write


@dataclass(frozen=True)
class FunctionFile:
    """A function in a file.

    Attributes:
        path: Of the file.
        name: Of the function.
        kind: What it is, as `Function.kind`.
    """

    path: str
    name: str
    kind: str

    @property
    def told(self) -> str:
        """How people call it."""
        return f"{Path(self.path).name}:{self.name}"

    @property
    def identity(self) -> str:
        """What networks depend on."""
        return f"{self.told} {sha256_of(Path(self.path))[:16]}"


def function_files(
    texts: Sequence[str], base: Path, *, trust: bool, findings: bool = False
) -> tuple[FunctionFile, ...]:
    """Find functions that are named.

    Args:
        texts: Of them, as FILE.py:NAME.
        base: Folder that relative paths start from.
        trust: Whether the user says that they may run.
        findings: Whether there are any, which they may filter.

    Raises:
        UsageError: if one isn't there, or is no filter or constraint of what there is.
        ModelLoadError: if they may not run.
    """
    found = tuple(_found(text, base) for text in dict.fromkeys(texts))
    for item in found:
        if item.kind == FINDING and not findings:
            raise UsageError(f"{item.told} filters findings, which only `conrepair fuzz` has.")
    if found and not trust:
        told = ", ".join(item.told for item in found)
        raise ModelLoadError(
            f"{told}: not run, as functions are programs, with your rights and not confined. "
            f"{how_to_trust('`trust: true` of `generate`')}."
        )
    return found


def functions_at(files: Sequence[FunctionFile]) -> Functions:
    """Load functions.

    Args:
        files: Which.

    Raises:
        ModelLoadError: if that fails.
    """
    return Functions(
        [
            Function(item.told, item.kind, getattr(module_at(item.path, str(Path(item.path).parent)), item.name))
            for item in files
        ]
    )


def _found(text: str, base: Path) -> FunctionFile:
    file, colon, name = text.rpartition(":")
    if not (colon and file.endswith(".py") and name.isidentifier()):
        raise UsageError(f"{text!r} names no function: write FILE.py:NAME, as in checks.py:only_small.")
    path = (base / file).absolute()
    try:
        tree = ast.parse(read_ordinary(path, _LARGEST), str(path))
    except NotOrdinaryError:
        raise
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror or error}.") from error
    except (SyntaxError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} is no Python program: {error}.") from error
    functions = {item.name: item for item in tree.body if isinstance(item, ast.FunctionDef)}
    if name not in functions:
        hint = meant(name, functions, f"it has {', '.join(functions) or 'none'}.")
        raise UsageError(f"{path} defines no function {name!r}{hint}")
    arguments = functions[name].args
    parameters = [item.arg for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return FunctionFile(str(path), name, kind_by(f"{path.name}:{name}", parameters))
