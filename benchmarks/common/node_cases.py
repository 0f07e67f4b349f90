"""ONNX's own single-operator cases, and the table of what became of them."""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from onnx.backend.test import loader

__all__ = ["HALF_ULPS", "CaseOutcome", "node_cases", "operator_of", "operator_table"]

HALF_ULPS = {"float16": 2 * 2.0**-10, "bfloat16": 2 * 2.0**-7}
"""Relative tolerances of types that the cases' own are too narrow for."""


class CaseOutcome(Protocol):
    """What a table needs of an outcome."""

    @property
    def operator(self) -> str:
        """That the case is about."""

    @property
    def kind(self) -> str:
        """What became of it."""


def node_cases(*, expanded: bool) -> dict[str, Any]:
    """All cases by name.

    Args:
        expanded: Those that write an operator out as a function, too.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy's, from making the cases
        found = loader.load_model_tests(kind="node")
    return {case.name: case for case in found if expanded or "_expanded" not in case.name}


def operator_of(case: Any) -> str:
    """The operator that a case is about."""
    names = {node.op_type for node in case.model.graph.node}
    return names.pop() if len(names) == 1 else "several"


def operator_table(found: Iterable[CaseOutcome], kinds: Sequence[str]) -> list[str]:
    """Lines of Markdown: how many cases of each operator became what."""
    by_operator: dict[str, Counter[str]] = defaultdict(Counter)
    for item in found:
        by_operator[item.operator][item.kind] += 1
    lines = ["| operator | " + " | ".join(kinds) + " |", "|---|" + "---:|" * len(kinds)]
    for name, counts in sorted(by_operator.items()):
        lines.append(f"| {name} | " + " | ".join(str(counts[kind] or "") for kind in kinds) + " |")
    return lines
