"""Layers judged again by another margin: which of them add more than so many times the rounding error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from conrepair.diagnosis.localization.judge.conclusion import fault_words
from conrepair.diagnosis.localization.judge.judgement import is_above
from conrepair.diagnosis.localization.numbers import judging
from conrepair.diagnosis.localization.result import LayerRow, Localization, LocatedFault, Rule
from conrepair.ground.runtime.words import percent
from conrepair.verdicts.evaluate.verdict import Verdict
from conrepair.verdicts.judging import numbers

_Ends = tuple[str, str]


def layers_again(found: Localization, margin: float) -> tuple[Localization, tuple[str, ...]]:
    """Judge by another margin.

    The rounding error and the error that each layer adds were measured and saved. What is wrong with a layer is found
    in the models: one that is faulty only by a smaller margin is named, and nothing is said of its fault. Layers that
    are faulty for another reason (a fault that no input triggers, what the outputs show) stay so.

    Args:
        found: As it was saved.
        margin: How many times the rounding error an error may be.

    Returns:
        The result, and what couldn't be judged.
    """
    old = found.options.noise_margin
    if margin == old:
        return found, ()
    if found.options.quantized:
        told = "layers weren't judged again: what quantization allows each isn't saved; use localize --margin"
        return found, (told,)
    if found.arithmetic:
        return found, (
            f"layers weren't judged again: {found.arithmetic} arithmetic was recognized, which has its own margins",
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
            f"can't tell: `{worst.target_layer}` adds an error of {percent(worst.introduced_error)}, more than "
            f"{margin:g} times the rounding error ({percent(worst.noise_floor)}); localize again to find out why"
        )
    if not found.faults and not found.verdict.is_right:
        return found.verdict, found.reason
    outputs = f"outputs are off by {percent(found.output_error)} (rounding error: {percent(found.output_floor)})"
    within = f"no layer adds more than {margin:g} times the rounding error"
    most = max(found.options.same, min(margin * found.output_floor, numbers.LARGEST_NOISE))
    if found.output_error <= most:
        verdict = found.verdict if found.verdict.is_right else Verdict.NOISE
        return verdict, f"{within}; {outputs}"
    return Verdict.UNDECIDED, f"can't tell: {within}, and yet {outputs}"


def _note(cleared: int, risen: int, margin: float, old: float) -> str:
    counts = [(cleared, "no longer faulty"), (risen, "newly above it, for an unknown reason")]
    changes = ", ".join(f"{count} {'layer' if count == 1 else 'layers'} {words}" for count, words in counts if count)
    return f"judged with a margin of {margin:g} instead of {old:g}: {changes or 'the same layers are faulty'}"
