"""Which cases there are."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

from benchmarks.common.cases import REPORTING_SEEDS, Case
from benchmarks.families.architecture import Architecture
from benchmarks.families.architectures import DEVELOPMENT, REPORTING, architecture
from benchmarks.families.exporting import INT8, ROUTES, SOURCES, format_of

__all__ = ["FAULTY", "RIGHT", "plan", "variants", "without_data"]

FAULTY, RIGHT = "faulty", "right"

_TWICE = 3  # one of so many faults is tried on two routes
_WITHOUT_DATA = 4  # one of so many cases gets no data
_VARIANTS = {
    "dynamo": ("plain", "opset-20", "onnxslim"),
    "script": ("plain", "opset-15", "onnxsim", "runtime"),
    "tflite": ("plain",),
    "keras-tflite": ("plain",),
    "keras-int8": ("plain",),
    "keras-onnx": ("plain", "opset-13", "onnxsim", "onnxslim"),
}
"""How else a right network is exported: for another opset, or with a tool run over it."""


def plan(seeds: Sequence[int]) -> list[Case]:
    """All cases of a half.

    Args:
        seeds: Of the half, as all benchmarks have them.
    """
    names = REPORTING if set(seeds) <= set(REPORTING_SEEDS) else DEVELOPMENT
    return [case for name in names for case in _of(architecture(name))]


def without_data(case: Case) -> bool:
    """Whether the verbs are asked without data, so that they make inputs up."""
    return zlib.crc32(case.name.encode()) % _WITHOUT_DATA == 0


def variants(chosen: Architecture) -> Iterator[tuple[str, str]]:
    """Routes, and how a right network is written on each."""
    routes = chosen.routes or ROUTES[chosen.framework]
    for route in routes:
        yield from ((route, name) for name in _VARIANTS[route])
    written = [route for route in routes if route not in {"tflite", INT8}]
    yield from ((written[place % len(written)], name) for place, name in enumerate(chosen.writings))


def _of(chosen: Architecture) -> Iterator[Case]:
    routes = chosen.routes or ROUTES[chosen.framework]
    for place, (name, fault) in enumerate(chosen.faults.items()):
        # The first two routes in turn; the others, which take longer or hide more, for some.
        own = [routes[place % min(2, len(routes))]]
        if place % _TWICE == 0:
            own.append(routes[-1])
        for route in fault.routes or dict.fromkeys(own):
            yield Case(FAULTY, chosen.name, SOURCES[route], route, (name,), 1, format=format_of(route))
    for route, name in variants(chosen):
        yield Case(RIGHT, chosen.name, SOURCES[route], route, rewriting=name, format=format_of(route))
