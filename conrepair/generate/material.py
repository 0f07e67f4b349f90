"""What networks are made of besides specifications: operators as they were seen, and models of somebody."""

from __future__ import annotations

from dataclasses import dataclass

from conrepair.generate.learned.placing import Learned
from conrepair.generate.real.growth import GrowingModel

__all__ = ["NOTHING", "Material"]


@dataclass(frozen=True)
class Material:
    """What is given to each network.

    Attributes:
        learned: Instances, of which some are placed.
        reals: Models; each network is grown from a piece of one of them, if there are any.
    """

    learned: Learned | None = None
    reals: tuple[GrowingModel, ...] = ()


NOTHING = Material()
"""Specifications are all there is."""
