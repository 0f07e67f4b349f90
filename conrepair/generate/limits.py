"""What a runtime takes, narrowed to what somebody wishes: some operators, element types and numbers of axes."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from conrepair.generate.ports import Support

__all__ = ["Limits"]


class Limits(Support):
    """A narrower support; constants that operators need as such (shapes, axes) may be of any type.

    Args:
        support: Of the runtime.
        operators: That may be there.
        dtypes: That tensors may have; all for none.
        ranks: Numbers of axes that tensors may have.
    """

    def __init__(
        self, support: Support, operators: Collection[str], dtypes: Collection[str], ranks: Collection[int]
    ) -> None:
        self.within, self._operators, self._dtypes = support, frozenset(operators), dtypes
        self._ranks = frozenset(ranks)

    def choices(self, op: str, bound: Mapping[str, str], variable: str, dtypes: tuple[str, ...]) -> tuple[str, ...]:
        return super().choices(op, bound, variable, dtypes) if op in self._operators else ()

    def dtypes(self, dtypes: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dtype for dtype in dtypes if dtype in self._dtypes) if self._dtypes else dtypes

    def ranks(self, ranks: Collection[int]) -> tuple[int, ...]:
        return tuple(rank for rank in ranks if rank in self._ranks)
