"""Faults as a localization has them, in few words."""

from __future__ import annotations

from conrepair.faults.fault import Kind
from conrepair.localize.result import LocatedFault


def located(name: str, introduced: float, kind: Kind = Kind.PARAMETERS, layers: tuple[str, ...] = ()) -> LocatedFault:
    names = layers or (name,)
    return LocatedFault(
        kind, names, names, "", introduced, 2 * introduced, 1e-6, introduced, (f"of {name}",), name, name
    )
