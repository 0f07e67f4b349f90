"""Try other ways to convert where layers are at fault, and say what came of each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from conrepair.localization.result import Localization, LocatedFault
from conrepair.pipeline.stages.conversion_repair import RouteTrial
from conrepair.repairs.conversion.remedies import Remedy, RouteStep
from conrepair.repairs.outcomes import Advice

__all__ = ["advise"]

_MOST = 8  # ways that are named
_UP = "the time was up"
_FOUND = "another way avoids the fault already"


def advise(
    ways: Iterable[Remedy],
    found: Localization,
    try_route: Callable[[Sequence[RouteStep]], RouteTrial],
    localize: Callable[[RouteTrial], Localization | None],
    seconds: float,
    refusal: str = "",
) -> tuple[Advice, ...]:
    """Convert a source anew until no layer is at fault.

    Args:
        ways: The likeliest to help first.
        found: The target's faults.
        try_route: Takes the source along a route.
        localize: Looks at what a route gave; None where that can't be.
        seconds: After which nothing more is tried.
        refusal: Why nothing is tried at all.
    """
    end, result = time.monotonic() + seconds, []
    reason, seen = refusal or ("" if seconds else "no time was given for it"), set()
    for way in ways:
        if way.route in seen:
            continue
        seen.add(way.route)
        if not reason and time.monotonic() > end:
            reason = _UP
        if reason:
            result.append(Advice(way.words, way.route, tried=False, avoids=False, outcome=f"not tried: {reason}"))
        else:
            result.append(_tried(way, found, try_route(way.steps), localize))
            reason = _FOUND if result[-1].avoids else ""
        if len(result) == _MOST:
            break
    return tuple(result)


def _tried(
    way: Remedy, found: Localization, trial: RouteTrial, localize: Callable[[RouteTrial], Localization | None]
) -> Advice:
    outcome, avoids = "", False
    made = trial.models[-1] if trial.models else None
    again = None if trial.failure is not None or not trial.rows else localize(trial)
    if trial.failure is not None:
        outcome = f"it fails: {trial.failure}"
    elif again is None:
        outcome = "its layers can't be looked at"
    elif not again.faults:
        outcome, avoids = f"no layer is at fault ({again.verdict.value})", again.is_right
    elif {_place(fault) for fault in again.faults} >= {_place(fault) for fault in found.faults}:
        outcome = "the same fault"
    else:
        outcome = f"other faults: {len(again.faults)} for {len(found.faults)}"
    return Advice(
        way.words, way.route, tried=True, avoids=avoids, outcome=f"tried: {outcome}", model=made if avoids else None
    )


def _place(fault: LocatedFault) -> tuple[str, str]:
    return fault.kind.value, fault.source_tensor
