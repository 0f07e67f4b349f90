"""All forms, by name: unusual but valid patterns, which aim at no optimization."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from conrepair_lab.generate.patterns.pattern import Pattern, Registry
from conrepair_lab.generate.specifications.specification import registered

QUOTA = 0.05
"""The share of networks that get a form, unless a configuration says another."""

_FORMS = Registry()
form, written_forms = _FORMS.add, _FORMS.add_written


@cache
def forms() -> Mapping[str, Pattern]:
    """All forms, in alphabetical order."""
    return registered("conrepair_lab.generate.forms", _FORMS.known)
