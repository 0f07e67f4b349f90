"""What a converter is: an edge between two formats."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conrepair.frameworks.model import Model
from conrepair.runtime.errors import ConfigError

__all__ = ["Converter", "Option"]


@dataclass(frozen=True)
class Option:
    """A setting of a converter.

    Attributes:
        default: Used when the configuration says nothing.
        meaning: For a person.
        choices: Allowed values, if they're few.
    """

    default: Any
    meaning: str
    choices: tuple[Any, ...] | None = None

    def check(self, value: Any, where: str) -> Any:
        """Return `value` if it's of the default's type and allowed.

        Raises:
            ConfigError: if not.
        """
        if type(value) is not type(self.default):
            raise ConfigError(f"{where} takes {type(self.default).__name__} ({self.meaning}), not {value!r}")
        if self.choices is not None and value not in self.choices:
            raise ConfigError(f"{where} takes one of {list(self.choices)} ({self.meaning}), not {value!r}")
        return value


@dataclass(frozen=True)
class Converter:
    """One tool's way from one format to another.

    Attributes:
        name: "source-target-tool" or the tool's own.
        source: Framework it reads.
        target: Framework it writes.
        distributions: Packages that take part, the tool first; their versions go into the provenance.
        needs: Frameworks it imports, for steering it to a warm worker.
        convert: Writes the target into a folder and returns the file's or folder's name in it. Runs in a worker
            process; imports what it needs inside.
        options: By name.
        preference: The smaller, the sooner it's chosen among equals.
        accepts: Says why a model of the source framework is not for this converter; None when it is.
        automatic: False: only used when pinned with `via`.
    """

    name: str
    source: str
    target: str
    distributions: tuple[str, ...]
    needs: frozenset[str]
    convert: Callable[[Model, Path, Mapping[str, Any]], str]
    options: Mapping[str, Option] = field(default_factory=dict)
    preference: int = 10
    accepts: Callable[[Model], str | None] = lambda _: None
    automatic: bool = True

    def complete(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The given options, checked, with defaults for the rest.

        Raises:
            ConfigError: for an unknown option or a value that isn't allowed.
        """
        unknown = sorted(set(options) - set(self.options))
        if unknown:
            known = ", ".join(f"{name} ({option.meaning})" for name, option in self.options.items())
            raise ConfigError(f"converter {self.name} has no option '{unknown[0]}'; it has: {known or 'none'}")
        return {
            name: option.check(options[name], f"option '{name}' of {self.name}")
            if name in options
            else option.default
            for name, option in self.options.items()
        }

    def versions(self) -> dict[str, str]:
        """Versions of the packages that take part; "missing" for one that isn't installed."""
        result = {}
        for name in self.distributions:
            try:
                result[name] = importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                result[name] = "missing"
        return result
