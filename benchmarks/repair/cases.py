"""Which cases there are: those of localization, and more that only repair can get wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.common import cases
from benchmarks.common.cases import CORRECT, SEVERAL, Case
from benchmarks.common.making import FOLDED, OWN
from benchmarks.common.models import MODELS, SMALL
from benchmarks.common.sides import KERAS, TFLITE
from benchmarks.faults.catalogue import faults

__all__ = ["QUANTIZED", "asked_by_command", "plan"]

QUANTIZED = "quantized"
"""One fault in a target that is meant to be stored in eight bits."""

_NATIVE = {"tflite": TFLITE, "keras": KERAS, "torch": OWN}
_EIGHT_BITS = {"tflite": f"{KERAS}>keras-tflite(quantize=dynamic)", "onnx": f"{FOLDED}>onnx-quantize-dynamic"}
_SETS = 2  # of two and of three faults, for each format and seed
_EVERY, _QUICK_EVERY = 4, 19  # fault goes into eight bits


def plan(models: Sequence[str], seeds: Sequence[int], *, quick: bool = False) -> list[Case]:
    """All cases, small models' first.

    Args:
        models: Names.
        seeds: For faults.
        quick: Some of each sort, none of the largest models.
    """
    chosen = cases.plan(models, seeds, quick=quick)
    for place, name in enumerate(models):
        if MODELS[name].size == SMALL:
            row = cases.seeds_of(MODELS[name], seeds, quick=quick)
            chosen += [*_several(name, row, quick=quick), *_quantized(name, row, place, quick=quick)]
    return list({case.name: case for case in chosen}.values())


def _several(model: str, seeds: Sequence[int], *, quick: bool) -> Iterator[Case]:
    """Two and three faults at once in files of other formats."""
    names = [fault.name for fault in faults()]
    for seed in seeds:
        generator = np.random.default_rng(seed)
        for target, base in _NATIVE.items():
            for count in (2,) if quick else (2, 3) * _SETS:
                row = tuple(names[index] for index in generator.permutation(len(names)))
                yield Case(SEVERAL, model, FOLDED, base, row, count, seed, format=target)


def _quantized(model: str, seeds: Sequence[int], place: int, *, quick: bool) -> Iterator[Case]:
    stride = _QUICK_EVERY if quick else _EVERY
    for shift, (target, base) in enumerate(_EIGHT_BITS.items()):
        names = [fault.name for fault in faults()]
        for seed in seeds:
            for name in names[(place + shift) % stride :: stride]:
                yield Case(QUANTIZED, model, FOLDED, base, (name,), 1, seed, format=target, agree=False)


def asked_by_command(chosen: Sequence[Case]) -> frozenset[str]:
    """Names of the correct conversions that `conrepair repair` is asked about too: one of each sort.

    It takes files alone, so that a source that needs Python code is none for it.
    """
    found: dict[tuple[str, str], str] = {}
    for case in chosen:
        if case.group == CORRECT and case.source != OWN and case.format != "torch":
            found.setdefault((case.model, case.format), case.name)
    return frozenset(found.values())
