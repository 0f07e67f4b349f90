"""At which step of a conversion each fault came in."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from conrepair.localization.result import Localization, LocatedFault


def attribute_steps(
    result: Localization, intermediates: Sequence[tuple[str, Localization | None]], last: str
) -> Localization:
    """Name the converter that introduced each fault.

    Args:
        result: Of the last model of a route.
        intermediates: The steps before, in order, each with the localization of the model that it made; None where
            there's none.
        last: The step that made the last model.
    """
    faults = tuple(dataclasses.replace(fault, step=_step_of(fault, intermediates) or last) for fault in result.faults)
    missing = [step for step, found in intermediates if found is None]
    notes = result.notes
    if missing and faults:
        notes = (*notes, f"the models of {', '.join(missing)} couldn't be looked into: a step may be named too late")
    step_of = {layer: fault.step for fault in faults for _, layer in fault.differences}
    rules = tuple(dataclasses.replace(rule, step=step_of.get(rule.layers[0], "")) for rule in result.rules)
    return dataclasses.replace(result, faults=faults, rules=rules, notes=notes)


def _step_of(fault: LocatedFault, intermediates: Sequence[tuple[str, Localization | None]]) -> str:
    """The first step after which the same layers of the source are guilty; "" when they aren't before the last."""
    for step, found in intermediates:
        if found is not None and any(_same(fault, item) for item in found.faults):
            return step
    return ""


def _same(one: LocatedFault, two: LocatedFault) -> bool:
    return one.source_tensor == two.source_tensor or bool(set(one.source_layers) & set(two.source_layers))
