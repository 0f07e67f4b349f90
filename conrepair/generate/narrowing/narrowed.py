"""A support that is narrowed to what a target takes."""

from __future__ import annotations

from collections.abc import Mapping

from conrepair.generate.narrowing.facts import facts_of
from conrepair.generate.narrowing.table import Acceptance
from conrepair.generate.ports import Support
from conrepair.generate.setting import Setting

__all__ = ["Narrowed"]


class Narrowed(Support):
    """What a runtime takes, without what a target never takes.

    Args:
        support: Of the runtime that computes networks.
        taken: What the target takes, by operator; one that isn't there is as the runtime has it.
    """

    def __init__(self, support: Support, taken: Mapping[str, Acceptance]) -> None:
        self.within, self._taken = support, taken

    def choices(self, op: str, bound: Mapping[str, str], variable: str, dtypes: tuple[str, ...]) -> tuple[str, ...]:
        left = super().choices(op, bound, variable, dtypes)
        found = self._taken.get(op)
        if found is None:
            return left
        return tuple(dtype for dtype in left if found.taken and dtype not in found.no_types.get(variable, ()))

    def allows(self, setting: Setting) -> bool:
        found = self._taken.get(setting.op)
        return super().allows(setting) and (found is None or found.allows(facts_of(setting)))
