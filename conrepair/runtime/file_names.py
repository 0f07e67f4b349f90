"""Names of files for texts of others: no two are confused, by whatever file system."""

from __future__ import annotations

import unicodedata
from collections.abc import Hashable

from conrepair.runtime.path_text import fitting_name


class FileNames:
    """Names in one folder: each thing has its own, also where case and forms of letters don't count."""

    def __init__(self) -> None:
        self._names: dict[Hashable, str] = {}
        self._taken: dict[str, int] = {}

    def of(self, thing: Hashable, wanted: str) -> str:
        """The name of a thing: always the same one, and no other thing's.

        Args:
            thing: What is told from others: a text, or several.
            wanted: What to call it, where a file can be called so and nothing else is.

        Returns:
            A name as of `fitting_name`: without folders, and leading nowhere.
        """
        if thing not in self._names:
            self._names[thing] = self._free(fitting_name(wanted))
        return self._names[thing]

    def _free(self, wanted: str) -> str:
        """It, or with the first number behind it that no other has."""
        first, name = _folded(wanted), wanted
        while _folded(name) in self._taken:
            self._taken[first] += 1
            name = fitting_name(f"{wanted}-{self._taken[first]}")
        self._taken[_folded(name)] = 1
        return name


def _folded(name: str) -> str:
    """The same for names that some file system takes for one."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
