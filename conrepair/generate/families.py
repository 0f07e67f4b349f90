"""Packages of which each module registers what it has: operators' specifications, forms, patterns."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeVar

__all__ = ["registered"]

Entry = TypeVar("Entry")


def registered(package: str, entries: dict[str, Entry]) -> Mapping[str, Entry]:
    """Import all modules of a package, so that they register their entries.

    Args:
        package: Its name.
        entries: Where they register them.

    Returns:
        The entries, in the order of the alphabet.
    """
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        importlib.import_module(f"{package}.{module.name}")
    return MappingProxyType(dict(sorted(entries.items())))
