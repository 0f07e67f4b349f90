"""Many traces in a few lines."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Sequence
from typing import Any

from conrepair.report.tracing.words import verdict_of
from conrepair.tracing.result import Traced

__all__ = ["summary_lines", "summary_of"]

_ABOVE = (1e-3, 1e-2)
_SHOWN = 10
Named = Sequence[tuple[str, Traced]]


def summary_of(found: Named) -> dict[str, Any]:
    """Counts of verdicts, of errors above limits, of culprits; the networks by their verdict."""
    kinds = collections.Counter(traced.deviations[0].kind for _, traced in found if traced.deviations)
    largest = [max((item.optimization.largest for item in traced.deviations), default=0.0) for _, traced in found]
    culprits = collections.Counter(
        " and ".join(item.name for item in traced.culprits.heals[0]) for _, traced in found if traced.culprits.heals
    )
    return {
        "networks": len(found),
        "kinds": dict(kinds.most_common()),
        "largest relative error": {f"above {limit:g}": sum(size > limit for size in largest) for limit in _ABOVE},
        "culprits": dict(culprits.most_common()),
        "each": {name: verdict_of(traced) for name, traced in found},
    }


def summary_lines(found: Named) -> Iterator[str]:
    """The same for a terminal."""
    told = summary_of(found)
    kinds = ", ".join(f"{count} {kind}" for kind, count in told["kinds"].items())
    above = ", ".join(f"{count} {words}" for words, count in told["largest relative error"].items())
    yield f"{told['networks']} networks: {kinds or 'none compared'}; largest relative error: {above}"
    for name, count in list(told["culprits"].items())[:_SHOWN]:
        yield f"  {count} healed without {name}"
