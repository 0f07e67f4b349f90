"""Layers judged again by another margin: which of them introduce more than so many times what rounding explains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from conrepair.diagnosis.localization.judge.conclusion import fault_words
from conrepair.diagnosis.localization.judge.judgement import is_above
from conrepair.diagnosis.localization.numbers import judging
from conrepair.diagnosis.localization.result import LayerRow, Localization, LocatedFault, Rule
from conrepair.ground.runtime.words import number
from conrepair.verdicts.evaluate.verdict import Verdict
from conrepair.verdicts.judging import numbers

_Ends = tuple[str, str]


def layers_again(found: Localization, margin: float) -> tuple[Localization, tuple[str, ...]]:
    """Judge by another margin.

    What rounding explains was measured, and so was what each layer introduces: both are saved. What is wrong with a
    layer is found in the models: one that only a smaller margin accuses is named, and nothing is said of its fault.
    Layers that were accused by something else (a fault that no input shows, what the outputs show) stay so.

    Args:
        found: As it was saved.
        margin: How many times what rounding explains an error may be.

    Returns:
        The result, and what couldn't be judged.
    """
    old = found.options.noise_margin
    if margin == old:
        return found, ()
    if found.options.quantized:
        told = "layers weren't judged again: what few bits explain of each isn't saved; localize with --margin"
        return found, (told,)
    if found.arithmetic:
        return found, (
            f"layers weren't judged again: {found.arithmetic} was recognized, which has margins of its own",
        )
    cleared = {_ends(row) for row in found.layers if row.guilty and _above(row, old) and not _above(row, margin)}
    risen = {_ends(row) for row in found.layers if not row.guilty and _above(row, margin) and not _above(row, old)}
    faults = tuple(fault for fault in found.faults if (fault.source_tensor, fault.target_tensor) not in cleared)
    left = {layer for fault in faults for _, layer in fault.differences}
    kept = (replace(rule, layers=tuple(layer for layer in rule.layers if layer in left)) for rule in found.rules)
    rules = tuple(rule for rule in kept if len(rule.layers) >= judging.RULE)
    layers = tuple(
        replace(row, guilty=(row.guilty or _ends(row) in risen) and _ends(row) not in cleared) for row in found.layers
    )
    verdict, reason = _verdict(found, faults, rules, [row for row in layers if _ends(row) in risen], margin)
    tolerance = replace(found.options.tolerance, noise_margin=margin)
    options = replace(found.options, tolerance=tolerance)
    again = replace(found, faults=faults, rules=rules, layers=layers, options=options, verdict=verdict, reason=reason)
    return replace(again, notes=(*found.notes, _note(len(cleared), len(risen), margin, old))), ()


def _ends(row: LayerRow) -> _Ends:
    return row.source_tensor, row.target_tensor


def _above(row: LayerRow, margin: float) -> bool:
    return is_above(row.introduced_error, row.full_run_error, margin * row.noise_floor)


def _verdict(
    found: Localization,
    faults: Sequence[LocatedFault],
    rules: Sequence[Rule],
    risen: Sequence[LayerRow],
    margin: float,
) -> tuple[Verdict, str]:
    if faults:
        return found.verdict, found.reason if len(faults) == len(found.faults) else fault_words(faults, rules)
    if risen:
        worst = max(risen, key=lambda row: row.introduced_error)
        return Verdict.UNDECIDED, (
            f"`{worst.target_layer}` introduces {number(worst.introduced_error)}, more than {margin:g} times the "
            f"{number(worst.noise_floor)} that rounding explains; what is wrong there wasn't looked into"
        )
    if not found.faults and not found.verdict.is_right:
        return found.verdict, found.reason
    outputs = f"outputs differ by {number(found.output_error)}, rounding explains {number(found.output_floor)}"
    within = f"no layer introduces more than {margin:g} times what rounding explains"
    most = max(found.options.same, min(margin * found.output_floor, numbers.LARGEST_NOISE))
    if found.output_error <= most:
        verdict = found.verdict if found.verdict.is_right else Verdict.NOISE
        return verdict, f"{within}; {outputs}"
    return Verdict.UNDECIDED, f"{within}, and yet {outputs}"


def _note(cleared: int, risen: int, margin: float, old: float) -> str:
    counts = [(cleared, "not at fault any more"), (risen, "above it that weren't, with a fault that isn't known")]
    changes = ", ".join(f"{count} {words}" for count, words in counts if count)
    found = changes or "the same places are at fault"
    return f"judged again with a margin of {margin:g} in place of {old:g}: {found}"
