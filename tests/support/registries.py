"""Registries as they'd be with other things in them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from conrepair.ground.runtime.plugins import Registry

__all__ = ["put", "taken_out"]


def put(monkeypatch: pytest.MonkeyPatch, registry: Registry[Any], name: str, value: Any) -> None:
    """Have a thing among ours, in the place of another of that name where there's one."""
    monkeypatch.setattr(registry, "own", {**registry.own, name: value})
    monkeypatch.setitem(registry._loaded, name, value)


def taken_out(monkeypatch: pytest.MonkeyPatch, registry: Registry[Any], names: Collection[str]) -> None:
    """Have none of ours that are called so, and no plug-ins."""
    monkeypatch.setattr(registry, "_plugins", lambda: iter(()))
    monkeypatch.setattr(registry, "own", {name: value for name, value in registry.own.items() if name not in names})
    for name in names:
        monkeypatch.delitem(registry._loaded, name, raising=False)
