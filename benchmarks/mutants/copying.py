"""A copy of the repository, in which files are changed."""

from __future__ import annotations

import compileall
import contextlib
import importlib.util
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.mutants.mutant import Mutant

__all__ = ["copied", "mutated"]


@contextlib.contextmanager
def copied(root: Path) -> Iterator[Path]:
    """A copy that lasts as long as it's needed.

    Args:
        root: Of the repository.
    """
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],  # noqa: S607
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\0")
    with tempfile.TemporaryDirectory(prefix="conrepair-mutants-") as folder:
        copy = Path(folder).resolve()
        for name in filter(None, names):
            if (root / name).is_file():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(root / name, copy / name)
        compileall.compile_dir(copy / "conrepair", quiet=1)
        yield copy


@contextlib.contextmanager
def mutated(copy: Path, mutant: Mutant) -> Iterator[None]:
    """A copy with a mutant in it.

    Args:
        copy: Of the repository.
        mutant: Drawn from it.
    """
    path = copy / mutant.file
    before = path.read_text(encoding="utf-8")
    Path(importlib.util.cache_from_source(path)).unlink(missing_ok=True)  # would pass for the changed file's
    path.write_text(mutant.code, encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(before, encoding="utf-8")
        compileall.compile_file(path, quiet=1)
