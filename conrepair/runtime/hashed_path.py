"""A file or folder, and what it holds."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["HashedPath"]


@dataclass(frozen=True)
class HashedPath:
    """A file or folder on disk.

    Attributes:
        path: Where it is.
        sha256: Of what it holds: a job's key goes by that.
    """

    path: str
    sha256: str
