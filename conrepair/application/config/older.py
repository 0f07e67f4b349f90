"""Configurations of other tools' forms, which entry points of `conrepair.configurations` translate into ours."""

from __future__ import annotations

import abc
import enum
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conrepair.application.config.model import AuditConfig
from conrepair.ground.runtime.plugins import Registry

_INDEX = re.compile(r"\[\d+\]")


class KeyOutcome(enum.StrEnum):
    """What can become of a key.

    Attributes:
        TRANSLATED: The new configuration has it.
        IGNORED: It says nothing here.
        REFUSED: What it asks for isn't done.
    """

    TRANSLATED = "translated"
    IGNORED = "ignored"
    REFUSED = "refused"


@dataclass(frozen=True)
class AccountEntry:
    """What became of one key, and of all that is below it where that has no entry of its own.

    Attributes:
        path: As in $.models[0].name.
        outcome: What became of it.
        words: What it became, or why it became nothing and what to do instead.
    """

    path: str
    outcome: KeyOutcome
    words: str


@dataclass(frozen=True)
class Translation:
    """A translated configuration.

    Attributes:
        value: In our form, as JSON; None when there's not one model in it.
        config: The same, checked.
        entries: What became of every key, in the order of the file.
        tool: Whose form it had.
    """

    value: dict[str, Any] | None
    config: AuditConfig | None
    entries: tuple[AccountEntry, ...]
    tool: str

    @property
    def refused(self) -> tuple[AccountEntry, ...]:
        """What isn't done."""
        return tuple(entry for entry in self.entries if entry.outcome is KeyOutcome.REFUSED)

    @property
    def runnable(self) -> bool:
        """Whether there's anything to run."""
        return self.config is not None and any(
            not model.skip_analysis for model in self.config.models if model.compare_with is None
        )


class OlderForm(abc.ABC):
    """A form that other configurations have."""

    @abc.abstractmethod
    def has(self, value: Any) -> bool:
        """Whether a JSON value is a configuration of it.

        Args:
            value: As it was read; may be anything.
        """

    @abc.abstractmethod
    def translate(self, value: Any, path: Path, duplicates: Sequence[str]) -> Translation:
        """Translate a configuration into our form.

        Args:
            value: The JSON value.
            path: Of its file; relative paths start at its folder.
            duplicates: Keys that stand twice in an object, of which the last counts.

        Raises:
            ConfigError: if it doesn't fit its own schema.
        """


OLDER: Registry[OlderForm] = Registry("configurations", {}, OlderForm)
"""Forms by the names of their tools."""


def older_form(value: Any) -> OlderForm | None:
    """The form of another tool that a configuration has.

    Args:
        value: As it was read; may be anything.

    Returns:
        None for our own, and where no plug-in knows it.
    """
    if isinstance(value, dict) and "schema_version" in value:
        return None
    return next((form for form in OLDER.values() if form.has(value)), None)


def grouped(entries: Iterable[AccountEntry]) -> list[AccountEntry]:
    """Entries that say the same as one: of keys of one object, and of the same keys in other items of a list."""
    groups: dict[tuple[str, KeyOutcome, str], dict[str, list[str]]] = {}
    for entry in entries:
        parent, _, key = entry.path.rpartition(".")
        objects = groups.setdefault((_INDEX.sub("[]", parent), entry.outcome, entry.words), {})
        objects.setdefault(parent, []).append(key)
    result = []
    for (_, outcome, words), objects in groups.items():
        parent, keys = next(iter(objects.items()))
        others = sum(len(more) for more in objects.values()) - len(keys)
        place = f"{parent}.{keys[0]}" if len(keys) == 1 else f"{parent}.{{{', '.join(keys)}}}"
        result.append(AccountEntry(f"{place} and {others} more like it" if others else place, outcome, words))
    return result
