"""Which cases of attention there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.attention.faults.catalogue import FAULTS
from benchmarks.attention.spec import Spec, networks
from benchmarks.common.cases import Case
from benchmarks.common.otherwise import OF_PICTURES, OTHERWISE

__all__ = ["FAULTY", "OTHERWISE_FAULTY", "RIGHT", "find", "plan"]

FAULTY, OTHERWISE_FAULTY, RIGHT = "faulty", "faulty and written otherwise", "right"

_BASE = "writing-0"
_FURTHER = 4  # writings of a network that are right targets
_STRIDE = 3  # each network is rewritten in one of so many ways, other ones in others
_WAYS = [name for name in OTHERWISE if name not in OF_PICTURES]
_FORMS = (
    (_BASE, "one"),
    (_BASE, "all"),
    ("writing-1", "one"),
    (_BASE, "one, renamed"),
    ("writing-2", "all, renamed"),
    (_BASE, "all, renamed"),
)


def plan(seeds: Sequence[int]) -> list[Case]:
    """All cases of some seeds: each fault in each network in one form, each network otherwise in some ways."""
    cases: list[Case] = []
    for seed in seeds:
        for place, spec in enumerate(networks(seed)):
            cases += [*_faulty(spec, place, seed), *_right(spec, place, seed)]
    return cases


def find(name: str) -> Spec:
    """A network by its name."""
    seed = int(name.split("-")[1])
    return next(spec for spec in networks(seed) if spec.name == name)


def _faulty(spec: Spec, place: int, seed: int) -> Iterator[Case]:
    for number, fault in enumerate(FAULTS):
        base, form = _FORMS[(number + 5 * place + seed) % len(_FORMS)]
        if FAULTS[fault].shared:
            form = form.replace("one", "all")
        group = FAULTY if base == _BASE else OTHERWISE_FAULTY
        yield Case(group, spec.name, _BASE, base, (fault,), 1, seed, form)


def _right(spec: Spec, place: int, seed: int) -> Iterator[Case]:
    for number in range(1, _FURTHER + 1):
        yield Case(RIGHT, spec.name, _BASE, f"writing-{number}", seed=seed)
    for name in _WAYS[place % _STRIDE :: _STRIDE]:
        yield Case(RIGHT, spec.name, _BASE, _BASE, seed=seed, rewriting=name)
