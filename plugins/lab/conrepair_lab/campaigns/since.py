"""Since which release of a library a finding is seen, and until which: by halving, a release at a time."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from conrepair.ground.runtime.errors import ToolEnvironmentError, UsageError
from conrepair.ground.runtime.outside.package_index import releases_of
from conrepair.ground.runtime.shown.progress import ProgressDisplay
from conrepair.ground.runtime.words import counted
from conrepair_lab.campaigns.rechecking import findings_below, tried_again
from conrepair_lab.fuzz.finding import Finding, Span
from conrepair_lab.fuzz.shown import Shown
from conrepair_lab.report.fuzz.folder import tell
from conrepair_lab.systems.registry import SYSTEMS

_SHOWS = {"there": True, "gone": False}

Shows = Callable[[str], bool | None]
"""Whether a release shows it; None where it can't say."""


@dataclass(frozen=True)
class Since(Span):
    """Which releases show a finding, and what was asked.

    Attributes:
        finding: Which, with what its program did in releases that are right.
        asked: What they said, by release, in the order in which they were asked.
    """

    finding: Finding
    asked: dict[str, str]

    @property
    def told(self) -> str:
        """In a line, with how many were tried."""
        more = "" if self.exact else ": a larger --releases tries more"
        return f"{self.words} ({counted(len(self.asked), 'release')} tried){more}"


def turning(wrong: int, right: int, shows: Callable[[int], bool | None], most: int) -> tuple[int, int, bool]:
    """Find neighbours of which one shows something, and the other doesn't.

    Args:
        wrong: The place of one that shows it.
        right: The place of one that doesn't, or beside the list.
        shows: Of a place between; None where nobody can say.
        most: Places that may be asked.

    Returns:
        The nearest places found, and whether all between them can't say.
    """
    left = list(range(min(wrong, right) + 1, max(wrong, right)))
    while left and most:
        place, most = left[len(left) // 2], most - 1
        left.remove(place)
        found = shows(place)
        if found is not None:
            wrong, right = (place, right) if found else (wrong, place)
            left = [item for item in left if min(wrong, right) < item < max(wrong, right)]
    return wrong, right, not left


def since(
    folder: Path, room: Path, display: ProgressDisplay, *, workers: int, seconds: float, most: int
) -> list[Since]:
    """Ask other releases, each in an environment of its own, which of them show findings; findings then say so.

    Args:
        folder: As of `recheck`.
        room: As of `recheck`.
        display: As of `recheck`.
        workers: As of `recheck`.
        seconds: As of `recheck`.
        most: Releases that are asked of each finding, before its own and behind it.

    Raises:
        UsageError: if there are none, or a system has no other releases.
        DataError: if one isn't what it says.
        FetchError: if the package index can't be asked.
    """
    releases, found = functools.cache(releases_of), []
    for where, finding in findings_below(folder):
        system = SYSTEMS[finding.system]
        distribution = system.distribution(system.settings[finding.setting])
        if not distribution:
            raise UsageError(f"{finding.name}: this setting can't be run in other releases (docs/fuzz.md).")
        asked: dict[str, str] = {}
        ran: dict[str, Shown] = {}

        def shows(
            version: str,
            where: Path = where,
            finding: Finding = finding,
            asked: dict[str, str] = asked,
            ran: dict[str, Shown] = ran,
        ) -> bool | None:
            other = dataclasses.replace(finding, release=version)
            try:
                (said,) = tried_again([(where, other)], room, display, workers=workers, seconds=seconds)
            except ToolEnvironmentError as error:
                asked[version] = f"can't be installed: {error}"
                return None
            asked[version] = f"{said.verdict}: {said.words}"
            ran |= {} if said.shown is None else {version: said.shown}
            return _SHOWS.get(said.verdict)

        own = finding.blamed[distribution]
        span = _of_one(finding, releases(distribution), own, shows, most)
        right = [item for item in (span.last_right, span.first_right) if item in ran]
        here = tuple(item for item in finding.shown if item.release not in ran)
        told = dataclasses.replace(finding, since=span, shown=(*here, *(ran[item] for item in right)))
        tell(told, where)
        found.append(Since(**vars(span), finding=told, asked=asked))
    return found


def _of_one(finding: Finding, releases: list[str], own: str, shows: Shows, most: int) -> Span:
    if own not in releases:
        raise UsageError(
            f"{finding.name} was found with {own}, a release that the package index doesn't have for this Python."
        )
    here, last = releases.index(own), len(releases) - 1
    first, before, exact = turning(here, -1, lambda place: shows(releases[place]), most)
    again, complete = len(releases), True
    if here < last and (newest := shows(releases[last])) is not True:
        end = last if newest is False else len(releases)
        _, again, complete = turning(here, end, lambda place: shows(releases[place]), most - 1)
    return Span(
        releases[first],
        releases[before] if before >= 0 else "",
        releases[again] if again <= last else "",
        exact and complete,
    )
