"""What networks should be like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conrepair_lab.generate.settings.ports import Support


@dataclass(frozen=True)
class Wishes:
    """What networks should be like.

    Attributes:
        nodes: Operators of each.
        operators: Names of those that may be in it; all for none.
        exclude: Names of those that may not be in it.
        dtypes: Element types that its tensors may have; all for none. Constants that operators need as such (shapes,
            axes) are of the types that they need.
        ranks: Numbers of axes that its tensors may have, the fewest and the most.
        most: Elements that a tensor may have.
        opset: Of the standard's operators.
        backward: How likely an operator is put in front of a tensor that no node makes.
        woven: How likely a pattern is put in, for each five nodes.
        extremes: The share of networks some of whose inputs and weights are at the ends of what they may be.
        deep: The share of networks in which operators are put behind the longest chain.
        large: The share of networks with tensors of up to a million elements.
        folded: The share of networks some of whose nodes may depend on no input, which compilers fold away.
        single: Whether each has one input and one output.
        symbolic: The share of networks that leave sizes open, where their operators let them; half of them the batch.
        quotas: By form, the share of networks that get it, where that's not the usual one.
        changes: How often what is taken of a real network is changed. `nodes` are those that are taken then, at most;
            operators, element types and ranks are those of what's put in; forms have no quotas.
        patterns: By pattern, the share of networks that get it, of those that have nodes enough; others are put in as
            `woven` says.
    """

    nodes: int = 10
    operators: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    ranks: tuple[int, int] = (0, 6)
    most: int = 4096
    opset: int = 20
    backward: float = 0.3
    woven: float = 0.2
    extremes: float = 0.2
    deep: float = 0.0
    large: float = 0.0
    folded: float = 0.05
    single: bool = False
    symbolic: float = 0.0
    quotas: Mapping[str, float] = field(default_factory=dict)
    changes: int = 10
    patterns: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Operators that may be in it, of those that the opset has."""
        from conrepair_lab.generate.specifications.specification import (
            specifications,  # imports ONNX, defaults don't
        )

        known = specifications()
        return tuple(
            name
            for name in self.operators or known
            if name in known and known[name].least_opset <= self.opset and name not in self.exclude
        )

    def narrowed(self, support: Support) -> Support:
        """What a runtime takes, as far as it's wished."""
        from conrepair_lab.generate.settings.ports import Limits

        fewest, most = self.ranks
        return Limits(support, self.names, self.dtypes, range(fewest, most + 1))
