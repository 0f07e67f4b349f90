"""Which libraries a job imports, so that a worker that has them gets it."""

from __future__ import annotations

from conrepair.frameworks.formats import RECORDED

__all__ = ["framework_needs"]


def framework_needs(framework: str) -> frozenset[str]:
    """What a worker imports for a framework; Keras stands on TensorFlow."""
    return frozenset() if framework == RECORDED else frozenset({"tensorflow" if framework == "keras" else framework})
