"""Which pairs there are."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from benchmarks.judges.conditioned import CONDITIONED
from benchmarks.judges.deep import DEEP
from benchmarks.judges.edits import EDITS
from benchmarks.judges.shallow import SHALLOW

__all__ = ["CATALOGUE", "DIGITS", "GENERATED", "KINDS", "SEEDS", "Case", "plan"]

KINDS = ("right", "faulty", "ill-conditioned", "deep", "quantized")
SEEDS = {"development": (11, 12), "reporting": (90_011, 90_012)}
"""Of both sets of pairs."""

CATALOGUE = "catalogue"
"""A fault of `benchmarks.faults`, whichever has a place."""

GENERATED, DIGITS = "generated", "digits"
_GENERATED, _DIGITS = [f"{GENERATED}-{place}" for place in range(10)], [DIGITS]
_TVM = ("tvm-O0", "tvm-O3")
_OTHERS = ("normalised", "torch", "keras", "tflite", "optimized", "recorded", "recorded optimized")
_FAULTS = (*EDITS, CATALOGUE)
_QUANTIZED = ("qdq", "tflite-int8", "tflite-dynamic", "float16")
_IN_FEW_BITS = (
    *(DIGITS, "dense", "convolutions", "upsampling", "activations", "moving", "attention", "gelu", "normalizations"),
    *("two-outputs",),
)
_RECORDED_WRONG = (
    *("sigmoid-tail", "softmax-tail", "variance-by-squares", "layer-norm-of-large-mean", "cancelling-product"),
    *("cancelling-sum", "one-minus-tanh", "logistic-map", "power-of-near-one"),
)
_NOT_BUILT = {"recurrent", "steep-recurrence"}  # TVM's importer has no recurrent layers
_EVERY_TVM = 4  # of targets one is a build, which takes seconds


@dataclass(frozen=True)
class Case:
    """A pair.

    Attributes:
        kind: One of `KINDS`.
        network: Name of the source.
        target: How the target is made.
        fault: What's wrong with it; "" where nothing is.
        seed: Of weights, inputs, places of faults.
    """

    kind: str
    network: str
    target: str
    fault: str
    seed: int

    @property
    def name(self) -> str:
        """Unique."""
        return " / ".join(filter(None, (self.kind, self.network, self.target, self.fault, str(self.seed))))


def plan(seeds: Sequence[int]) -> list[Case]:
    """All pairs of some seeds, kinds in turn, so that the first stand for all."""
    by_kind = [
        [case for seed in seeds for case in of(seed)] for of in (_right, _faulty, _conditioned, _deep, _quantized)
    ]
    mixed = itertools.zip_longest(*by_kind)
    return list(dict.fromkeys(_built(case) for row in mixed for case in row if case is not None))


def _built(case: Case) -> Case:
    """A case with another target where TVM can't take its network."""
    if case.target in _TVM and case.network in _NOT_BUILT:
        return replace(case, target="recorded")
    return case


def _right(seed: int) -> Iterator[Case]:
    networks = [*SHALLOW, *_GENERATED, *_DIGITS]
    ways = itertools.cycle(_OTHERS)
    for place, network in enumerate(networks):
        yield Case("right", network, next(ways), "", seed)
        if place % 2 == seed % 2:
            yield Case("right", network, _TVM[place // 2 % 2], "", seed)


def _faulty(seed: int) -> Iterator[Case]:
    networks = [*SHALLOW, *_GENERATED[:4], *_DIGITS]
    faults, ways = (
        itertools.cycle(_FAULTS),
        itertools.cycle(("file", "torch", "file", "keras", "file", "recorded", "file")),
    )
    for place, network in enumerate(itertools.chain(networks, networks)):
        target = _TVM[place // _EVERY_TVM % 2] if place % _EVERY_TVM == seed % _EVERY_TVM else next(ways)
        yield Case("faulty", network, target, next(faults), seed)


def _conditioned(seed: int) -> Iterator[Case]:
    ways = itertools.cycle(("recorded", "torch", "recorded optimized", "tflite", "optimized"))
    faults = itertools.cycle(_FAULTS[:-1])
    for place, network in enumerate(CONDITIONED):
        if place % 3 == seed % 3:
            yield Case("ill-conditioned", network, "file", next(faults), seed)
        else:
            target = _TVM[place % 2] if place % 3 == (seed + 1) % 3 else next(ways)
            yield Case("ill-conditioned", network, target, "", seed)
    for network in _RECORDED_WRONG:
        yield Case("ill-conditioned", network, "recorded", next(faults), seed)


def _deep(seed: int) -> Iterator[Case]:
    ways = itertools.cycle(("torch", "recorded", "optimized", "normalised", "recorded optimized"))
    faults = itertools.cycle(("weights off by 0.1 %", "weights off by 1 %", "operator lost", "weights off by 10 %"))
    for place, network in enumerate(DEEP):
        yield Case("deep", network, "tvm-O3" if place == seed % len(DEEP) else next(ways), "", seed)
        for target in ("file", "recorded") if place % 2 else ("file",):
            yield Case("deep", network, target, next(faults), seed)


def _quantized(seed: int) -> Iterator[Case]:
    ways = itertools.cycle(_QUANTIZED)
    faults = itertools.cycle(("weights off by 10 %", "operator lost", "bias lost", "another operator"))
    for network in _IN_FEW_BITS:
        yield Case("quantized", network, next(ways), "", seed)
        yield Case("quantized", network, next(ways), next(faults), seed)
