"""The architectures, and which of them are for development; reporting has others."""

from __future__ import annotations

import importlib

from benchmarks.families.architecture import Architecture

__all__ = ["DEVELOPMENT", "REPORTING", "architecture"]

DEVELOPMENT = ("bert", "llama", "clip", "resnet", "resnet-keras", "mobilenet", "unet", "lstm")
"""What the suite may be improved by."""

REPORTING = (
    *(
        "distilbert",
        "gpt2",
        "vit",
        "window",
        "whisper",
        "efficientnet",
        "efficientnet-keras",
        "yolo",
        "gru",
        "gru-keras",
    ),
    "mamba",
)
"""What figures are reported of; nobody looks into single cases before that."""


def architecture(name: str) -> Architecture:
    """An architecture by its name.

    Args:
        name: One of the above.

    Raises:
        ValueError: if there's none of that name.
    """
    if name not in (*DEVELOPMENT, *REPORTING):
        raise ValueError(f"there is no architecture {name}; there are {', '.join((*DEVELOPMENT, *REPORTING))}")
    module = importlib.import_module(f"benchmarks.families.architectures.{name.replace('-', '_')}")
    found: Architecture = module.ARCHITECTURE
    return found
