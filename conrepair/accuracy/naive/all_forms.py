"""All forms, by operator."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from conrepair.accuracy.naive.form import Form
from conrepair.accuracy.naive.functions import FUNCTIONS
from conrepair.accuracy.naive.sums import SUMS

__all__ = ["FORMS"]


def _by_operator() -> Mapping[str, list[Form]]:
    found: dict[str, list[Form]] = defaultdict(list)
    for form in (*FUNCTIONS, *SUMS):
        for operator in form.operators.split(", "):
            found[operator].append(form)
    return found


FORMS = _by_operator()
