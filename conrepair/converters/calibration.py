"""The option that all converters with calibration share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conrepair.converters.base import Option

__all__ = ["SAMPLES", "samples"]

_DEFAULT = 100
_NAME = "calibration_samples"

SAMPLES = {
    _NAME: Option(_DEFAULT, "samples to calibrate with, spread over the dataset; all if it has fewer", least=1)
}


def samples(options: Mapping[str, Any]) -> int:
    """How many samples the options ask for."""
    return int(options[_NAME])
