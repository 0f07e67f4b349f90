"""Find a system and its setting by name: "tvm-O3" is setting O3 of the system tvm."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from conrepair.formats.backends.all_backends import BACKENDS
from conrepair.ground.runtime.errors import UsageError
from conrepair.ground.runtime.outside.environments import Environment
from conrepair.ground.runtime.words import meant
from conrepair_lab.systems import converters, ort, tensorflow, tflite, torch, tvm
from conrepair_lab.systems.plugged import Plugged
from conrepair_lab.systems.released import Released
from conrepair_lab.systems.system import Setting, System

RELEASE = "release"
"""The option of a backend that names another release of its library."""

_KNOWN = ("executorch", "iree", "openvino", "qnn", "tract")  # plug-ins that conrepair's repository has

SYSTEMS: dict[str, System] = {
    module.SYSTEM.name: module.SYSTEM for module in (tvm, ort, torch, tensorflow, tflite, converters)
}
"""By name: ours, then backends that plug-ins bring, as far as they can be systems."""

_FILES = {system.format: system.file for system in SYSTEMS.values()}

for _name in BACKENDS:
    if _name not in BACKENDS.own and _name not in SYSTEMS:
        with contextlib.suppress(Exception):  # of code of others: who asks for it by name is told
            SYSTEMS[_name] = Plugged(_name, _FILES)


@dataclass(frozen=True)
class Entry:
    """A system and how it's run.

    Attributes:
        system: A key of `SYSTEMS`.
        setting: The name of one of its settings.
        release: The version of its library, where that isn't the one that's installed here.
    """

    system: str
    setting: str
    release: str = ""

    @property
    def name(self) -> str:
        """As it's asked for."""
        return f"{self.system}-{self.setting}" + (f"@{self.release}" if self.release else "")

    @property
    def runs(self) -> System:
        """The system."""
        return Released(SYSTEMS[self.system], self.release) if self.release else SYSTEMS[self.system]

    @property
    def within(self) -> Environment | None:
        """The environment that it runs in, where that isn't this one."""
        system = self.runs
        return system.within(self.chosen) if isinstance(system, Released) else None

    @property
    def chosen(self) -> Setting:
        """The setting."""
        return self.runs.settings[self.setting]

    @property
    def plain(self) -> Entry:
        """The system with most left out."""
        return Entry(self.system, self.runs.plain, self.release)


@dataclass(frozen=True)
class InRelease:
    """A backend in another release of its library.

    Attributes:
        system: That runs it.
        setting: How.
    """

    system: Released
    setting: Setting

    @property
    def needs(self) -> frozenset[str]:
        """What a job needs for it."""
        return self.system.needs(self.setting)

    @property
    def format(self) -> str:
        """The format that it takes."""
        return self.system.format


def released(backend: str, options: Mapping[str, Any]) -> InRelease | None:
    """What runs a backend in the release that its options name; None where they name none.

    Args:
        backend: A key of `conrepair.formats.backends.all_backends.BACKENDS`.
        options: Its own.

    Raises:
        UsageError: if it can't be run in other releases, or that's none.
    """
    if not (version := options.get(RELEASE)):
        return None
    setting = Setting(backend, {name: value for name, value in options.items() if name != RELEASE})
    system = next((item for item in SYSTEMS.values() if item.settings[item.plain].backend == backend), None)
    if system is None:
        raise UsageError(f"{backend} can't be run in other releases. Leave out `{RELEASE}`.")
    found = InRelease(Released(system, version), setting)
    found.system.within(setting)  # says where there is none
    return found


def entry(name: str) -> Entry:
    """The entry of a name: "tvm-O3", "tvm" for the usual one, or "tvm-O3@0.26.0" for another release.

    Raises:
        UsageError: if there's none; says which there are, or what to install.
    """
    known, is_release, release = name.partition("@")
    system = known
    while system not in SYSTEMS and "-" in system:  # names may have some, too
        system = system.rpartition("-")[0]
    setting = known[len(system) + 1 :]
    if system not in SYSTEMS or (setting and setting not in SYSTEMS[system].settings):
        if system not in {*SYSTEMS, *BACKENDS.own}:
            with contextlib.suppress(KeyError):
                Plugged(system, _FILES)  # says why it's none
        if system in _KNOWN and system not in SYSTEMS:
            place = f"conrepair-{system} (plugins/{system} of conrepair's repository)"
            raise UsageError(f"{system} is run by a plug-in that isn't installed: pip install {place}")
        hint = meant(name, names(), f"there are {', '.join(names())}")
        raise UsageError(f"there is no system called {name!r}{hint}")
    found = Entry(system, setting or SYSTEMS[system].usual, release)
    if is_release:
        Released(SYSTEMS[system], release).within(found.chosen)  # says where there is none
    elif lacks := SYSTEMS[system].lacks:
        other = f", or ask for a release, as {name}@VERSION" if found.runs.distribution(found.chosen) else ""
        raise UsageError(f"what runs {name} isn't installed: {lacks}{other}")
    return found


def installed(name: str) -> Entry:
    """The entry of a name, or of a setting of TVM ("O3"), for what runs by what's installed here alone.

    Raises:
        UsageError: if there's none, or it's of another release.
    """
    found = entry(f"tvm-{name}" if name in SYSTEMS["tvm"].settings else name)
    if found.release:
        raise UsageError(f"{name}: only campaigns (`fuzz`) run other releases. Leave out @{found.release}.")
    return found


def names() -> tuple[str, ...]:
    """All names of what's installed."""
    there = (system for system in SYSTEMS.values() if not system.lacks)
    return tuple(f"{system.name}-{setting}" for system in there for setting in system.settings)
