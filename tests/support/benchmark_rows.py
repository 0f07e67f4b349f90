"""Hand-made results of the repair benchmark."""

from __future__ import annotations

from typing import Any

from benchmarks.common.cases import Case
from benchmarks.repair.rows import Row

FAULT = {"kind": "parameters", "target_layers": ["conv"], "source_layers": ["conv"], "evidence": ["off"]}


def case(number: int = 0, *, count: int = 1, group: str = "onnx", **more: Any) -> Case:
    faults = tuple(f"fault-{number}-{place}" for place in range(count))
    return Case(group, "perceptron", "onnx", "onnx", faults, count, 11, **more)


def side(error: float | None = 0.5, top1: int = 3, faults: int = 1, **more: Any) -> dict[str, Any]:
    return {"error": error, "top1": top1, "samples": 64, "faults": [FAULT] * faults, **more}


def result(**more: Any) -> dict[str, Any]:
    """A single fault, fully repaired by one edit of the injected layer, in its own format."""
    return {
        "injected": [{**FAULT, "fault": "fault", "effect": 0.3, "words": "the weights are scaled"}],
        "found": [FAULT],
        "base": side(1e-7, 0, 0),
        "before": side(),
        "after": side(2e-7, 0, 0, runs=True),
        "refused": "",
        "mended": True,
        "edits": ["the weight of `conv` is taken from the original"],
        "tried": 1,
        "in_time": True,
        "places": [["conv"]],
        "at_fault": ["conv"],
        "injected_changes": {"operators": 0, "parameters": 1, "elements": 90},
        "repaired_changes": {"operators": 0, "parameters": 1, "elements": 90},
        "file": {
            "own_format": True,
            "bytes": 1000,
            "bytes_before": 1000,
            "bytes_meant": 1000,
            "quantized_meant": 0,
            "quantized_before": 0,
            "quantized": 0,
        },
        "out": ["patch.json", "repaired.onnx"],
        "unchanged": {"source": True, "target": True},
        "localize_seconds": 0.5,
        "repair_seconds": 1.0,
    } | more


def left(**more: Any) -> dict[str, Any]:
    return result(edits=[], mended=False, out=[], after=None, tried=4) | more


def untouched(**more: Any) -> dict[str, Any]:
    """A correct conversion of which nothing was made."""
    return left(injected=[], found=[], mended=True, before=side(1e-7, 0, 0), tried=0) | more


def row(number: int = 0, *, count: int = 1, group: str = "onnx", value: dict[str, Any] | None = None) -> Row:
    return Row(case(number, count=count, group=group), "measured", "", result() if value is None else value)
