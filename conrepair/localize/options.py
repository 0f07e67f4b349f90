"""What a localization may be told."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Options"]


@dataclass(frozen=True)
class Options:
    """Margins and intent.

    Attributes:
        noise_margin: An introduced error is a fault from so many times its floor on.
        equivalent: Relative L2 of the outputs up to which a target without faults is equivalent, not noise.
        precision: That the target is meant to compute in: "float32", "float16" or "bfloat16".
    """

    noise_margin: float = 10.0
    equivalent: float = 1e-4
    precision: str = "float32"
