"""All faults there are: one module each, in a folder for each kind."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

import benchmarks.faults
from benchmarks.faults.fault import Fault
from conrepair.ground.graph.kinds import Kind

__all__ = ["faults"]


@cache
def faults() -> tuple[Fault, ...]:
    """The catalogue, in the order of the kinds, then of the names."""
    found: list[Fault] = []
    for kind in Kind:
        if kind is Kind.COMPILATION:  # it's in no file
            continue
        package = importlib.import_module(f"{benchmarks.faults.__name__}.{kind.value}")
        names = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
        found += [importlib.import_module(f"{package.__name__}.{name}").FAULT for name in names]
    return tuple(found)
