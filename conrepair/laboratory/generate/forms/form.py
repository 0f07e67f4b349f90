"""All forms, by name: patterns that are nonsense, and aim at no optimization."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from conrepair.laboratory.generate.patterns.pattern import Pattern, Registry
from conrepair.laboratory.generate.specifications.specification import registered

QUOTA = 0.05
"""The share of networks that get a form, unless a configuration says another."""

_FORMS = Registry()
form, written_forms = _FORMS.add, _FORMS.add_written


@cache
def forms() -> Mapping[str, Pattern]:
    """All of them, in the order of the alphabet."""
    return registered("conrepair.laboratory.generate.forms", _FORMS.known)
