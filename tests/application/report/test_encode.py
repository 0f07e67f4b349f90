"""Results as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from conrepair.application.report.encode import encode
from conrepair.verdicts.evaluate.verdict import Verdict


@dataclass(frozen=True)
class _Thing:
    verdict: Verdict
    path: Path
    numbers: tuple[float, ...]


def test_everything_becomes_strict_json() -> None:
    thing = _Thing(Verdict.NOISE, Path("a/b"), (1.5, float("inf"), float("-inf"), float("nan")))
    value = encode({"thing": thing, "array": np.float32(0.5), "count": np.int64(3), "none": None})
    text = json.dumps(value, allow_nan=False)
    assert json.loads(text) == {
        "thing": {"verdict": "noise", "path": "a/b", "numbers": [1.5, "inf", "-inf", "nan"]},
        "array": 0.5,
        "count": 3,
        "none": None,
    }
