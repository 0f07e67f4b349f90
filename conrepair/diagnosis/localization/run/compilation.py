"""Faults of a compiled model that the model which was compiled doesn't have."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from conrepair.diagnosis.localization.align.alignment import Alignment
from conrepair.diagnosis.localization.judge.judgement import Judged
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.recipes.preparation import Prepared, align_with_inputs
from conrepair.diagnosis.localization.result import LocatedFault
from conrepair.diagnosis.localization.run.activations import Activations, Isolation, add_result
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.metrics.running_error import RunningError
from conrepair.ground.runtime.words import percent


def align_compiled(source: Activations, target: Activations, folder: Path, options: Options) -> Prepared:
    """Align two networks, of which the second may have been compiled.

    A compiled one has the tensors of the model that was compiled, as far as they can be observed. So that model is
    aligned: what a wrong kernel makes of all values behind it hides nothing.

    Args:
        source: One batch through the network that is right.
        target: The same batch through the network in question.
        folder: For activations; the caller removes it.
        options: Margins.
    """
    original = target.network.original
    if original is None:
        return align_with_inputs(source, target, folder, options)
    prepared = align_with_inputs(
        source, Activations(original, target.feeds, folder / "original"), folder / "compiled", options
    )
    alignment, tensors = prepared.alignment, target.network.graph.tensors
    inside = {pair.source for pair in alignment.pairs if not tensors[pair.target].observable}
    pairs = tuple(pair for pair in alignment.pairs if tensors[pair.target].observable)
    inside -= {pair.source for pair in pairs}
    reduced = dataclasses.replace(
        alignment,
        pairs=pairs,
        sources=tuple(name for name in alignment.sources if name not in inside),
        targets=tuple(name for name in alignment.targets if tensors[name].observable),
    )
    return dataclasses.replace(prepared, alignment=reduced)


def with_compilation(
    faults: Sequence[LocatedFault],
    first: tuple[Activations, Activations],
    alignment: Alignment,
    judged: Sequence[Judged],
    margin: float,
) -> list[LocatedFault]:
    """Say of which faults a compiler is the author.

    The compiled model's operators are as they were written, so nothing in its graph can be wrong that isn't in the
    model that was compiled. Where that one gives the source's values for the source's activations, a kernel is wrong.

    Args:
        faults: Of a target.
        first: A batch through the network that is right, and through the one in question.
        alignment: Of both.
        judged: The target's cuts.
        margin: How many times its floor an error may be.
    """
    right, given = first
    original = given.network.original
    by_tensor = {item.cut.pair.target: item for item in judged if item.guilty}
    if original is None or not any(fault.target_tensor in by_tensor for fault in faults):
        return list(faults)
    isolated = Isolation(original, alignment.pairs, list(by_tensor))
    errors = {}
    for name, array in isolated.run(right.__getitem__, given.feeds):
        pair = by_tensor[name].cut.pair
        errors[name] = add_result(RunningError(), pair, right[pair.source], array).relative_l2
    return [
        _of_compiler(fault, given, errors[fault.target_tensor])
        if fault.target_tensor in errors and errors[fault.target_tensor] <= margin * fault.noise_floor
        else fault
        for fault in faults
    ]


def _of_compiler(fault: LocatedFault, given: Activations, error: float) -> LocatedFault:
    kernel = given.network.kernel(fault.target_tensor)
    if kernel is None:
        return fault
    operators = ", ".join(f"{kind} `{name}`" for name, kind in kernel.operators)
    one = len(kernel.functions) == 1
    functions = ", ".join(f"`{name}`" for name in kernel.functions)
    words = (
        f"kernel{'' if one else 's'} {functions} ({operators}) give{'s' if one else ''} other values than the model",
        f"that model gives the original's values there (relative error {percent(error)})",
    )
    layers = tuple(name for name, _ in kernel.operators) or fault.target_layers
    return dataclasses.replace(fault, kind=Kind.COMPILATION, target_layers=layers, evidence=words, confidence=1.0)
