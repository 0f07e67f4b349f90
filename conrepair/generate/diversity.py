"""How diverse networks are: `Diversity`."""

from __future__ import annotations

from conrepair.laboratory.generate.diversity import Diversity

__all__ = ["Diversity"]
