"""Which right targets there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.common.cases import REPORTING_SEEDS, Case
from benchmarks.common.otherwise import OF_PICTURES, OTHERWISE
from benchmarks.rightness.making import BY_HAND, UNFOLDED

__all__ = ["CONVERTED", "EXPORTED", "REWRITTEN", "plan"]

REWRITTEN, EXPORTED, CONVERTED = "rewritten", "exported otherwise", "converted"

_DEVELOPMENT = ("plain", "resnet", "mobile", "unet", "text", "lstm", "series", "perceptron")
_REPORTING = (
    *("plain", "resnet", "mobile", "unet", "vit", "gru", "mixer", "dense", "branched", "grouped", "generator"),
    *("modern", "group-norms", "series"),
)
_SIDES = ("script-13", "script-17", "dynamo-18", "dynamo-21", "script-20")
_BY_HAND = (0, 7, 14)  # of the networks of attention of a seed
_ROUTES = {
    "onnx": ("onnx-normalise",),
    "keras": ("onnx-keras",),
    "tflite": ("onnx-keras", "keras-tflite"),
    "torch": ("onnx2torch",),
    "tensorflow": ("onnx-keras", "keras-savedmodel"),
}
_STRIDE = 2
_NO_PICTURES = {"text", "lstm", "perceptron", "gru", "mixer", BY_HAND}
_UNFOLDED = {"batch-norm-folded", "batch-norm-by-product-and-sum"}


def plan(seeds: Sequence[int]) -> list[Case]:
    """All cases of some seeds."""
    cases: list[Case] = []
    for seed in seeds:
        families = _REPORTING if seed in REPORTING_SEEDS else _DEVELOPMENT
        names = [f"{family}-{seed}" for family in families]
        names += [f"{BY_HAND}-{100 * seed + number}" for number in _BY_HAND]
        for place, name in enumerate(names):
            cases += _of_network(name, place, seed)
    return cases


def _of_network(name: str, place: int, seed: int) -> Iterator[Case]:
    family = name.rpartition("-")[0]
    sides = [f"writing-{number}" for number in range(len(_SIDES))] if family == BY_HAND else _SIDES
    ways = [way for way in OTHERWISE if not (family in _NO_PICTURES and way in OF_PICTURES)]
    for number, way in enumerate(ways):
        side = sides[(number + place + seed) % len(sides)]
        if way in _UNFOLDED:
            side = UNFOLDED
        yield Case(REWRITTEN, name, side, side, seed=seed, rewriting=way)
    for one, two in zip(sides, [*sides[1:], sides[0]], strict=True):
        yield Case(EXPORTED, name, one, two, seed=seed)
    if family == BY_HAND:
        return
    for number, (target, route) in enumerate(_ROUTES.items()):
        if (number + place) % _STRIDE == 0:
            yield Case(CONVERTED, name, sides[1], sides[1], seed=seed, route=route, format=target)
