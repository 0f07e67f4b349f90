"""What a measured case is worth: what was measured anew counts, not what the repair claims."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.common.target import AGREE

__all__ = ["Score", "score"]

_AS_BEFORE = 1.01  # times the error before: rounding makes no target worse
_AS_CONVERTED = 2.0  # times the error of the target before the fault, which eight bits alone make
_SIZE = 0.05
_MORE_OPERATORS = 1  # what is part of another operator in one file, as an activation, is one of its own in an edit
_MORE_ELEMENTS = 4  # numbers that such an operator takes as constants: axes, bounds


@dataclass(frozen=True)
class Score:
    """Of a case.

    Attributes:
        outcome: For a faulty target "repaired" (no answer differs on unseen samples and no layer is at fault),
            "partly", "worse", or "left" (no edits). For a right one "untouched" or "touched".
        placed: Every edit is about an injected layer; None without edits, in another format than the target's, and
            where nobody knows the injected layers.
        minimal: Beside that, edits, operators and numbers are no more than what was injected; None as well where that
            isn't known.
        written: The file is of the target's format, and runs; None without edits.
        kept: As many weights in few bits as in the target before or with the fault, or between, and the size within
            5 % of theirs; None without edits, or where none are meant to be.
        honest: The repair claims what was measured.
    """

    outcome: str
    placed: bool | None = None
    minimal: bool | None = None
    written: bool | None = None
    kept: bool | None = None
    honest: bool = True


def score(result: Mapping[str, Any], *, faulty: bool) -> Score:
    """Judge a result.

    Args:
        result: Of `trial.run`.
        faulty: Whether a fault was injected.
    """
    changed = bool(result.get("edits"))
    if not faulty:
        return Score("touched" if changed or not _untouched(result) else "untouched")
    if not all(result["unchanged"].values()):
        return Score("worse")  # a file that came was written to
    if not changed:
        return Score("left", honest=not result.get("mended"))
    outcome, placed = _outcome(result), _placed(result)
    return Score(
        outcome,
        placed,
        minimal=_minimal(result) if placed else placed,
        written=result["file"]["own_format"] and result["after"]["runs"],
        kept=_kept(result["file"]),
        honest=not result["mended"] or outcome == "repaired",
    )


def _untouched(result: Mapping[str, Any]) -> bool:
    asked = result.get("command") or {"exit": 0, "out": False}
    return bool(all(result["unchanged"].values()) and not result["out"] and asked["exit"] == 0 and not asked["out"])


def _outcome(result: Mapping[str, Any]) -> str:
    base, before, after = (result[name] for name in ("base", "before", "after"))
    if not after["runs"]:
        return "worse"
    error, error_before = _error(after), _error(before)
    limit = max(AGREE, _AS_CONVERTED * _error(base))
    if not after["faults"] and error <= limit and after["top1"] <= base["top1"]:
        return "repaired"
    more_error = error > max(limit, _AS_BEFORE * error_before)
    if more_error or after["top1"] > before["top1"] or len(after["faults"]) > len(before["faults"]):
        return "worse"
    return "partly"


def _placed(result: Mapping[str, Any]) -> bool | None:
    at_fault = set(result["at_fault"])
    if not result["file"]["own_format"] or not at_fault:
        return None
    return all(at_fault & set(place) for place in result["places"])


def _minimal(result: Mapping[str, Any]) -> bool | None:
    injected, repaired = result["injected_changes"], result["repaired_changes"]
    if injected is None or repaired is None:
        return None
    return bool(
        len(result["edits"]) <= max(injected["operators"] + injected["parameters"], len(result["injected"]))
        and repaired["operators"] <= injected["operators"] + _MORE_OPERATORS
        and repaired["elements"] <= injected["elements"] + _MORE_ELEMENTS
    )


def _error(side: Mapping[str, Any]) -> float:
    return math.inf if side["error"] is None else float(side["error"])


def _kept(file: Mapping[str, Any]) -> bool | None:
    if not file["quantized_meant"]:
        return None
    if file["quantized"] is None:  # in another format
        return False
    quantized, size = (sorted((file[f"{what}_meant"], file[f"{what}_before"])) for what in ("quantized", "bytes"))
    near = (1 - _SIZE) * size[0] <= file["bytes"] <= (1 + _SIZE) * size[1]
    return bool(quantized[0] <= file["quantized"] <= quantized[1] and near)
