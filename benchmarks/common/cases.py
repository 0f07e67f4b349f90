"""Which cases there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.common.injecting.by_exporter import BY_EXPORTER
from benchmarks.common.injecting.by_keras import BY_KERAS
from benchmarks.common.injecting.by_protobuf import BY_PROTOBUF
from benchmarks.common.injecting.by_tflite import BY_TFLITE
from benchmarks.common.injecting.by_torch import BY_TORCH
from benchmarks.common.injecting.inject import OWN_FAULTS
from benchmarks.common.making import FOLDED, KEPT, OWN
from benchmarks.common.models import DEVELOPMENT_SEEDS, LARGE, MIDDLE, MODELS, REPORTING_SEEDS, SMALL, BenchmarkModel
from benchmarks.common.rewriting import REWRITINGS
from benchmarks.common.sides import KERAS, SAVEDMODEL, TFLITE, conversions
from benchmarks.faults.catalogue import faults
from benchmarks.systematic.faults import FAULTS

__all__ = ["DEVELOPMENT_SEEDS", "REPORTING_SEEDS", "ROUTES", "Case", "plan", "seeds_of"]

CORRECT, INTENDED = "correct", "intended"
ONNX, CONVERTED, NATIVE, SEVERAL = "onnx", "converted", "native", "several"
FRAMEWORK, EXPORTER = "framework", "exporter"

ROUTES = {
    "tflite": ("onnx-keras", "keras-tflite"),
    "torch": ("onnx2torch",),
    "keras": ("onnx-keras",),
    "tensorflow": ("onnx-keras", "keras-savedmodel"),
}
"""From ONNX to other formats."""

_BASES = {
    BY_TORCH.name: (OWN, "torch"),
    BY_EXPORTER.name: (OWN, "onnx"),
    BY_KERAS.name: (KERAS, "keras"),
    BY_TFLITE.name: (TFLITE, "tflite"),
}
"""What frameworks put faults into, and what comes out."""

_UNFOLDED = {name for name, fault in FAULTS.items() if fault.unfolded}
_EXPORTED_TOO = 3  # one of so many faults that PyTorch puts in is exported to ONNX, with it
_SETS = {SMALL: 6, MIDDLE: 3, LARGE: 1}  # of two and of three faults, for each seed


@dataclass(frozen=True)
class _Strides:
    """One of so many faults is put into a model of some size, other ones into other models; 0 is none."""

    onnx: int
    own: int
    kept: int
    mixed: int
    converted: int
    native: int
    framework: int


_FULL = {
    SMALL: _Strides(1, 4, 2, 6, 1, 2, 1),
    MIDDLE: _Strides(1, 6, 2, 8, 5, 8, 3),
    LARGE: _Strides(2, 14, 6, 14, 18, 28, 9),
}
_QUICK = {SMALL: _Strides(5, 56, 6, 56, 18, 18, 9), MIDDLE: _Strides(28, 0, 28, 0, 56, 56, 31)}
_QUICK_SIDES = frozenset(
    {
        *(f"{FOLDED}>{name}" for name in ("onnx-normalise", "onnx-onnxslim", "onnx-onnxsim", "onnx2torch")),
        *(f"{FOLDED}>onnx-version-converter(opset={opset})" for opset in (18, 21)),
        f"{FOLDED}>onnx-float16",
        KERAS,
        TFLITE,
        SAVEDMODEL,
        f"{OWN}>torch-onnx-dynamo",
    }
)
_QUICK_REWRITINGS = ("renamed", "all operators as functions")  # of larger models


@dataclass(frozen=True)
class Case:
    """What is done once.

    Attributes:
        group: Which table it counts in.
        model: Of the benchmark.
        source: The side that is right.
        base: The side that faults are put into, or that's written otherwise, or that is the target.
        faults: Names, tried in turn.
        count: How many of them are wanted.
        seed: For places and numbers.
        rewriting: Another way to write the base.
        route: Converters from there to the target.
        precision: That a converter was asked for; "" for the source's.
        format: Of the target.
        agree: Whether the target must compute what its source does.
    """

    group: str
    model: str
    source: str
    base: str
    faults: tuple[str, ...] = ()
    count: int = 0
    seed: int = 0
    rewriting: str = ""
    route: tuple[str, ...] = ()
    precision: str = ""
    format: str = "onnx"
    agree: bool = True

    @property
    def name(self) -> str:
        """Unique, and understood by the command line."""
        parts = [self.model, self.source, ">".join((self.base, *self.route))]
        if self.rewriting:
            parts.append(self.rewriting)
        if self.count:
            what = self.faults[0] if self.count == 1 else f"{self.count} faults, {self.faults[0]} first"
            parts.append(f"{what}@{self.seed}")
        return ":".join(parts)


def plan(models: Sequence[str], seeds: Sequence[int], *, quick: bool = False) -> list[Case]:
    """All cases, small models' first.

    Args:
        models: Names.
        seeds: For faults.
        quick: Some of each sort, none of the largest models.
    """
    chosen = [MODELS[name] for name in models if not (quick and MODELS[name].size == LARGE)]
    cases: list[Case] = []
    for place, model in enumerate(chosen):
        builder = _Plan(model, seeds_of(model, seeds, quick=quick), place, quick=quick)
        cases += [*builder.onnx(), *builder.converted(), *builder.native(), *builder.by_frameworks()]
        cases += [*builder.several(), *builder.correct()]
    return list({case.name: case for case in cases}.values())


def seeds_of(model: BenchmarkModel, seeds: Sequence[int], *, quick: bool) -> Sequence[int]:
    """Of the faults that are put into a model: its own, if it has one."""
    if model.seed:
        return (model.seed,)
    return seeds[:1] if quick or model.size != SMALL else seeds


class _Plan:
    def __init__(self, model: BenchmarkModel, seeds: Sequence[int], place: int, *, quick: bool) -> None:
        self._model, self._seeds, self._place, self._quick = model, seeds, place, quick
        self._strides = (_QUICK if quick else _FULL)[model.size]
        self._names = [fault.name for fault in faults()]

    def _every(self, stride: int, shift: int = 0) -> list[str]:
        """Each so-manyth fault, others for other models."""
        return self._names[(self._place + shift) % stride :: stride] if stride else []

    def _one(self, group: str, source: str, base: str, fault: str, seed: int, **more: object) -> Case:
        return Case(group, self._model.name, source, base, (fault,), 1, seed, **more)  # type: ignore[arg-type]

    def onnx(self) -> Iterator[Case]:
        """Faults in ONNX, against the same file, the one with other norms, the network's own framework."""
        pairs = {(FOLDED, FOLDED): self._strides.onnx, (OWN, FOLDED): self._strides.own}
        if self._model.normalized:
            pairs |= {(KEPT, KEPT): self._strides.kept, (KEPT, FOLDED): self._strides.mixed}
        for shift, ((source, base), stride) in enumerate(pairs.items()):
            for seed in self._seeds:
                for name in self._every(stride, shift):
                    yield self._one(ONNX, source, base, name, seed)

    def converted(self) -> Iterator[Case]:
        """Faulty ONNX converted on."""
        for shift, seed in enumerate(self._seeds):
            for number, name in enumerate(self._every(self._strides.converted)):
                target = list(ROUTES)[(number + shift + self._place) % len(ROUTES)]
                yield self._one(CONVERTED, FOLDED, FOLDED, name, seed, route=ROUTES[target], format=target)

    def native(self) -> Iterator[Case]:
        """Faults in files of other formats."""
        for shift, (target, base) in enumerate({"tflite": TFLITE, "keras": KERAS, "torch": OWN}.items()):
            for name in self._every(self._strides.native, shift):
                for seed in self._seeds:
                    yield self._one(NATIVE, FOLDED, base, name, seed, format=target)

    def by_frameworks(self) -> Iterator[Case]:
        """Faults that frameworks put in themselves, and those of an exporter made wrong on purpose."""
        names = list(OWN_FAULTS)
        stride = self._strides.framework
        for number, name in enumerate(names[self._place % stride :: stride] if stride else []):
            means, _ = OWN_FAULTS[name]
            base, target = _BASES.get(means.name, (FOLDED, "onnx"))
            if means is BY_PROTOBUF and name.removeprefix(f"{means.name}-") in _UNFOLDED:
                if not self._model.normalized:
                    continue
                base = KEPT
            group = EXPORTER if means is BY_EXPORTER else FRAMEWORK
            source = base if means is BY_PROTOBUF else FOLDED
            for seed in self._seeds:
                yield self._one(group, source, base, name, seed, format=target)
                if means is BY_TORCH and number % _EXPORTED_TOO == 0:
                    yield self._one(group, source, base, name, seed, format="onnx", route=("torch-onnx-dynamo",))

    def several(self) -> Iterator[Case]:
        """Two and three faults at once; the next in a random row where one has no place."""
        counts = (2, 3) * _SETS[self._model.size]
        if self._quick:
            counts = (2, 3) if self._model.size == SMALL else (2,)
        for seed in self._seeds:
            generator = np.random.default_rng(seed)
            for count in counts:
                row = tuple(self._names[index] for index in generator.permutation(len(self._names)))
                yield Case(SEVERAL, self._model.name, FOLDED, FOLDED, row, count, seed)

    def correct(self) -> Iterator[Case]:
        """Conversions and rewritings that change nothing, or what they're meant to."""
        name = self._model.name
        starts = [FOLDED, *([KEPT] if self._model.normalized else [])]
        for start in starts[:1] if self._quick else starts:
            for rewriting in REWRITINGS:
                if not self._quick or self._model.size == SMALL or rewriting in _QUICK_REWRITINGS:
                    yield Case(CORRECT, name, start, start, rewriting=rewriting, seed=self._seeds[0])
        for other in [OWN, *starts[1:]]:
            yield Case(CORRECT, name, other, FOLDED)
        for item in conversions(self._model.normalized):
            if self._quick and item.side not in (_QUICK_SIDES if self._model.size == SMALL else {TFLITE}):
                continue
            group = INTENDED if item.intent else CORRECT
            more = {"precision": item.intent, "format": item.format, "agree": not item.intent}
            yield Case(group, name, item.parent, item.side, **more)  # type: ignore[arg-type]
            further = [] if item.parent in starts or item.intent or self._quick else [FOLDED, OWN]
            for source in further:
                yield Case(group, name, source, item.side, **more)  # type: ignore[arg-type]
