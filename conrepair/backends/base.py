"""What a backend is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from conrepair.frameworks.model import Model
from conrepair.frameworks.runnable import Runnable

__all__ = ["Backend"]


class Backend(Protocol):
    """A place where models run; each module of this room has one as `BACKEND`."""

    def refuses(self, model: Model) -> str | None:
        """Say why this backend can't run the model, or None when it can."""

    def load(self, model: Model, options: Mapping[str, Any]) -> Runnable:
        """Make the model ready to run.

        Args:
            model: What to run.
            options: The backend's own, as the configuration gives them.

        Raises:
            ModelLoadError: if it can't be loaded.
        """
