"""Which cases there are."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.arithmetics.faults import FAULTS
from benchmarks.arithmetics.networks import FAINT, PRETRAINED, UNFOLDED, WHOLE
from benchmarks.common.models import REPORTING_SEEDS

__all__ = ["HERE", "RIGHT", "Case", "networks", "plan"]

RIGHT = "right"
"""In place of a fault's name."""

HERE = {
    "own": (
        *("float32", "tf32", "float16", "bfloat16", "float16-accumulated", "bfloat16-accumulated", "int8"),
        *("flushed", "int32"),
    ),
    "pytorch": ("bfloat16", "float16", "flushed"),
    "onnxruntime": ("int8",),
    "openvino": ("bfloat16", "float16", "float32", "int32"),
    "qnn": ("int8",),
}
"""Arithmetics that devices are asked for."""

_FAMILIES = (
    *("plain", f"plain {UNFOLDED}", "resnet", f"resnet {UNFOLDED}", "mobile", "unet", "series", "perceptron"),
    *("text", "lstm", "gru", "vit", "mixer", "dense"),
)
_REPORTED = ("branched", "grouped", "modern", "group-norms")
_ONLY = {"flushed": FAINT, "int32": WHOLE}
"""Arithmetics that are exact in other networks."""

_FAULTS_OF_CASE = 2


@dataclass(frozen=True)
class Case:
    """A device that computes a network, right or with a fault.

    Attributes:
        network: Its name.
        device: Who computes.
        arithmetic: In what.
        fault: Of `FAULTS`, or `RIGHT`.
    """

    network: str
    device: str
    arithmetic: str
    fault: str

    @property
    def name(self) -> str:
        """Unique, and understood by the command line."""
        return ":".join((self.network, self.device, self.arithmetic, self.fault))


def networks(seeds: Sequence[int]) -> list[str]:
    """Names of networks: those of development seeds are no others' ones."""
    reporting = bool(set(seeds) & set(REPORTING_SEEDS))
    families = (*_FAMILIES, *_REPORTED) if reporting else _FAMILIES
    return [f"{family}-{seed}" for seed in seeds for family in (*families, FAINT, WHOLE)] + [PRETRAINED[reporting]]


def plan(seeds: Sequence[int]) -> list[Case]:
    """All cases of some seeds: a network in each arithmetic of each device, right and with some of the faults."""
    return [
        Case(network, device, arithmetic, fault)
        for network in networks(seeds)
        for device, arithmetics in HERE.items()
        for arithmetic in arithmetics
        if _fits(network, device, arithmetic)
        for fault in (RIGHT, *_faults(network, device, arithmetic))
    ]


def _fits(network: str, device: str, arithmetic: str) -> bool:
    family = network.rpartition("-")[0]
    if network in PRETRAINED and arithmetic.endswith("-accumulated"):
        return False  # minutes
    if arithmetic in _ONLY:
        return family == _ONLY[arithmetic]
    if family in _ONLY.values():
        return (device, arithmetic) == ("own", "float32")
    return True


def _faults(network: str, device: str, arithmetic: str) -> Iterator[str]:
    start = zlib.crc32(f"{network}:{device}:{arithmetic}".encode())
    for place in range(_FAULTS_OF_CASE):
        yield FAULTS[(start + place * (1 + start // 7 % (len(FAULTS) - 1))) % len(FAULTS)]
