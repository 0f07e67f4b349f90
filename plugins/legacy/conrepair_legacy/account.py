"""What became of every key: nothing of a configuration is dropped silently."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from conrepair.application.config.older import AccountEntry, KeyOutcome
from conrepair_legacy.origins import PathFinder

UNREAD = "the older tool never read it"
ONE_FOLDER = "all that is written lies below `output` (generated/), in a folder of the audit's name"


class Account:
    """Collects entries while a configuration is translated."""

    def __init__(self) -> None:
        self._entries: dict[str, AccountEntry] = {}

    def __contains__(self, path: str) -> bool:
        return path in self._entries

    def note(self, path: str, outcome: KeyOutcome, words: str) -> None:
        """Say what became of a key; a later word replaces an earlier one."""
        self._entries[path] = AccountEntry(path, outcome, words)

    def translated(self, path: str, words: str) -> None:
        """The new configuration has it."""
        self.note(path, KeyOutcome.TRANSLATED, words)

    def ignored(self, path: str, words: str) -> None:
        """It says nothing here."""
        self.note(path, KeyOutcome.IGNORED, words)

    def refused(self, path: str, words: str) -> None:
        """What it asks for isn't done."""
        self.note(path, KeyOutcome.REFUSED, words)

    def keys(
        self, path: str, given: BaseModel, words: Mapping[str, str], outcome: KeyOutcome = KeyOutcome.IGNORED
    ) -> None:
        """Say the same kind of thing of several keys of an object, where it has them.

        Args:
            path: Of the object.
            given: The object.
            words: By key.
            outcome: What became of them.
        """
        for key, text in words.items():
            if key in given.model_fields_set:
                self.note(f"{path}.{key}", outcome, text)

    def complete(self, value: Any) -> tuple[AccountEntry, ...]:
        """All entries in the order of the file, with one for every key that nothing was said of.

        Args:
            value: The configuration as it was read.
        """
        places = {path: number for number, (path, _) in enumerate(_walk(value))}
        for path, leaf in _walk(value):
            if leaf and not self._covers(path):
                self.ignored(path, "not a key that the older tool read; nothing is known of it")
        return tuple(sorted(self._entries.values(), key=lambda entry: places.get(entry.path, -1)))

    def _covers(self, path: str) -> bool:
        return any(ancestor in self._entries for ancestor in _ancestors(path))


@dataclass(frozen=True)
class Context:
    """One translation: what that of every part of a configuration needs.

    Attributes:
        account: Collects what becomes of keys.
        paths: Finds files.
        preprocessing: Whether photos are prepared (`preprocessing_enabled`).
    """

    account: Account
    paths: PathFinder
    preprocessing: bool = True


def _ancestors(path: str) -> Iterator[str]:
    """The path itself and what it lies in, the root excluded."""
    yield path
    for position in range(len(path) - 1, 1, -1):
        if path[position] in ".[":
            yield path[:position]


def _walk(value: Any) -> Iterator[tuple[str, bool]]:
    """Every place in document order, and whether nothing lies below it."""
    places = [("$", value)]
    while places:
        path, item = places.pop()
        children: list[tuple[str, Any]] = []
        if isinstance(item, dict):
            children = [(f"{path}.{key}", below) for key, below in item.items()]
        elif isinstance(item, list):
            children = [(f"{path}[{index}]", below) for index, below in enumerate(item)]
        yield path, not children and path != "$"
        places += reversed(children)
