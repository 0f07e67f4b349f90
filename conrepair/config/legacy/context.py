"""What the translation of every part of a configuration needs."""

from __future__ import annotations

from dataclasses import dataclass

from conrepair.config.legacy.account import Account
from conrepair.config.legacy.paths import PathFinder

__all__ = ["ONE_FOLDER", "UNREAD", "Context"]

UNREAD = "the older tool never read it"
ONE_FOLDER = "all that is written lies below `output` (generated/), in a folder of the audit's name"


@dataclass(frozen=True)
class Context:
    """One translation.

    Attributes:
        account: Collects what becomes of keys.
        paths: Finds files.
        preprocessing: Whether photos are prepared (`preprocessing_enabled`).
    """

    account: Account
    paths: PathFinder
    preprocessing: bool = True
