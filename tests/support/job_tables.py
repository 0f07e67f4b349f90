"""Tables of jobs for workers: the functions of a module by their names."""

from __future__ import annotations

from types import FunctionType, ModuleType

__all__ = ["jobs_of"]


def jobs_of(module: ModuleType) -> dict[str, str]:
    """Every function that a module defines, as a job of its name."""
    where = module.__name__
    return {
        name: f"{where}:{name}"
        for name, value in vars(module).items()
        if isinstance(value, FunctionType) and value.__module__ == where
    }
