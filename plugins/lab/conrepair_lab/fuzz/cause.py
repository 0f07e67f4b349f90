"""The passes and options of a system that cause a finding."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from conrepair.ground.runtime.errors import ConrepairError
from conrepair_lab.cases.case import Case
from conrepair_lab.cases.sizes import SIZES
from conrepair_lab.fuzz.looking import look
from conrepair_lab.fuzz.suspicion import Suspicion
from conrepair_lab.fuzz.trial import with_options
from conrepair_lab.systems.isolating import isolate
from conrepair_lab.systems.system import Setting, System

_NEVERTHELESS = ("it happens with all switches off, too", "the converter is the cause, whatever its options are")


@dataclass(frozen=True)
class Cause:
    """The passes and options that cause a finding.

    Attributes:
        causes: Sets of switches with which alone it's seen; the smallest.
        heals: Sets without which it isn't.
        lines: How a person switches the first of these off without us.
        plainly: Whether it's seen with most left out, too: then it's a kernel's doing, or an importer's.
        tries: How often that was asked.
        exact: Whether these are all.
        words: Why it isn't known, where it isn't.
    """

    causes: tuple[tuple[str, ...], ...] = ()
    heals: tuple[tuple[str, ...], ...] = ()
    lines: tuple[str, ...] = ()
    plainly: bool = False
    tries: int = 0
    exact: bool = False
    words: str = ""


def isolated(
    case: Case, suspicion: Suspicion, system: System, setting: Setting, folder: Path, *, tries: int = 100
) -> Cause:
    """Find the smallest sets of passes and options that cause a finding.

    Args:
        case: On which it's seen.
        suspicion: What is seen.
        system: By which.
        setting: How it's run.
        folder: For files.
        tries: How often it may be tried.
    """
    setting = with_options(system, setting, case)
    case = dataclasses.replace(case, options={name: case.options[name] for name in {SIZES} & case.options.keys()})

    def seen(other: Setting) -> bool:
        return suspicion.same(look(case, system, other, folder, stage=suspicion.stage).suspicion)

    plain = system.settings[system.plain]
    if plain == setting or seen(plain):
        return Cause(plainly=True, tries=1, exact=True)
    with tempfile.TemporaryDirectory(dir=folder) as made:
        try:
            switches = system.switches(case.file(Path(made)), setting, Path(made), gradients=suspicion.of_gradients)
        except ConrepairError as error:
            return Cause(words=f"the system's switches can't be listed: {error}")
    if not switches:
        return Cause(words="the converter is the cause" if setting.route else "the system has no switches")
    if system.environment(system.without(setting, switches)) != system.environment(setting):
        return Cause(words="each setting needs a process of its own: `conrepair trace` finds the switches")

    def fails(on: Sequence[int]) -> bool:
        off = [item for place, item in enumerate(switches) if place not in set(on)]
        return seen(system.without(setting, off) if off else setting)

    found = isolate(len(switches), fails, tries=tries)
    heals = sorted(found.heals, key=len)
    return Cause(
        causes=tuple(tuple(switches[place].name for place in sorted(item)) for item in found.causes),
        heals=tuple(tuple(switches[place].name for place in sorted(item)) for item in heals),
        lines=tuple(switches[place].line for place in sorted(heals[0])) if heals else (),
        tries=found.tries,
        exact=found.exact,
        words="" if any(found.causes) else _NEVERTHELESS[bool(setting.route)],
    )
