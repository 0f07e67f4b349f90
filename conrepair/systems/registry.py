"""Find a system and its setting by name: "tvm-O3" is setting O3 of the system tvm."""

from __future__ import annotations

from dataclasses import dataclass

from conrepair.runtime.errors import UsageError
from conrepair.runtime.words import meant
from conrepair.systems import converters, ort, tensorflow, tflite, torch, tvm
from conrepair.systems.system import Setting, System

__all__ = ["ENTRIES", "SYSTEMS", "Entry", "entry"]

SYSTEMS: dict[str, System] = {
    module.SYSTEM.name: module.SYSTEM for module in (tvm, ort, torch, tensorflow, tflite, converters)
}


@dataclass(frozen=True)
class Entry:
    """A system and how it's run.

    Attributes:
        system: A key of `SYSTEMS`.
        setting: The name of one of its settings.
    """

    system: str
    setting: str

    @property
    def name(self) -> str:
        """As it's asked for."""
        return f"{self.system}-{self.setting}"

    @property
    def runs(self) -> System:
        """The system."""
        return SYSTEMS[self.system]

    @property
    def chosen(self) -> Setting:
        """The setting."""
        return self.runs.settings[self.setting]

    @property
    def plain(self) -> Entry:
        """The system with most left out."""
        return Entry(self.system, self.runs.plain)


def entry(name: str) -> Entry:
    """The entry of a name: "tvm-O3", or "tvm" for the usual one.

    Raises:
        UsageError: if there's none; says which there are.
    """
    system, _, setting = name.partition("-")
    if system in SYSTEMS and (not setting or setting in SYSTEMS[system].settings):
        return Entry(system, setting or SYSTEMS[system].usual)
    hint = meant(name, ENTRIES, f"there are {', '.join(ENTRIES)}")
    raise UsageError(f"there is no system called {name!r}{hint}")


ENTRIES = tuple(f"{system.name}-{setting}" for system in SYSTEMS.values() for setting in system.settings)
"""All names."""
